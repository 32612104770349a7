//! Waits until a committed write has reached the index, or search. It sends nothing but looks and small searches, and those of all who wait
//! at the same time go together.

mod judge;
mod together;
mod until;

use std::fmt;

pub(crate) use until::Waits;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The index that readers see holds the write: a look at it by id shows it.
    Indexed,
    /// A search shows the write; of a delete, it no longer finds the document. That is at most the index's `refresh_interval` later, by
    /// default a second. No refresh is forced. Where the index has replicas, a copy that was not asked may show it a moment later.
    Searchable,
}

/// A key that was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waited {
    /// As it was asked for.
    pub key: String,
    /// The revision that it had when the wait began, and that was waited for; odd: it was deleted. None: there was never such a row, and
    /// nothing is expected but that nothing is found.
    pub revision: Option<i64>,
    /// What became of it.
    pub became: Became,
}

/// What became of a write that was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Became {
    /// The readers' index holds it. If search was waited for: search did not show it yet when the time was up.
    Indexed,
    /// Search shows it; of a delete, search no longer finds the document.
    Searchable,
    /// A later write of the same row is there instead: in the index, or in search, if that was waited for.
    Superseded,
    /// The time was up before it was there, and what is known. Its job is open, and the write is safe.
    Waiting(String),
    /// It was given up: the reason of its dead letter. `catchword explain` shows the error.
    Dead(String),
}

impl Waited {
    /// Is what was waited for there, or something later?
    pub fn has_come(&self, until: Until) -> bool {
        match self.became {
            Became::Searchable | Became::Superseded => true,
            Became::Indexed => until == Until::Indexed,
            Became::Waiting(_) | Became::Dead(_) => false,
        }
    }
}

impl fmt::Display for Became {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Became::Indexed => f.write_str("indexed"),
            Became::Searchable => f.write_str("searchable"),
            Became::Superseded => f.write_str("superseded"),
            Became::Waiting(why) => write!(f, "waiting: {why}"),
            Became::Dead(reason) => write!(f, "dead: {reason}"),
        }
    }
}
