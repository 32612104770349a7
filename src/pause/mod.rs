//! Stops the work on a collection for a while, and goes on with it.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};

use crate::Error;

/// Stops the work on a collection: nothing of it is claimed, and direct writes are left to the loop. Writes go on scheduling jobs, and no
/// job expires because of it. False: it was paused already.
pub async fn pause(connection: &mut PgConnection, collection: &str, who: &str, reason: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar(include_str!("pause.sql")).bind(collection).bind(who).bind(reason).fetch_one(connection).await?)
}

/// Goes on with the work. False: it was not paused.
pub async fn resume(connection: &mut PgConnection, collection: &str, who: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar(include_str!("resume.sql")).bind(collection).bind(who).fetch_one(connection).await?)
}

/// A collection that is paused.
#[derive(Clone, Debug, FromRow)]
pub struct Pause {
    pub collection: String,
    pub since: DateTime<Utc>,
    /// For how long, by Postgres' clock.
    pub seconds: f64,
    pub by: String,
    pub reason: String,
}

/// What is paused now.
pub async fn pauses(connection: &mut PgConnection) -> Result<Vec<Pause>, Error> {
    Ok(sqlx::query_as(include_str!("pauses.sql")).fetch_all(connection).await?)
}

impl Pause {
    /// Since when, by whom and why.
    pub(crate) fn since_when_and_why(&self) -> String {
        format!("since {} {}", self.since.format("%Y-%m-%d %H:%M UTC"), self.by_whom_and_why())
    }

    /// By whom and why.
    pub(crate) fn by_whom_and_why(&self) -> String {
        format!("by {}: {}", self.by, self.reason)
    }
}
