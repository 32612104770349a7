//! Schedules many jobs by SQL, and indexes nothing itself. The work is `migrations/0006_reindex.sql`; here are the calls.
//!
//! What is to be reindexed is written down (`start`). Workers then schedule it piece by piece (`feed`), and at most 100,000 jobs of one
//! reindex are open. So the queue stays small, and a reindex goes on when the terminal is closed.

mod act;
mod feed;
mod progress;

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

pub use act::{cancel, pause, resume, set_rate};
pub use feed::{Fed, feed, feed_all, feed_one};
pub use progress::{Progress, State, list, show};

use crate::{Error, crash, database};

/// Jobs scheduled in one transaction: some tens of milliseconds.
pub const CHUNK: i32 = 10_000;
/// Rows touched in one transaction, for `rewrite`: their locks are short, and writers wait for them.
pub const TOUCH_CHUNK: i32 = 2_500;
/// The lock of `--all --rewrite` is given back after this, so that traffic never queues behind it.
const LOCK_TIMEOUT: &str = "set local lock_timeout = '2s'";
/// Tries for the lock of `--all --rewrite`: about half a minute in all.
const LOCK_TRIES: u32 = 12;

/// What is to be reindexed. No scope, period, keys or condition: everything.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub collection: String,
    /// A scope of the configuration, and its value.
    pub scope: Option<(String, String)>,
    /// Beginning (included) and end (excluded) of a period.
    pub between: Option<(DateTime<Utc>, DateTime<Utc>)>,
    pub keys: Option<Vec<String>>,
    /// A condition in SQL over a row of the table; refused unless this role owns catchword's schema.
    pub condition: Option<String>,
    /// Also keys that the view does not return.
    pub hidden: bool,
    /// Write even what agrees.
    pub rewrite: bool,
    pub tag: Option<String>,
    /// The most keys that are scheduled in a second.
    pub rate: Option<i32>,
    /// How many keys it is, if they were counted: for whoever follows it.
    pub expected: Option<i64>,
    /// Who asks, for the journal.
    pub who: Option<String>,
}

impl Request {
    /// Everything of the collection?
    pub fn is_whole(&self) -> bool {
        self.scope.is_none() && self.between.is_none() && self.keys.is_none() && self.condition.is_none()
    }

    /// The size of its chunks.
    pub fn chunk(&self) -> i32 {
        if self.rewrite && !self.is_whole() { TOUCH_CHUNK } else { CHUNK }
    }
}

/// Writes down what is to be reindexed; returns its number. Workers schedule it. Everything `rewrite` locks the table for a moment, which
/// waits for its writers and makes others wait: the lock is given back after two seconds and tried again.
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

/// Schedules the next chunk, in a transaction of its own and however many jobs are open: how many keys, and whether they were the last.
pub async fn chunk(pool: &PgPool, id: i64, size: i32) -> Result<(i64, bool), Error> {
    let scheduled = sqlx::query_scalar("select catchword.reindex_chunk($1, $2)").bind(id).bind(size).fetch_one(pool).await?;
    crash::point("chunk-committed");
    let finished = sqlx::query_scalar(include_str!("finished.sql")).bind(id).fetch_one(pool).await?;
    Ok((scheduled, finished))
}

async fn begin(connection: &mut PgConnection, request: &Request) -> Result<i64, Error> {
    if let Some(condition) = &request.condition {
        return begin_where(connection, request, condition).await;
    }
    let (scope, value) = request.scope.clone().unzip();
    let (from, to) = request.between.unzip();
    let started = sqlx::query_scalar("select catchword.reindex_start($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)")
        .bind(&request.collection)
        .bind(scope)
        .bind(value)
        .bind(from)
        .bind(to)
        .bind(&request.keys)
        .bind(request.hidden)
        .bind(request.rewrite)
        .bind(&request.tag)
        .bind(request.rate)
        .bind(request.expected)
        .bind(&request.who)
        .fetch_one(connection)
        .await;
    Ok(started?)
}

/// Nobody is granted that function: Postgres itself refuses whoever does not own it.
async fn begin_where(connection: &mut PgConnection, request: &Request, condition: &str) -> Result<i64, Error> {
    let started = sqlx::query_scalar("select catchword.reindex_where($1, $2, $3, $4, $5, $6, $7, $8)")
        .bind(&request.collection)
        .bind(condition)
        .bind(request.hidden)
        .bind(request.rewrite)
        .bind(&request.tag)
        .bind(request.rate)
        .bind(request.expected)
        .bind(&request.who)
        .fetch_one(connection)
        .await
        .map_err(Error::from);
    match started {
        Err(error) if is_not_granted(&error) => Err(Error::refused_with(
            "a condition is SQL, and only the role that owns the schema catchword may run one",
            "connect as the migrator, or name the column as a scope in the configuration",
        )),
        started => started,
    }
}

/// The function itself, and not a table that the condition reads.
fn is_not_granted(error: &Error) -> bool {
    error.sqlstate().as_deref() == Some(Error::INSUFFICIENT_PRIVILEGE) && error.to_string().contains("reindex_where")
}
