//! The jobs and dead letters of one key, for `explain`.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection};

use crate::Error;

/// An open job.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Open {
    pub id: i64,
    pub tag: String,
    pub priority: i32,
    pub attempts: i32,
    pub last_error: Option<String>,
    pub enqueued_at: DateTime<Utc>,
    pub scheduled_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub due: bool,
}

/// A dead letter.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Dead {
    pub id: i64,
    pub tag: String,
    pub attempts: i32,
    pub reason: String,
    pub last_error: Option<String>,
    pub died_at: DateTime<Utc>,
}

/// The open jobs of a key.
pub async fn open_of_key(connection: &mut PgConnection, collection: &str, key: &str) -> Result<Vec<Open>, Error> {
    Ok(sqlx::query_as(include_str!("open_of_key.sql")).bind(collection).bind(key).fetch_all(connection).await?)
}

/// Will an open touch come to this key, which must be one that the collection can have?
pub async fn touch_is_open(connection: &mut PgConnection, collection: &str, key: &str) -> Result<bool, Error> {
    let asked = sqlx::query_scalar("select catchword.touched_soon($1, $2)").bind(collection).bind([key]);
    let reached: Vec<String> = asked.fetch_one(connection).await?;
    Ok(!reached.is_empty())
}

/// Why a touch of a collection fails, the oldest of them; none: no touch fails.
pub async fn failing_touch(connection: &mut PgConnection, collection: &str) -> Result<Option<String>, Error> {
    Ok(sqlx::query_scalar(include_str!("failing_touch.sql")).bind(collection).fetch_optional(connection).await?)
}

/// The dead letters of a key.
pub async fn dead_of_key(connection: &mut PgConnection, collection: &str, key: &str) -> Result<Vec<Dead>, Error> {
    Ok(sqlx::query_as(include_str!("dead_of_key.sql")).bind(collection).bind(key).fetch_all(connection).await?)
}
