//! Schedules many jobs by SQL, and indexes nothing itself. The work is `migrations/0004_reindex.sql`; here are the calls.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection, PgPool};

use crate::{Error, database};

/// Jobs scheduled in one transaction: some tens of milliseconds.
pub const CHUNK: i32 = 10_000;
/// Rows touched in one transaction, for `anew`: their locks are short, and writers wait for them.
pub const TOUCH_CHUNK: i32 = 2_500;

/// What is to be reindexed. No scope, period or keys: everything.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub collection: String,
    /// A scope of the configuration, and its value.
    pub scope: Option<(String, String)>,
    /// Beginning (included) and end (excluded) of a period.
    pub between: Option<(DateTime<Utc>, DateTime<Utc>)>,
    pub keys: Option<Vec<String>>,
    /// Also keys that the view does not return.
    pub hidden: bool,
    /// Write even what agrees.
    pub anew: bool,
    pub tag: Option<String>,
}

impl Request {
    /// Everything of the collection?
    pub fn is_whole(&self) -> bool {
        self.scope.is_none() && self.between.is_none() && self.keys.is_none()
    }

    /// The size of its chunks.
    pub fn chunk(&self) -> i32 {
        chunk_size(self.anew, self.is_whole())
    }
}

fn chunk_size(anew: bool, whole: bool) -> i32 {
    if anew && !whole { TOUCH_CHUNK } else { CHUNK }
}

/// Writes down what is to be reindexed; returns its number.
pub async fn start(pool: &PgPool, request: &Request) -> Result<i64, Error> {
    let mut transaction = database::begin(pool).await?;
    let id = begin(&mut transaction, request).await?;
    transaction.commit().await?;
    Ok(id)
}

/// How many keys a request means. Nothing is scheduled, and no floor is raised.
pub async fn count(pool: &PgPool, request: &Request) -> Result<i64, Error> {
    let mut transaction = database::begin(pool).await?;
    let request = Request {
        anew: false,
        ..request.clone()
    };
    let id = begin(&mut transaction, &request).await?;
    let counted = remaining(&mut transaction, id).await?;
    transaction.rollback().await?;
    Ok(counted)
}

/// How many keys a started reindex still has to schedule.
pub async fn remaining(connection: &mut PgConnection, id: i64) -> Result<i64, Error> {
    Ok(sqlx::query_scalar(include_str!("count.sql")).bind(id).fetch_one(connection).await?)
}

/// Schedules the next chunk, in a transaction of its own. Fewer than `size`: it was the last.
pub async fn chunk(pool: &PgPool, id: i64, size: i32) -> Result<i64, Error> {
    Ok(sqlx::query_scalar(include_str!("chunk.sql"))
        .bind(id)
        .bind(size)
        .fetch_one(pool)
        .await?)
}

/// A reindex that was cut short.
#[derive(Clone, Debug, FromRow)]
pub struct Unfinished {
    pub id: i64,
    pub collection: String,
    pub tag: String,
    pub value: Option<String>,
    pub scheduled: i64,
    pub anew: bool,
    pub whole: bool,
}

impl Unfinished {
    /// The size of its chunks.
    pub fn chunk(&self) -> i32 {
        chunk_size(self.anew, self.whole)
    }
}

/// The reindexes that were cut short, the newest first.
pub async fn unfinished(connection: &mut PgConnection) -> Result<Vec<Unfinished>, Error> {
    Ok(sqlx::query_as(include_str!("unfinished.sql")).fetch_all(connection).await?)
}

async fn begin(connection: &mut PgConnection, request: &Request) -> Result<i64, Error> {
    let (scope, value) = request.scope.clone().unzip();
    let (from, to) = request.between.unzip();
    let started = sqlx::query_scalar(include_str!("start.sql"))
        .bind(&request.collection)
        .bind(scope)
        .bind(value)
        .bind(from)
        .bind(to)
        .bind(&request.keys)
        .bind(request.hidden)
        .bind(request.anew)
        .bind(&request.tag)
        .fetch_one(connection)
        .await;
    Ok(started?)
}
