//! What an audit found, for people and scripts.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Counts, Kind, remedy};
use crate::printable::printable;

/// What an audit found, or has found so far.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub audit: i64,
    pub collection: String,
    pub indices: Vec<String>,
    /// Keys and documents that were looked at.
    pub looked: u64,
    /// About how many there will have been in the end, if anybody knows.
    pub expected: Option<u64>,
    /// How many differ, by kind.
    pub differences: Counts,
    /// Keys that differ now and have an open job, which will look at them.
    pub pending: u64,
    /// Keys of which it could not be told.
    pub unknown: u64,
    /// Keys that were scheduled for repair.
    pub scheduled: u64,
    pub repair: bool,
    /// Were the documents themselves compared?
    pub content: bool,
    pub examples: Vec<Example>,
    /// What was committed before is what is compared.
    pub asked_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// A key that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    pub key: String,
    pub kind: Kind,
    pub index: String,
    /// What Postgres wants: a version, `gone at` one, or nothing.
    pub postgres: String,
    /// What the index has.
    pub elasticsearch: String,
}

impl Report {
    /// How many differ.
    pub fn differ(&self) -> u64 {
        self.differences.values().sum()
    }

    /// Do both sides agree, but for what jobs are open for?
    pub fn is_in_step(&self) -> bool {
        self.differ() == 0 && self.unknown == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.collection)?;
        writeln!(f, "  compared  {} keys and documents, with {}", self.looked, self.indices.join(", "))?;
        for kind in Kind::ALL {
            let count = self.differences.get(kind.name()).copied().unwrap_or(0);
            if count > 0 {
                writeln!(f, "  {:<9} {count}: {}", kind.name(), kind.means())?;
                for example in self.examples.iter().filter(|example| example.kind == kind).take(3) {
                    let (key, index) = (printable(&example.key), &example.index);
                    writeln!(f, "            {key}: Postgres {}, {index} {}", example.postgres, example.elasticsearch)?;
                }
            }
        }
        if self.pending > 0 {
            writeln!(f, "  pending   {}: a job is open for each, and will look at it", self.pending)?;
        }
        if self.unknown > 0 {
            writeln!(f, "  unknown   {}: neither side could be asked about these; repeat it later", self.unknown)?;
        }
        match (self.differ(), self.unknown) {
            (0, 0) => writeln!(f, "  in step"),
            (0, _) => writeln!(f, "  could not tell"),
            _ => self.say_what_to_do(f),
        }
    }
}

impl Report {
    fn say_what_to_do(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { collection, differences, scheduled, .. } = self;
        match (remedy::mendable(differences), self.repair) {
            (0, _) => writeln!(f, "  not in step; no repair can help")?,
            (_, true) => writeln!(f, "  not in step; {scheduled} scheduled for repair, watch them: catchword status")?,
            (_, false) => writeln!(f, "  not in step; repair it: {}", remedy::repair(collection, differences))?,
        }
        match remedy::given_up(differences) {
            0 => Ok(()),
            dead => writeln!(f, "  {dead} given up; {}", remedy::correct(collection)),
        }
    }
}
