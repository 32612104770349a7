//! One process at a time works on the rebuild of a collection. The lock is its connection's: a kill frees it at once.

use sqlx::PgConnection;

use crate::{Catchword, Error};

pub(super) struct Lock {
    /// Taken out of the pool: whoever borrowed it next would hold the lock.
    _connection: PgConnection,
}

impl Lock {
    pub async fn take(catchword: &Catchword, collection: &str) -> Result<Lock, Error> {
        let refused = || {
            Error::Refused(format!(
                "a rebuild of {collection} is being worked on by another process; wait for it, or stop it first; see: catchword status"
            ))
        };
        Lock::try_take(catchword, collection).await?.ok_or_else(refused)
    }

    /// None: another process has it.
    pub async fn try_take(catchword: &Catchword, collection: &str) -> Result<Option<Lock>, Error> {
        let mut connection = catchword.inner.pool.acquire().await?.detach();
        let taken = sqlx::query_scalar(include_str!("lock.sql")).bind(collection).fetch_one(&mut connection).await?;
        Ok(if taken { Some(Lock { _connection: connection }) } else { None })
    }
}
