//! The jobs of one bulk over everything, by its tag.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};

use crate::Error;

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
