//! The jobs of one bulk over everything, by its tag.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};

use crate::Error;

/// Jobs of a bulk are counted up to here: some tens of milliseconds.
const LIMIT: i64 = 100_000;

/// How far a bulk has come.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct OpenOfTag {
    /// Jobs that are left; at 100,000 it means "at least".
    pub left: i64,
    /// About how many jobs stood before the first that is left.
    pub position: i64,
}

impl OpenOfTag {
    /// How many of so many jobs are through.
    pub fn progress(&self, scheduled: i64) -> (u64, u64) {
        let through = if self.left < LIMIT { scheduled - self.left } else { self.position.min(scheduled - self.left) };
        (through.max(0) as u64, scheduled.max(0) as u64)
    }
}

/// How many jobs of a bulk are left.
pub async fn open_of_tag(
    connection: &mut PgConnection,
    collection: &str,
    tag: &str,
    base: Option<DateTime<Utc>>,
) -> Result<OpenOfTag, Error> {
    let found = sqlx::query_as(include_str!("open_of_tag.sql")).bind(collection).bind(tag).bind(LIMIT).bind(base);
    Ok(found.fetch_one(connection).await?)
}

/// A job of a bulk.
#[derive(Clone, Debug, FromRow)]
pub struct OfTag {
    pub id: i64,
    pub key: String,
    pub enqueued_at: DateTime<Utc>,
    pub attempts: i32,
    pub last_error: Option<String>,
}

/// How far a reader of a bulk's jobs has come.
#[derive(Clone, Copy, Debug)]
pub struct Place(DateTime<Utc>, i64);

impl Place {
    pub const TOP: Place = Place(DateTime::UNIX_EPOCH, 0);

    pub fn behind(job: &OfTag) -> Place {
        Place(job.enqueued_at, job.id)
    }
}

/// The next jobs of a bulk.
pub async fn of_tag(connection: &mut PgConnection, collection: &str, tag: &str, behind: Place, limit: i64) -> Result<Vec<OfTag>, Error> {
    let found = sqlx::query_as(include_str!("of_tag.sql")).bind(collection).bind(tag).bind(behind.0).bind(behind.1).bind(limit);
    Ok(found.fetch_all(connection).await?)
}
