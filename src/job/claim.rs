//! Locks a batch for this transaction. A claim is a row lock: a crash frees it at once, and nobody has to rescue anything.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection, PgPool};

use crate::Error;

/// The priority of a live job that is due at once: `catchword.priority_quick()`.
pub const QUICK: i32 = 0;

/// The priority of a live job that waits or waited: `catchword.priority_live()`. What is above it stands behind live jobs.
pub const LIVE: i32 = 1;

/// A standing demand: look at this key until both sides agree.
#[derive(Clone, Debug, FromRow)]
pub struct Job {
    pub id: i64,
    pub key: String,
    pub priority: i32,
    pub enqueued_at: DateTime<Utc>,
    pub scheduled_at: DateTime<Utc>,
    /// When this claim began, by Postgres' clock.
    pub claimed_at: DateTime<Utc>,
    /// Refusals of this document, never outages.
    pub attempts: i32,
    /// How many keys were in the smallest request without an answer that this one was in.
    pub unanswered: Option<i32>,
    pub tag: String,
    /// The trace of the request that wrote the row, if it said so. Anybody may have written anything here.
    pub traceparent: Option<String>,
    pub expired: bool,
    /// The tenant's, in a collection with `fair_by`.
    pub lane: Option<i16>,
}

/// How far a walk has come. It lives for one pass: a job that commits late behind it is met by the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub(super) priority: i32,
    pub(super) enqueued_at: DateTime<Utc>,
    pub(super) id: i64,
}

/// Is a live job of these collections due?
pub async fn live_is_due(pool: &PgPool, collections: &[String]) -> Result<bool, Error> {
    Ok(sqlx::query_scalar(include_str!("live_is_due.sql")).bind(collections).fetch_one(pool).await?)
}

impl Cursor {
    /// Before every job.
    pub const TOP: Cursor = Cursor { priority: i32::MIN, enqueued_at: DateTime::UNIX_EPOCH, id: 0 };

    /// Behind every quick job, before those that waited.
    pub const BEHIND_QUICK: Cursor = Cursor { priority: QUICK + 1, ..Cursor::TOP };

    /// Behind every live job, before every bulk's.
    pub const BEHIND_LIVE: Cursor = Cursor { priority: LIVE + 1, ..Cursor::TOP };

    /// Behind every job.
    pub const END: Cursor = Cursor { priority: i32::MAX, ..Cursor::TOP };

    /// Behind this job, before the next.
    pub fn behind(job: &Job) -> Cursor {
        Cursor { priority: job.priority, enqueued_at: job.enqueued_at, id: job.id }
    }
}

/// Claims up to `limit` due jobs of a collection behind the cursor, in the order of the walk.
pub async fn claim(connection: &mut PgConnection, collection: &str, cursor: Cursor, limit: u32) -> Result<Vec<Job>, Error> {
    claim_until(connection, collection, cursor, Cursor::END, limit).await
}

/// The same, and none behind `end`.
pub async fn claim_until(
    connection: &mut PgConnection,
    collection: &str,
    cursor: Cursor,
    end: Cursor,
    limit: u32,
) -> Result<Vec<Job>, Error> {
    sqlx::query(include_str!("keep_the_plan.sql")).execute(&mut *connection).await?;
    let jobs = sqlx::query_as(include_str!("claim.sql"))
        .bind(collection)
        .bind(cursor.priority)
        .bind(cursor.enqueued_at)
        .bind(cursor.id)
        .bind(i64::from(limit))
        .bind(end.priority)
        .bind(end.enqueued_at)
        .bind(end.id)
        .fetch_all(&mut *connection)
        .await?;
    sqlx::query(include_str!("plan_freely.sql")).execute(connection).await?;
    Ok(jobs)
}
