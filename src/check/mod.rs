//! The same judgements as the Prometheus alarms, without Prometheus: how things stand is read, then judged. Nothing here pages anybody;
//! exit codes do.

mod judge;
mod thresholds;

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use crate::Error;
use crate::context::Context;
use crate::printable::{Line, Tone, printable, write_plain};
use crate::standing::{self, Standing, Topic};
use judge::{Unasked, judge, judge_unasked};

/// Postgres is not waited for longer: cron and Nagios give up after ten seconds.
const POSTGRES: Duration = Duration::from_secs(4);

/// Postgres' code for a statement that it ended: it took too long.
const STATEMENT_TIMEOUT: &str = "57014";

/// What is read.
const TOPICS: [Topic; 11] = [
    Topic::Workers,
    Topic::Vacuum,
    Topic::Freshness,
    Topic::Canary,
    Topic::Attached,
    Topic::Census,
    Topic::Letters,
    Topic::Pauses,
    Topic::Audits,
    Topic::Unaudited,
    Topic::Unserved,
];

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
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub level: Level,
    pub summary: String,
    pub checks: Vec<Check>,
}

/// Reads what can be read within some seconds, and judges it. A server that is down or silent is a judgement too.
pub(crate) async fn check(context: &Context) -> Report {
    let mut standing = Standing::of(&context.config.collections);
    let (read, elasticsearch) = tokio::join!(read(context, &mut standing), standing::why_silent(context));
    if let Err(unasked) = read {
        return Report::of(judge_unasked(&unasked, elasticsearch.as_deref()));
    }
    match elasticsearch {
        None => standing.read_drift_and_indices(context).await,
        Some(_) => standing.take_drift_of_views(),
    }
    standing.elasticsearch = elasticsearch;
    Report::of(judge(&standing))
}

/// Reads what Postgres tells. What it refuses is noted, and the rest is judged.
async fn read(context: &Context, standing: &mut Standing) -> Result<(), Unasked> {
    let reading = async {
        let mut connection = standing::connect(context, POSTGRES).await?;
        standing.read_what_is_told(context, &mut connection, &TOPICS).await?;
        context.give_back(connection, POSTGRES);
        Ok::<(), Error>(())
    };
    match timeout(POSTGRES, reading).await {
        Ok(read) => read.map_err(Unasked::from),
        // it was told already what took so long
        Err(_) if !standing.refused.is_empty() => Ok(()),
        Err(_) => Err(Unasked::Down("postgres does not answer within 4 s".into())),
    }
}

impl From<Error> for Unasked {
    fn from(error: Error) -> Unasked {
        let why = error.to_string();
        let was_slow = error.sqlstate().is_some_and(|code| code == STATEMENT_TIMEOUT);
        if error.is_absence() && !was_slow { Unasked::Down(why) } else { Unasked::Refused(why) }
    }
}

impl Report {
    /// The same for somebody who may know of these collections only; none: of all. What is about everybody may name others behind its
    /// first words.
    pub fn only(&self, seen: Option<&[String]>) -> Report {
        let Some(seen) = seen else { return self.clone() };
        let mut checks = self.checks.clone();
        checks.retain(|check| check.collection.as_ref().is_none_or(|name| seen.contains(name)));
        for check in checks.iter_mut().filter(|check| check.collection.is_none()) {
            check.says.truncate(check.says.find(": ").unwrap_or(check.says.len()));
        }
        Report::of(checks)
    }

    fn of(checks: Vec<Check>) -> Report {
        let level = checks.iter().map(|check| check.level).max().unwrap_or(Level::Unknown);
        let named = |level| {
            let named = checks.iter().filter(move |check| check.level == level);
            let mut names: Vec<String> = named.map(|check| format!("{}{}", check.name, check.of())).collect();
            names.dedup();
            names.join(", ")
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
        write_plain(f, self.lines())
    }
}

impl Report {
    /// The same, line by line.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let mut lines = vec![(self.level.tone(), self.summary.clone())];
        for level in [Level::Unknown, Level::Unwell, Level::Warning] {
            for check in self.checks.iter().filter(|check| check.level == level) {
                let word = match level {
                    Level::Warning => "warning",
                    Level::Unwell => "unwell",
                    _ => "unknown",
                };
                let (says, remedy) = (printable(&check.says), printable(&check.remedy));
                lines.push((level.tone(), format!("{word:<8} {}{}: {says}; {remedy}", check.name, check.of())));
            }
        }
        lines
    }
}

impl Level {
    fn tone(self) -> Tone {
        match self {
            Level::Well => Tone::Well,
            Level::Warning => Tone::Note,
            Level::Unwell | Level::Unknown => Tone::Wrong,
        }
    }
}
