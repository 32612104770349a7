//! The same judgements as the Prometheus alarms, without Prometheus: facts are read, then judged. Nothing here pages anybody; exit
//! codes do.

mod facts;
mod freshness;
mod held_back;
mod judge;
mod thresholds;

use std::fmt;

use serde::Serialize;

use crate::Catchword;
use crate::printable::printable;

pub use facts::{CollectionFacts, Facts};
pub use freshness::Seen;
pub use held_back::HeldBack;
pub use judge::judge;

/// How one judgement came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Well,
    /// Worth a word, not a night.
    Warning,
    Unwell,
    /// The facts for it could not be had.
    Unknown,
}

/// A judged fact.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The name of the alarm that judges the same.
    pub name: &'static str,
    /// Whom it is about; none: everybody.
    pub collection: Option<String>,
    pub level: Level,
    /// What is so.
    pub says: String,
    /// What to do about it; empty where all is well.
    pub remedy: String,
}

/// All judgements.
#[derive(Debug, Serialize)]
pub struct Report {
    pub level: Level,
    pub summary: String,
    pub checks: Vec<Check>,
}

impl Catchword {
    /// Reads what can be read within some seconds, and judges it. A server that is away or silent is a judgement too.
    pub async fn check(&self) -> Report {
        match self.facts().await {
            Ok(facts) => Report::of(judge(&facts)),
            Err((why, elasticsearch)) => Report::of(judge::blind(&why, elasticsearch.as_deref())),
        }
    }
}

impl Report {
    fn of(checks: Vec<Check>) -> Report {
        let level = checks.iter().map(|check| check.level).max().unwrap_or(Level::Unknown);
        let named = |level| {
            let named = checks.iter().filter(move |check| check.level == level);
            named.map(|check| format!("{}{}", check.name, check.of())).collect::<Vec<_>>().join(", ")
        };
        let summary = match level {
            Level::Well => format!("well: {} checks", checks.len()),
            Level::Warning => format!("well, with a warning: {}", named(level)),
            Level::Unwell => format!("unwell: {}", named(level)),
            Level::Unknown => format!("unknown: {}", named(level)),
        };
        Report { level, summary, checks }
    }
}

impl Check {
    fn of(&self) -> String {
        self.collection.as_ref().map_or(String::new(), |name| format!(" {}", printable(name)))
    }
}

/// A summary on the first line, then a line for everything that is not well.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary)?;
        for level in [Level::Unknown, Level::Unwell, Level::Warning] {
            for check in self.checks.iter().filter(|check| check.level == level) {
                let word = match level {
                    Level::Warning => "warning",
                    Level::Unwell => "unwell",
                    _ => "unknown",
                };
                writeln!(f, "{word:<8} {}{}: {}; {}", check.name, check.of(), printable(&check.says), printable(&check.remedy))?;
            }
        }
        Ok(())
    }
}
