//! Counts and ages read from the queue.

use sqlx::{FromRow, PgConnection};

use crate::Error;

/// A count that reaches this means "at least".
pub const CENSUS_LIMIT: i64 = 100_000;

/// How many jobs of a collection there are.
#[derive(Clone, Debug, FromRow, serde::Serialize)]
pub struct Census {
    pub due: i64,
    pub waiting: i64,
    pub dead: i64,
    pub expired: i64,
    pub oldest_due_seconds: Option<f64>,
}

/// The census of one collection.
pub async fn census(connection: &mut PgConnection, collection: &str) -> Result<Census, Error> {
    Ok(sqlx::query_as(include_str!("census.sql")).bind(collection).bind(CENSUS_LIMIT).fetch_one(connection).await?)
}

/// Collections that have jobs and are none of these.
pub async fn unserved(connection: &mut PgConnection, served: &[String]) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar(include_str!("unserved.sql")).bind(served).fetch_all(connection).await?)
}
