//! The pools: sessions whose settings the promises rest on, at the server that can be written to, and the only way to begin a transaction.

mod hosts;
mod pooler;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgArguments, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, PgPool, Postgres, Row, SqlSafeStr, SqlStr, Transaction};
use tokio::time::timeout;

use crate::Error;
use crate::config::DatabaseUrl;

pub(crate) use hosts::Hosts;

/// How long to wait for a connection before reporting that Postgres is down, unless the address has a `connect_timeout`. Shorter than a
/// tick, longer than a restart of a pooler.
const ACQUIRE: Duration = Duration::from_secs(10);
/// A connection that was in use so shortly before is not asked whether it lives: that would be one round trip more for every write.
const TRUSTED: Duration = Duration::from_millis(500);
/// How long after a begin was cut short every connection is asked. The server ends an idle transaction after a minute (session.sql).
const DOUBTED: Duration = Duration::from_secs(90);

/// Opens the pool for what catchword asks itself. No connection is made yet.
pub(crate) fn pool(hosts: &Hosts, size: u32) -> PgPool {
    let ours = hosts.clone();
    let pool = asked_before(hosts, size).after_connect(move |connection, _| {
        let hosts = ours.clone();
        Box::pin(async move { prepare_pooled(connection, &hosts).await })
    });
    pool.connect_lazy_with(hosts.first().clone())
}

/// A pool for what the caller asks: its names are looked up as in any other session of the role, and its policies apply.
pub(crate) fn open_pool(hosts: &Hosts, size: u32) -> PgPool {
    let ours = hosts.clone();
    let pool = asked_before(hosts, size).after_connect(move |connection, _| {
        let hosts = ours.clone();
        Box::pin(async move {
            prepare_pooled(connection, &hosts).await?;
            sqlx::raw_sql(include_str!("open_session.sql")).execute(&mut *connection).await?;
            sqlx::raw_sql(include_str!("open_policies.sql")).execute(connection).await?;
            Ok(())
        })
    });
    pool.connect_lazy_with(hosts.first().clone())
}

fn asked_before(hosts: &Hosts, size: u32) -> PgPoolOptions {
    let several = hosts.are_several();
    PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(hosts.patience())
        // the pool's own test would ask each time, and less
        .test_before_acquire(false)
        .before_acquire(move |connection, used| {
            let trusted = used.idle_for < TRUSTED && !Doubt::is_raised();
            Box::pin(async move {
                if trusted {
                    return Ok(true);
                }
                // one that was made while none of several could be written to
                Ok(is_clean(connection).await? && (!several || hosts::is_writable(connection).await.unwrap_or(false)))
            })
        })
}

/// A pool for reads that somebody waits for: what takes longer than a quarter of a second is given up by the server itself.
pub(crate) fn quick_pool(hosts: &Hosts, size: u32) -> PgPool {
    let ours = hosts.clone();
    PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(hosts.patience())
        .after_connect(move |connection, _| {
            let hosts = ours.clone();
            Box::pin(async move {
                prepare_pooled(connection, &hosts).await?;
                sqlx::raw_sql(include_str!("quick_session.sql")).execute(connection).await?;
                Ok(())
            })
        })
        .connect_lazy_with(hosts.first().clone())
}

/// One connection with the same settings, for work that must not wait for the pool.
pub async fn connection(url: &DatabaseUrl) -> Result<PgConnection, Error> {
    let hosts = Hosts::of(url)?;
    let options = hosts.find().await?;
    prepared(&options, hosts.patience()).await
}

/// One more connection to where the pool leads, for readings that must not wait for it: a statement has half of `limit`, a lock a tenth.
pub(crate) async fn beside(pool: &PgPool, limit: Duration) -> Result<PgConnection, Error> {
    let (options, patience) = (pool.connect_options(), pool.options().get_acquire_timeout());
    pooler::refuse(&options, patience).await?;
    let mut connection = prepared(&options, patience).await?;
    let part = |n| format!("{}ms", limit.as_millis() / n);
    let set = "select set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false)";
    sqlx::query(set).bind(part(2)).bind(part(10)).execute(&mut connection).await.map_err(Error::Postgres)?;
    Ok(connection)
}

async fn prepared(options: &sqlx::postgres::PgConnectOptions, patience: Duration) -> Result<PgConnection, Error> {
    let mut connection = hosts::connect(options, patience).await.map_err(Error::Postgres)?;
    prepare_session(&mut connection).await.map_err(Error::Postgres)?;
    Ok(connection)
}

/// Do the two lead to the same database of the same server?
pub(crate) async fn lead_to_one_database(one: &PgPool, other: &PgPool) -> Result<bool, Error> {
    let ask = async |pool: &PgPool| {
        // the simple protocol: an application's pooler may not know a prepared statement again
        let row = sqlx::raw_sql(include_str!("which_database.sql")).fetch_one(pool).await?;
        Ok::<(i64, i64), sqlx::Error>((row.try_get("database")?, row.try_get("started")?))
    };
    Ok(ask(one).await? == ask(other).await?)
}

