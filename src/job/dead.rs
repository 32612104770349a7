//! Dead letters: found, understood, scheduled again, or deleted.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};

use crate::Error;

/// Which dead letters. Everything that is given must fit.
#[derive(Clone, Debug, Default)]
pub struct Which {
    pub ids: Option<Vec<i64>>,
    pub collection: Option<String>,
    pub reason: Option<String>,
    pub tag: Option<String>,
    pub since: Option<DateTime<Utc>>,
    /// The very text of the error; empty: those without one.
    pub error: Option<String>,
}

/// A dead letter, for people.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Letter {
    pub id: i64,
    pub name: String,
    pub collection: String,
    pub key: String,
    pub tag: String,
    pub attempts: i32,
    pub reason: String,
    pub last_error: Option<String>,
    pub enqueued_at: DateTime<Utc>,
    pub died_at: DateTime<Utc>,
}

/// Dead letters of one error.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Group {
    pub collection: String,
    pub reason: String,
    pub last_error: Option<String>,
    pub count: i64,
    pub first: DateTime<Utc>,
    pub last: DateTime<Utc>,
    /// The id of its newest dead letter.
    pub example: i64,
}

/// The newest dead letters.
pub async fn dead_letters(connection: &mut PgConnection, which: &Which, limit: i64) -> Result<Vec<Letter>, Error> {
    let query = sqlx::query_as(include_str!("dead_list.sql"));
    let query = query.bind(&which.ids).bind(&which.collection).bind(&which.reason).bind(&which.tag).bind(which.since);
    Ok(query.bind(&which.error).bind(limit).fetch_all(connection).await?)
}

/// The dead letters by error, the most frequent first.
pub async fn dead_groups(connection: &mut PgConnection, which: &Which, limit: i64) -> Result<Vec<Group>, Error> {
    let query = sqlx::query_as(include_str!("dead_groups.sql"));
    let query = query.bind(&which.ids).bind(&which.collection).bind(&which.reason).bind(&which.tag).bind(which.since);
    Ok(query.bind(&which.error).bind(limit).fetch_all(connection).await?)
}

/// Schedules dead letters again. The journal says who did it, in what words.
pub async fn replay(connection: &mut PgConnection, which: &Which, who: &str, words: &str) -> Result<i64, Error> {
    act(connection, sqlx::query("select catchword.replay($1, $2, $3, $4, $5, $6, $7, $8)"), which, who, words).await
}

/// Throws dead letters away. The journal says who did it, in what words.
pub async fn discard(connection: &mut PgConnection, which: &Which, who: &str, words: &str) -> Result<i64, Error> {
    act(connection, sqlx::query("select catchword.discard($1, $2, $3, $4, $5, $6, $7, $8)"), which, who, words).await
}

async fn act(
    connection: &mut PgConnection,
    query: Query<'_, Postgres, PgArguments>,
    which: &Which,
    who: &str,
    words: &str,
) -> Result<i64, Error> {
    use sqlx::Row;
    let query = query.bind(&which.ids).bind(&which.collection).bind(&which.reason).bind(&which.tag).bind(which.since);
    Ok(query.bind(&which.error).bind(who).bind(words).fetch_one(connection).await?.try_get(0)?)
}
