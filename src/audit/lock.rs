//! An audit is run by one process at a time.

use std::time::Duration;

use sqlx::PgPool;

use crate::alone::Alone;
use crate::{Error, database};

/// How long to wait for the connection.
const LIMIT: Duration = Duration::from_secs(10);

/// The lock of an audit. It runs elsewhere: refused. A stranger has the lock: an error that names him.
pub(super) async fn take(pool: &PgPool, audit: i64) -> Result<Alone, Error> {
    let connection = database::beside(pool, LIMIT).await?;
    let what = format!("audit {audit}");
    match Alone::take(connection, &format!("catchword.audit.{audit}")).await? {
        Ok(alone) => Ok(alone),
        Err(holder) => {
            holder.refuse_stranger(&what)?;
            Err(Error::refused(format!("{what} is being run by another process: {holder}")))
        }
    }
}
