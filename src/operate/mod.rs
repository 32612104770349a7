//! What operators do, and the journal of it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection};

use crate::Error;

/// Stops the work on a collection: nothing of it is claimed, and direct writes are left to the loop. Writes go on leaving jobs, and no
/// job expires of it. False: it was paused already.
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
    /// For how long.
    pub seconds: f64,
}

/// What is paused now.
pub async fn pauses(connection: &mut PgConnection) -> Result<Vec<Pause>, Error> {
    Ok(sqlx::query_as(include_str!("pauses.sql")).fetch_all(connection).await?)
}

/// A line of the journal.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Line {
    pub at: DateTime<Utc>,
    pub who: String,
    pub what: String,
    pub collection: Option<String>,
    pub detail: Option<String>,
    pub count: Option<i64>,
}

/// The newest lines, the newest first.
pub async fn journal(connection: &mut PgConnection, collection: Option<&str>, limit: i64) -> Result<Vec<Line>, Error> {
    Ok(sqlx::query_as(include_str!("journal.sql")).bind(collection).bind(limit).fetch_all(connection).await?)
}
