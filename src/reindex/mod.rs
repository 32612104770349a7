//! Schedules many jobs by SQL, and indexes nothing itself. The work is `migrations/0006_reindex.sql`; here are the calls.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgPool};

use crate::printable::printable;
use crate::{Error, crash, database};

/// Jobs scheduled in one transaction: some tens of milliseconds.
pub const CHUNK: i32 = 10_000;
/// Rows touched in one transaction, for `rewrite`: their locks are short, and writers wait for them.
pub const TOUCH_CHUNK: i32 = 2_500;
/// The lock of `--all --rewrite` is given back after this, so that traffic never queues behind it.
const LOCK_TIMEOUT: &str = "set local lock_timeout = '2s'";
/// Tries for the lock of `--all --rewrite`: about half a minute in all.
const LOCK_TRIES: u32 = 12;

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
    pub rewrite: bool,
    pub tag: Option<String>,
}

impl Request {
    /// Everything of the collection?
    pub fn is_whole(&self) -> bool {
        self.scope.is_none() && self.between.is_none() && self.keys.is_none()
    }

    /// The size of its chunks.
    pub fn chunk(&self) -> i32 {
        chunk_size(self.rewrite, self.is_whole())
    }
}

fn chunk_size(rewrite: bool, whole: bool) -> i32 {
    if rewrite && !whole { TOUCH_CHUNK } else { CHUNK }
}

/// Writes down what is to be reindexed; returns its number. Everything `rewrite` locks the table for a moment, which waits for its
/// writers and makes others wait: the lock is given back after two seconds and tried again.
pub async fn start(pool: &PgPool, request: &Request) -> Result<i64, Error> {
    let mut tries = 0;
    loop {
        let mut transaction = database::begin(pool).await?;
        sqlx::query(LOCK_TIMEOUT).execute(&mut *transaction).await?;
        match begin(&mut transaction, request).await {
            Ok(id) => {
                transaction.commit().await?;
                return Ok(id);
            }
            Err(error) if error.sqlstate().as_deref() == Some(Error::LOCK_NOT_AVAILABLE) && tries < LOCK_TRIES => tries += 1,
            Err(error) if error.sqlstate().as_deref() == Some(Error::LOCK_NOT_AVAILABLE) => {
                return Err(Error::refused_with(
                    format!("the table of {} is too busy: a long transaction holds it", request.collection),
                    "end that one, or repeat this later",
                ));
            }
            Err(error) => return Err(error),
        }
        transaction.rollback().await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// How many keys a request means; none: more than could be counted in the time a statement has. Nothing is scheduled, and no floor
/// is raised.
pub async fn count(pool: &PgPool, request: &Request) -> Result<Option<i64>, Error> {
    let mut transaction = database::begin(pool).await?;
    let request = Request { rewrite: false, ..request.clone() };
    let id = begin(&mut transaction, &request).await?;
    let counted = remaining(&mut transaction, id).await?;
    transaction.rollback().await?;
    Ok(counted)
}

/// How many keys a started reindex still has to schedule; none: more than could be counted.
pub async fn remaining(connection: &mut PgConnection, id: i64) -> Result<Option<i64>, Error> {
    let counted = sqlx::query_scalar("select catchword.reindex_count($1)").bind(id).fetch_one(connection).await;
    match counted.map_err(Error::from) {
        Err(error) if error.sqlstate().as_deref() == Some(Error::QUERY_CANCELED) => Ok(None),
        counted => counted.map(Some),
    }
}

/// Schedules the next chunk, in a transaction of its own: how many keys, and whether they were the last.
pub async fn chunk(pool: &PgPool, id: i64, size: i32) -> Result<(i64, bool), Error> {
    let scheduled = sqlx::query_scalar("select catchword.reindex_chunk($1, $2)").bind(id).bind(size).fetch_one(pool).await?;
    crash::point("chunk-committed");
    let finished = sqlx::query_scalar(include_str!("finished.sql")).bind(id).fetch_one(pool).await?;
    Ok((scheduled, finished))
}

/// A reindex that is not finished: it runs somewhere, or was cut short.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Unfinished {
    pub id: i64,
    pub collection: String,
    pub tag: String,
    pub value: Option<String>,
    pub scheduled: i64,
    pub rewrite: bool,
    pub whole: bool,
    pub started_at: DateTime<Utc>,
    pub started_by: String,
}

impl Unfinished {
    /// The size of its chunks.
    pub fn chunk(&self) -> i32 {
        chunk_size(self.rewrite, self.whole)
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_deref().map_or(String::new(), |value| format!(" {}", printable(value)));
        write!(
            f,
            "reindex {} of {} ({}{value}), started {} by {}, {} scheduled",
            self.id,
            self.collection,
            printable(&self.tag),
            self.started_at.format("%Y-%m-%d %H:%M UTC"),
            printable(&self.started_by),
            self.scheduled
        )
    }
}

/// The reindexes that are not finished, the newest first: of one collection, or one of them, if it is given.
pub async fn unfinished(connection: &mut PgConnection, collection: Option<&str>, id: Option<i64>) -> Result<Vec<Unfinished>, Error> {
    let found = sqlx::query_as(include_str!("unfinished.sql")).bind(collection).bind(id);
    Ok(found.fetch_all(connection).await?)
}

async fn begin(connection: &mut PgConnection, request: &Request) -> Result<i64, Error> {
    let (scope, value) = request.scope.clone().unzip();
    let (from, to) = request.between.unzip();
    let started = sqlx::query_scalar("select catchword.reindex_start($1, $2, $3, $4, $5, $6, $7, $8, $9)")
        .bind(&request.collection)
        .bind(scope)
        .bind(value)
        .bind(from)
        .bind(to)
        .bind(&request.keys)
        .bind(request.hidden)
        .bind(request.rewrite)
        .bind(&request.tag)
        .fetch_one(connection)
        .await;
    Ok(started?)
}
