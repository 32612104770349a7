//! Whether a quick job is due: a question that may be asked many times a second, whatever the queue looks like.

use std::time::Duration;

use sqlx::{PgConnection, Row};

use super::Cursor;
use crate::Error;

/// What was found.
#[derive(Clone, Debug)]
pub struct QuickDue {
    /// Collections that have a quick job that is due, and are not paused.
    pub due: Vec<String>,
    /// How long the server took to find out.
    pub took: Duration,
}

/// Which of these collections have a quick job that is due behind their cursor, among those that were scheduled within this time.
pub async fn quick_due(connection: &mut PgConnection, collections: &[(String, Cursor)], within: Duration) -> Result<QuickDue, Error> {
    let names: Vec<&str> = collections.iter().map(|(name, _)| name.as_str()).collect();
    let (times, ids): (Vec<_>, Vec<i64>) = collections.iter().map(|(_, behind)| (behind.enqueued_at, behind.id)).unzip();
    let asked = sqlx::query(include_str!("quick_due.sql")).bind(names).bind(within.as_secs_f64()).bind(times).bind(ids);
    let row = asked.fetch_one(connection).await?;
    let took = Duration::try_from_secs_f64(row.try_get("seconds")?).unwrap_or_default();
    Ok(QuickDue { due: row.try_get("due")?, took })
}

/// The id that a job was last given, whether or not its transaction has ended. As long as it stays the same, no job is scheduled.
pub async fn last_id(connection: &mut PgConnection) -> Result<i64, Error> {
    Ok(sqlx::query_scalar(include_str!("last_id.sql")).fetch_one(connection).await?)
}
