//! Scheduling by hand.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::Error;

/// Schedules keys: how many jobs, and since when they stand in the queue.
pub async fn schedule(
    connection: &mut PgConnection,
    collection: &str,
    keys: &[String],
    tag: &str,
    delay: Duration,
) -> Result<(i64, DateTime<Utc>), Error> {
    let scheduled = sqlx::query_as(include_str!("schedule.sql")).bind(collection).bind(keys).bind(tag).bind(delay.as_secs_f64());
    Ok(scheduled.fetch_one(connection).await?)
}

/// Schedules one key because a person wants it looked at now. The journal says who.
pub async fn look_again(connection: &mut PgConnection, collection: &str, key: &str, who: &str) -> Result<(i64, DateTime<Utc>), Error> {
    Ok(sqlx::query_as(include_str!("look_again.sql")).bind(collection).bind([key]).bind(who).fetch_one(connection).await?)
}
