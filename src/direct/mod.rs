//! The direct path: store, commit, and index at once. The job that the trigger scheduled makes sure.

mod admit;
mod path;
mod queue;
mod read;

use std::collections::BTreeMap;
use std::fmt;

pub(crate) use path::DirectPath;

/// What a store returns: your value, and the keys to index now.
#[derive(Clone, Debug)]
pub struct Stored<T> {
    pub(crate) value: T,
    pub(crate) keys: Vec<String>,
}

impl<T> Stored<T> {
    /// Your value, and the keys of the rows that were written.
    pub fn new<K: ToString>(value: T, keys: impl IntoIterator<Item = K>) -> Stored<T> {
        Stored { value, keys: keys.into_iter().map(|key| key.to_string()).collect() }
    }
}

/// What was stored, and whether it is indexed already.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Kept<T> {
    /// Your value. It is committed.
    pub value: T,
    /// What became of the direct write.
    pub direct: Direct,
    /// The revision that was committed, by key; a later one, if somebody else wrote the row right after. It is the version that the
    /// document gets, and it only grows: whatever shows this number or a higher one shows this write. Read after the commit, within the
    /// second of the direct write; a key that could not be read by then is not in it.
    pub revisions: BTreeMap<String, i64>,
}

/// What became of a direct write. Never an error: the job makes sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direct {
    /// The index has this revision, or a newer one. Search shows it within the index's `refresh_interval`.
    Indexed,
    /// The loop will do it, and why.
    Left(String),
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Direct::Indexed => f.write_str("indexed"),
            Direct::Left(why) => write!(f, "left to the loop: {why}"),
        }
    }
}
