//! What each minute was like, for graphs without Prometheus. Workers write it with their heartbeats (`migrations/0012_history.sql`); here it
//! is read.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection};

use crate::Error;

/// One minute of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct Minute {
    /// Its beginning.
    pub at: DateTime<Utc>,
    /// Jobs that came; about so many where the queue was too long to be counted.
    pub scheduled: i64,
    /// Jobs that a look satisfied.
    pub settled: i64,
    /// Documents and tombstones that the loop wrote.
    pub written: i64,
    /// Jobs that were refused, to be tried again.
    pub pushed_back: i64,
    /// Jobs that were given up.
    pub buried: i64,
    /// Jobs that were due at its end.
    pub due: i64,
    /// Jobs that were not due yet.
    pub waiting: i64,
    /// The age of the oldest change that was due or put off; none: there was none.
    pub oldest_seconds: Option<f64>,
    /// Half of the changes were seen within so many seconds; none: none was seen.
    pub fresh_p50: Option<f64>,
    /// The same of 99 of a hundred.
    pub fresh_p99: Option<f64>,
}

/// The minutes of this span that ends now, the oldest first. One without a worker is left out: it is a gap, and no zero.
pub async fn read(connection: &mut PgConnection, collection: &str, span: Duration) -> Result<Vec<Minute>, Error> {
    Ok(sqlx::query_as(include_str!("read.sql")).bind(collection).bind(span.as_secs_f64()).fetch_all(connection).await?)
}

/// What batches of one collection did in one minute, up to now: two of these, some seconds apart, make a speed.
#[derive(Clone, Debug, FromRow)]
pub struct Lately {
    pub minute: DateTime<Utc>,
    pub collection: String,
    pub settled: i64,
    pub written: i64,
}

/// The last minutes, and the one that is under way.
pub async fn lately(connection: &mut PgConnection) -> Result<Vec<Lately>, Error> {
    Ok(sqlx::query_as(include_str!("lately.sql")).fetch_all(connection).await?)
}
