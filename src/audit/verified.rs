//! What audits and sentinels say of a collection, for `status` and the metrics.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};

use super::remedy;
use crate::{Error, job};

/// What is known of a collection by its audits and sentinels.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verified {
    /// What was committed before this was compared by the last whole audit.
    pub verified_up_to: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    /// How many differed then, by kind; also `pending`, `left` and `unknown`.
    pub counts: BTreeMap<String, u64>,
    /// How many it scheduled for repair.
    pub scheduled: u64,
    /// Is a job of a repair still open?
    pub healing: bool,
    /// How many all audits that are kept have scheduled.
    pub repaired: u64,
    pub running: bool,
    /// What the sentinel noticed, until an audit came to its end.
    pub lost: Option<String>,
    /// The same for ten minutes longer: an audit may be through within a second, and whoever looks once a minute must hear of it.
    #[serde(skip)]
    pub lost_lately: Option<String>,
    /// How long ago Postgres showed a sign that it lost commits, and which, until everything was compared or written again.
    #[serde(skip)]
    pub switched: Option<Switched>,
}

/// A sign that the server lost commits.
#[derive(Clone, Debug)]
pub struct Switched {
    pub seconds: f64,
    pub how: String,
}

impl Verified {
    /// How many differed at the last audit.
    pub fn differed(&self) -> u64 {
        self.repairable() + self.given_up()
    }

    /// How many of these a repair can schedule.
    pub fn repairable(&self) -> u64 {
        remedy::repairable(&self.counts)
    }

    /// How many had been given up: a dead letter says why.
    pub fn given_up(&self) -> u64 {
        remedy::given_up(&self.counts)
    }

    /// The command that repairs what can be scheduled.
    pub fn repair(&self, collection: &str) -> String {
        remedy::repair(collection, &self.counts)
    }

    /// Where differences come from that no job would have repaired.
    pub fn causes(&self) -> &'static str {
        if remedy::is_content(&self.counts) {
            "the view reads a table that is not watched (catchword doctor), or calls a function that changed or depends on the time, \
             or a restored database gave numbers twice, or somebody writes to the index"
        } else {
            "somebody writes to the index, or writes rows without the triggers"
        }
    }

    /// What to do about those that were given up.
    pub fn correct(&self, collection: &str) -> String {
        remedy::correct(collection)
    }
}

/// Reads it. None: the collection is not attached.
pub async fn verified(connection: &mut PgConnection, collection: &str) -> Result<Option<Verified>, Error> {
    let row = sqlx::query(include_str!("verified.sql")).bind(collection).fetch_optional(&mut *connection).await?;
    let Some(row) = row else { return Ok(None) };
    let number = |n: Option<i64>| n.and_then(|n| n.try_into().ok()).unwrap_or(0);
    let scheduled = number(row.try_get("scheduled")?);
    let healing = scheduled > 0 && job::open_audit(connection, collection).await?;
    Ok(Some(Verified {
        verified_up_to: row.try_get("asked_at")?,
        finished_at: row.try_get("finished_at")?,
        counts: row.try_get::<Option<Json<BTreeMap<String, u64>>>, _>("counts")?.map(|counts| counts.0).unwrap_or_default(),
        scheduled,
        healing,
        repaired: number(row.try_get("repaired")?),
        running: row.try_get("running")?,
        lost: row.try_get("lost")?,
        lost_lately: row.try_get("lost_lately")?,
        switched: row
            .try_get::<Option<f64>, _>("switched_seconds")?
            .map(|seconds| Ok::<_, sqlx::Error>(Switched { seconds, how: row.try_get("switched_how")? }))
            .transpose()?,
    }))
}
