//! How a key can differ. Pure.

use serde::{Deserialize, Serialize};

use crate::compare::Verdict;

/// A difference between the two sides, by what is wrong with the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Postgres has it, the index does not.
    Missing,
    /// The index has an older one.
    Stale,
    /// The index has a newer one than was ever committed.
    Ahead,
    /// The index shows what Postgres does not want.
    Orphan,
    /// Postgres deleted it and the index was never told. Readers see nothing of it; a delayed old write could bring the document back.
    Untold,
    /// The versions agree and the documents do not.
    Content,
    /// The index shows a document whose id cannot be a key.
    Stray,
    /// It differs in whatever way, and its job was given up: a dead letter says why.
    Dead,
}

impl Kind {
    /// All of them, in the order in which they are told.
    pub const ALL: [Kind; 8] =
        [Kind::Missing, Kind::Stale, Kind::Ahead, Kind::Orphan, Kind::Untold, Kind::Content, Kind::Stray, Kind::Dead];

    /// What a verdict means for an audit. None: the sides agree, or it is unknown whether they do.
    pub fn of(verdict: Verdict) -> Option<Kind> {
        match verdict {
            Verdict::Missing => Some(Kind::Missing),
            Verdict::Stale => Some(Kind::Stale),
            Verdict::Ahead => Some(Kind::Ahead),
            Verdict::Orphan => Some(Kind::Orphan),
            Verdict::Untold => Some(Kind::Untold),
            Verdict::Current | Verdict::Gone | Verdict::Unknown => None,
        }
    }

    /// The word for it, in metrics, in the table and for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Missing => "missing",
            Kind::Stale => "stale",
            Kind::Ahead => "ahead",
            Kind::Orphan => "orphan",
            Kind::Untold => "untold",
            Kind::Content => "content",
            Kind::Stray => "stray",
            Kind::Dead => "dead",
        }
    }

    /// What it means, for people.
    pub fn means(self) -> &'static str {
        match self {
            Kind::Missing => "in Postgres and not in the index",
            Kind::Stale => "older in the index",
            Kind::Ahead => "newer in the index than ever in Postgres",
            Kind::Orphan => "in the index and not wanted by Postgres",
            Kind::Untold => "deleted in Postgres, but the index has no tombstone; search is right today",
            Kind::Content => "other content under the same version",
            Kind::Stray => "in the index under an id that cannot be a key",
            Kind::Dead => "given up: catchword dead list says why",
        }
    }
}
