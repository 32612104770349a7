//! Does a session stay ours from one statement to the next? Behind a pooler that gives each transaction another one (PgBouncer's
//! `pool_mode = transaction`) it does not: what is set in it is lost, and reaches whoever gets it next. So that is found out before anything
//! is set.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection, Row};
use tokio::time::timeout;

use super::hosts::{connect, name, silent};
use crate::Error;

/// A pooler that nobody else uses shows itself in the first round. Among many who use it, one round may miss by chance.
const ROUNDS: usize = 4;

/// Where sessions were seen to stay.
static STAY: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Refuses an address whose sessions are shared. It is asked once by each process, with two connections.
pub(super) async fn refuse(options: &PgConnectOptions, patience: Duration) -> Result<(), Error> {
    let address = format!("{}/{}/{}", name(options), options.get_database().unwrap_or_default(), options.get_username());
    if STAY.lock().unwrap_or_else(PoisonError::into_inner).contains(&address) {
        return Ok(());
    }
    let asked = timeout(patience, sessions_are_shared(options, patience)).await;
    if asked.unwrap_or_else(|_| Err(silent())).map_err(Error::Postgres)? {
        return Err(Error::refused_with(
            "DATABASE_URL leads to a pooler that gives each transaction another session, so that the settings of a session are lost",
            "give catchword a direct address, or a pooler in session mode; your application may stay with this one",
        ));
    }
    STAY.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
    Ok(())
}

/// One asks for its backend, another one holds a transaction open, and the first asks again. Who has a session of its own sees the same
/// backend twice, and nobody else has it meanwhile.
async fn sessions_are_shared(options: &PgConnectOptions, patience: Duration) -> Result<bool, sqlx::Error> {
    let (mut one, mut other) = (connect(options, patience).await?, connect(options, patience).await?);
    let mut shared = false;
    for _ in 0..ROUNDS {
        let before = backend(&mut one).await?;
        match sqlx::raw_sql("begin").execute(&mut other).await {
            // a pooler that gives each statement another session takes no transactions at all
            Err(sqlx::Error::Database(_)) => return Ok(true),
            begun => begun?,
        };
        let (beside, after) = (backend(&mut other).await?, backend(&mut one).await?);
        sqlx::raw_sql("rollback").execute(&mut other).await?;
        shared |= beside == before || after != before;
        if shared {
            break;
        }
    }
    one.close().await?;
    other.close().await?;
    Ok(shared)
}

/// By the simple protocol: a pooler may not know a prepared statement again.
async fn backend(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::raw_sql(include_str!("backend.sql")).fetch_one(connection).await?.try_get(0)
}
