//! Reindexes, and how far they came: to *settled*, not only to scheduled.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection};

use crate::Error;
use crate::printable::printable;

/// How far a reindex came.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Progress {
    pub id: i64,
    pub collection: String,
    /// "author mina", "everything", "12 keys".
    pub what: String,
    pub tag: String,
    pub state: State,
    /// Every document is written again, even where both sides agree.
    pub rewrite: bool,
    /// How many keys it has; none: nobody counted them yet.
    pub expected: Option<i64>,
    pub scheduled: i64,
    /// Was that the last of them?
    pub all_scheduled: bool,
    /// Scheduled, and neither settled nor buried.
    pub open: i64,
    /// A look saw both sides agree.
    pub settled: i64,
    /// Given up: dead letters.
    pub dead: i64,
    /// Jobs that were deleted because it was cancelled.
    pub taken_off: i64,
    /// The most keys that are scheduled in a second.
    pub rate: Option<i32>,
    /// How many came through in a second lately.
    pub per_second: Option<f64>,
    pub seconds_left: Option<f64>,
    pub started_at: DateTime<Utc>,
    pub started_by: String,
    /// When its last job was seen settled or buried, or it was cancelled.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why its last piece could not be scheduled; it is tried again.
    pub trouble: Option<String>,
}

/// Where a reindex stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum State {
    Running,
    Paused,
    Finished,
    Cancelled,
}

impl State {
    /// Will nothing more be scheduled of it, and is all that was scheduled through? Of a cancelled one that rewrites, jobs may be open.
    pub fn is_over(self) -> bool {
        matches!(self, State::Finished | State::Cancelled)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Running => "running",
            State::Paused => "paused",
            State::Finished => "finished",
            State::Cancelled => "cancelled",
        })
    }
}

/// Reindexes of one collection, or of all: those that are not over first, the newest first.
pub async fn list(connection: &mut PgConnection, collection: Option<&str>, limit: i64) -> Result<Vec<Progress>, Error> {
    let found = sqlx::query_as(include_str!("list.sql")).bind(collection).bind(None::<i64>).bind(limit);
    Ok(found.fetch_all(connection).await?)
}

/// One reindex; none: there is none with this number.
pub async fn show(connection: &mut PgConnection, id: i64) -> Result<Option<Progress>, Error> {
    let found = sqlx::query_as(include_str!("list.sql")).bind(None::<&str>).bind(id).bind(1_i64);
    Ok(found.fetch_optional(connection).await?)
}

impl Progress {
    /// How many keys it has, as far as that is known.
    pub fn total(&self) -> Option<i64> {
        self.expected.map(|expected| expected.max(self.scheduled))
    }

    /// How many jobs are settled or buried.
    pub fn through(&self) -> u64 {
        (self.settled + self.dead).max(0) as u64
    }
}

/// On one line.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} ({}", self.id, printable(&self.collection), printable(&self.what))?;
        if self.rewrite {
            f.write_str(", rewrite")?;
        }
        write!(f, "), {}: {} settled", self.state, self.settled)?;
        match self.total() {
            Some(total) => write!(f, " of {total}")?,
            None => write!(f, ", {} scheduled so far", self.scheduled)?,
        }
        if self.dead > 0 {
            write!(f, ", {} dead", self.dead)?;
        }
        if self.taken_off > 0 {
            write!(f, ", {} taken off", self.taken_off)?;
        }
        if self.state == State::Running {
            if let Some(speed) = self.per_second {
                write!(f, ", {speed:.0} a second")?;
            }
            if let Some(rate) = self.rate {
                write!(f, " (at most {rate})")?;
            }
            if let Some(left) = self.seconds_left {
                write!(f, ", about {} left", humantime::format_duration(Duration::from_secs(left.max(1.0) as u64)))?;
            }
        }
        if let Some(trouble) = self.trouble.as_ref().filter(|_| !self.state.is_over()) {
            write!(f, "; it cannot go on, and is tried again: {}", printable(trouble))?;
        }
        Ok(())
    }
}
