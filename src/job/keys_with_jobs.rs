//! What is open or dead among many keys, for an audit: a difference that a job will heal is none, and one that a dead letter tells of is
//! known.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::Error;

/// Which of these keys a job will look at: their own, or the touch of a related row that they refer to. `fit`: those among them that can
/// be keys of the collection.
pub async fn open_among(connection: &mut PgConnection, collection: &str, keys: &[&str], fit: &[&str]) -> Result<HashSet<String>, Error> {
    let open = sqlx::query_scalar(include_str!("open_among.sql")).bind(collection).bind(keys).bind(fit);
    let found: Vec<String> = open.fetch_one(connection).await?;
    Ok(found.into_iter().collect())
}

/// Keys whose jobs are open and were never refused, in the order of the queue, as far as there are so many; each may be there twice.
pub async fn open_keys(connection: &mut PgConnection, collection: &str, limit: i64) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar(include_str!("open_keys.sql")).bind(collection).bind(limit).fetch_all(connection).await?)
}

/// Does each dead letter of a collection tell of a document that no index can have, whatever its mapping?
pub async fn unindexable_alone(connection: &mut PgConnection, collection: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar(include_str!("unindexable_alone.sql")).bind(collection).fetch_one(connection).await?)
}

/// Which of these keys have a dead letter.
pub async fn dead_among(connection: &mut PgConnection, collection: &str, keys: &[&str]) -> Result<HashSet<String>, Error> {
    let found: Vec<String> = sqlx::query_scalar(include_str!("dead_among.sql")).bind(collection).bind(keys).fetch_all(connection).await?;
    Ok(found.into_iter().collect())
}

/// Schedules what an audit found, behind the `before` that it scheduled already.
pub async fn schedule_audit(
    connection: &mut PgConnection,
    collection: &str,
    keys: &[&str],
    base: DateTime<Utc>,
    before: i64,
) -> Result<(), Error> {
    let scheduled = sqlx::query("select catchword.schedule_audit($1, $2, $3, $4)").bind(collection).bind(keys).bind(base).bind(before);
    scheduled.execute(connection).await?;
    Ok(())
}

/// Schedules these keys so that they are due now, as an audit would.
pub async fn schedule_now(connection: &mut PgConnection, collection: &str, keys: &[&str]) -> Result<(), Error> {
    sqlx::query(include_str!("schedule_now.sql")).bind(collection).bind(keys).execute(connection).await?;
    Ok(())
}
