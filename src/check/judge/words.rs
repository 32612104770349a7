//! How judgements are worded.

use super::super::{Check, Level};
use crate::job::CENSUS_LIMIT;
use crate::standing::CollectionStanding;

impl Check {
    pub fn named(mut self, name: &str) -> Check {
        self.remedy = self.remedy.replace("NAME", name);
        self
    }
}

pub(super) fn well(name: &'static str, collection: Option<&CollectionStanding>, says: impl Into<String>) -> Check {
    Check { name, collection: collection.map(|c| c.name.clone()), level: Level::Well, says: says.into(), remedy: String::new() }
}

pub(super) fn unwell(name: &'static str, collection: Option<&CollectionStanding>, says: String, remedy: &str) -> Check {
    Check { name, collection: collection.map(|c| c.name.clone()), level: Level::Unwell, says, remedy: remedy.into() }
}

/// Worth a word, and no more.
pub(super) fn warning(name: &'static str, collection: &CollectionStanding, says: String, remedy: &str) -> Check {
    Check { level: Level::Warning, ..unwell(name, Some(collection), says, remedy) }
}

pub(super) fn jobs(n: i64) -> String {
    counted(n, "job")
}

pub(super) fn counted(n: i64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n if n >= CENSUS_LIMIT => format!("about {n} {what}s"),
        n => format!("{n} {what}s"),
    }
}

/// For people: no more than two units.
pub(super) fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let coarse = match seconds {
        0..3_600 => seconds,
        3_600..86_400 => seconds / 60 * 60,
        _ => seconds / 3_600 * 3_600,
    };
    humantime::format_duration(std::time::Duration::from_secs(coarse)).to_string()
}
