//! The pool: sessions whose settings the promises rest on, and the only way to begin a transaction.

use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgArguments, PgConnectOptions, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool, Postgres, Row, SqlSafeStr, SqlStr, Transaction};
use tokio::time::timeout;

use crate::Error;
use crate::config::DatabaseUrl;

/// How long to wait for a connection before reporting that Postgres is down. Shorter than a tick, longer than a restart of a pooler.
const ACQUIRE: Duration = Duration::from_secs(10);
/// A connection that was in use so shortly before is not asked whether it lives: that would be one round trip more for every write.
const TRUSTED: Duration = Duration::from_millis(500);
/// How long after a begin was cut short every connection is asked. The server ends an idle transaction after a minute (session.sql).
const DOUBTED: Duration = Duration::from_secs(90);

/// Opens the pool for what catchword asks itself. No connection is made yet.
pub fn pool(options: &PgConnectOptions, size: u32) -> PgPool {
    asked_before(size).after_connect(|connection, _| Box::pin(prepare_session(connection))).connect_lazy_with(options.clone())
}

/// A pool for what the caller asks: its names are looked up as in any other session of the role, and its policies apply.
pub fn open_pool(options: &PgConnectOptions, size: u32) -> PgPool {
    let pool = asked_before(size).after_connect(|connection, _| {
        Box::pin(async move {
            prepare_session(connection).await?;
            sqlx::raw_sql(include_str!("open_session.sql")).execute(&mut *connection).await?;
            sqlx::raw_sql(include_str!("open_policies.sql")).execute(connection).await?;
            Ok(())
        })
    });
    pool.connect_lazy_with(options.clone())
}

fn asked_before(size: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(ACQUIRE)
        // the pool's own test would ask each time, and less
        .test_before_acquire(false)
        .before_acquire(|connection, used| {
            let trusted = used.idle_for < TRUSTED && !Doubt::is_raised();
            Box::pin(async move { if trusted { Ok(true) } else { is_clean(connection).await } })
        })
}

/// A pool for reads that somebody waits for: what takes longer than a quarter of a second is given up by the server itself.
pub fn quick_pool(options: &PgConnectOptions, size: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(ACQUIRE)
        .after_connect(|connection, _| {
            Box::pin(async move {
                prepare_session(connection).await?;
                sqlx::raw_sql(include_str!("quick_session.sql")).execute(connection).await?;
                Ok(())
            })
        })
        .connect_lazy_with(options.clone())
}

/// One connection with the same settings, for work that must not wait for the pool.
pub async fn connection(url: &DatabaseUrl) -> Result<PgConnection, Error> {
    let mut connection = PgConnection::connect_with(&options(url)?).await.map_err(Error::Postgres)?;
    prepare_session(&mut connection).await.map_err(Error::Postgres)?;
    Ok(connection)
}

/// One more connection to where the pool leads, for readings that must not wait for it: a statement has half of `limit`, a lock a tenth.
pub(crate) async fn beside(pool: &PgPool, limit: Duration) -> Result<PgConnection, Error> {
    let mut connection = PgConnection::connect_with(&pool.connect_options()).await.map_err(Error::Postgres)?;
    prepare_session(&mut connection).await.map_err(Error::Postgres)?;
    let part = |n| format!("{}ms", limit.as_millis() / n);
    let set = "select set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false)";
    sqlx::query(set).bind(part(2)).bind(part(10)).execute(&mut connection).await.map_err(Error::Postgres)?;
    Ok(connection)
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

/// Where a URL leads.
pub fn options(url: &DatabaseUrl) -> Result<PgConnectOptions, Error> {
    Ok(as_catchword(PgConnectOptions::from_str(url.expose()).map_err(|_| Error::DatabaseUrl)?))
}

/// The same server and role as the connections of a pool have, under our own name.
pub fn options_of(pool: &PgPool) -> PgConnectOptions {
    as_catchword(pool.connect_options().as_ref().clone())
}

fn as_catchword(options: PgConnectOptions) -> PgConnectOptions {
    options.application_name("catchword").disable_statement_logging()
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
