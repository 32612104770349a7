//! Counts and ages read from the queue.

use sqlx::{Connection, FromRow, PgConnection};

use super::estimate::{estimate_dead, estimate_jobs};
use crate::Error;

/// Jobs of one priority that are counted one by one: some milliseconds. Above it the counts are estimates.
pub const CENSUS_LIMIT: i64 = 10_000;

/// How many jobs of a collection there are.
#[derive(Clone, Debug, FromRow, serde::Serialize)]
pub struct Census {
    pub due: i64,
    pub waiting: i64,
    pub dead: i64,
    /// Those among the first of each priority: the oldest come first.
    pub expired: i64,
    /// How long the oldest due job has been due, among the first of each priority; none: nothing is due.
    pub oldest_due_seconds: Option<f64>,
    /// The same of live writes: priorities 0 and 1.
    pub oldest_live_seconds: Option<f64>,
    /// The same of reindexes, audits and large changes, which stand behind them.
    pub oldest_bulk_seconds: Option<f64>,
    /// How long ago the oldest change was made that is due or was put off, by a clock that no postponement moves; none: none is. Live writes only.
    pub oldest_change_seconds: Option<f64>,
    /// For how long jobs have been due of which none has moved, as ticks saw it; none: they move, or there are none.
    pub still_seconds: Option<f64>,
    /// Why, if it is known.
    pub still_why: Option<String>,
    /// Changes of related rows whose touch failed and will be tried again.
    pub failing_touches: i64,
    /// How long ago the oldest of them was made.
    pub failing_touch_seconds: Option<f64>,
    /// What it failed of.
    pub failing_touch_error: Option<String>,
    /// Are there too many to be counted? Then due, waiting and dead are what the planner makes of its statistics, or of a sample where those are
    /// old.
    pub estimated: bool,
}

/// The census of one collection: in milliseconds, however long the queue is.
pub async fn census(connection: &mut PgConnection, collection: &str) -> Result<Census, Error> {
    // in a transaction for the plan's sake; read committed holds no snapshot between statements
    let mut transaction = connection.begin().await?;
    sqlx::query(include_str!("keep_the_plan.sql")).execute(&mut *transaction).await?;
    let counted = sqlx::query_as(include_str!("census.sql")).bind(collection).bind(CENSUS_LIMIT).fetch_one(&mut *transaction).await;
    transaction.rollback().await?;
    let mut census: Census = counted?;
    if census.estimated {
        let about = estimate_jobs(connection, collection).await?;
        census.waiting = census.waiting.max(about.waiting);
        census.due = census.due.max(about.jobs - census.waiting);
    }
    if census.dead >= CENSUS_LIMIT {
        census.estimated = true;
        census.dead = census.dead.max(estimate_dead(connection, collection).await?);
    }
    Ok(census)
}

/// Dead letters that somebody should hear of.
#[derive(Clone, Copy, Debug, Default, FromRow)]
pub struct Letters {
    /// Died within the time that was asked for.
    pub lately: i64,
    /// Died because the index stays ahead of Postgres.
    pub ahead: i64,
}

/// The dead letters of one collection; `lately` is in seconds.
pub async fn letters(connection: &mut PgConnection, collection: &str, lately: f64) -> Result<Letters, Error> {
    Ok(sqlx::query_as(include_str!("letters.sql")).bind(collection).bind(lately).bind(CENSUS_LIMIT).fetch_one(connection).await?)
}

/// Collections that have jobs and are none of these.
pub async fn unserved(connection: &mut PgConnection, served: &[String]) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar(include_str!("unserved.sql")).bind(served).fetch_all(connection).await?)
}
