//! An audit is run by one process at a time. The lock is a session's, on a connection of its own: it ends with the process.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};

use crate::{Error, database};

/// How long to wait for the connection.
const LIMIT: Duration = Duration::from_secs(10);

/// Held while an audit runs.
pub(super) struct Lock {
    _connection: PgConnection,
}

impl Lock {
    /// None: it runs elsewhere.
    pub async fn take(pool: &PgPool, audit: i64) -> Result<Option<Lock>, Error> {
        let mut connection = database::beside(pool, LIMIT).await?;
        let taken: bool = sqlx::query_scalar(include_str!("lock.sql")).bind(audit).fetch_one(&mut connection).await?;
        Ok(taken.then_some(Lock { _connection: connection }))
    }
}