/// A connection for what comes round each minute. The pool asks whether a connection is well each time it lends one; this one is asked for
/// nothing but the work, and no transaction is ever open on it.
#[derive(Default)]
pub(crate) struct Kept(tokio::sync::Mutex<Option<PgConnection>>);

impl Kept {
    /// Asks what may be asked twice: if the connection turns out to be lost, it is asked once more on a new one.
    pub async fn ask(&self, pool: &PgPool, question: impl Fn() -> Question) -> Result<Vec<PgRow>, Error> {
        let mut place = self.0.lock().await;
        // taken out, so that one that fails or is cut short is closed
        if let Some(mut connection) = place.take() {
            match timeout(ACQUIRE, question().fetch_all(&mut connection)).await {
                Ok(Ok(rows)) => {
                    *place = Some(connection);
                    return Ok(rows);
                }
                Ok(Err(error)) if !is_lost(&error) => return Err(error.into()),
                _ => {}
            }
        }
        let mut connection = pool.acquire().await?.detach();
        let rows = question().fetch_all(&mut connection).await?;
        *place = Some(connection);
        Ok(rows)
    }

    /// Closes it: the next question may find another server under the same name.
    pub async fn close(&self) {
        self.0.lock().await.take();
    }
}

/// A statement with its values.
pub(crate) type Question = Query<'static, Postgres, PgArguments>;

/// Not an answer to the statement: the server ended the session, or nothing came at all.
fn is_lost(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().map(|answer| answer.code().unwrap_or_default());
    code.is_none_or(|code| code.starts_with("57P") || code.starts_with("08"))
}

/// Begins a transaction. A begin that is cancelled half-way leaves a connection with an open transaction in the pool (sqlx 0.9.0):
/// from then on every connection is asked before it is used, until the server itself has ended that one. A connection that was
/// trusted and is dead is noticed here, before anything was done: then another is taken. `read committed` whatever the server's
/// default: an older snapshot would see rows behind the index.
pub async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, Error> {
    begin_by(pool, "begin isolation level read committed").await
}

/// The same by this statement, which may say more.
pub async fn begin_by(pool: &PgPool, statement: impl SqlSafeStr) -> Result<Transaction<'static, Postgres>, Error> {
    let statement = statement.into_sql_str();
    let trusting = !Doubt::is_raised();
    let begun = match begin_once(pool, statement.clone()).await {
        Ok(transaction) => return Ok(transaction),
        Err(error @ (sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed)) => Err(error),
        Err(_) if trusting => {
            Doubt::raise();
            begin_once(pool, statement).await
        }
        Err(error) => Err(error),
    };
    begun.map_err(Error::Postgres)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
async fn begin_once(pool: &PgPool, statement: SqlStr) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let half = Doubt;
    let begun = pool.begin_with(statement).await;
    std::mem::forget(half);
    begun
}

/// Raised when it is dropped: a connection may have come back inside a transaction. It is of the whole process, because no pool tells
/// of which it was.
struct Doubt;

static RAISED: Mutex<Option<Instant>> = Mutex::new(None);

impl Doubt {
    fn raise() {
        *RAISED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn is_raised() -> bool {
        RAISED.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|raised| raised.elapsed() < DOUBTED)
    }
}

impl Drop for Doubt {
    fn drop(&mut self) {
        Doubt::raise();
    }
}

/// A new connection of a pool. Where there are several hosts it may lead to one that cannot be written to: then it is exchanged. Nothing is
/// set before it is known that the session stays ours: in another's it would do harm.
async fn prepare_pooled(connection: &mut PgConnection, hosts: &Hosts) -> Result<(), sqlx::Error> {
    if !hosts.are_several() {
        pooler::refuse(hosts.first(), hosts.patience()).await.map_err(|refused| sqlx::Error::Configuration(refused.into()))?;
    } else if !hosts::is_writable(connection).await?
        && let Ok((_, found)) = hosts.find_one_of_several().await
    {
        *connection = found;
    }
    prepare_session(connection).await
}

/// The path is pinned, so that nothing but Postgres' own functions and ours runs as this role, whoever may create in a schema of its path.
/// `row_security` off makes a policy raise an error instead of hiding rows, which would look deleted. The limits are the server's,
/// because a query that is dropped here goes on there.
async fn prepare_session(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(concat!(include_str!("pinned.sql"), ";\n", include_str!("session.sql"))).execute(connection).await?;
    Ok(())
}

/// A connection that came back inside a transaction is thrown away before anybody gets it, and so is one that does not answer: for an
/// error the pool would log a warning.
async fn is_clean(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let asked = sqlx::raw_sql(include_str!("is_clean.sql")).fetch_one(connection).await;
    Ok(asked.and_then(|row| row.try_get(0)).unwrap_or(false))
}
