//! Being alone at something that outlives transactions: a lock of a session, on a connection of its own, which ends with the process.
//!
//! Such a lock is an advisory one, and everybody who may connect can take it. So nothing that a tick waits for rests on it, and whoever
//! holds it is named. What lies within a transaction locks a row of `catchword.turn` instead.

use sqlx::{FromRow, PgConnection};

use crate::Error;

/// Held as long as this lives.
pub(crate) struct Alone {
    _connection: PgConnection,
}

/// Who has the lock.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct Holder {
    pid: i32,
    role: String,
    application: String,
    /// May the role do what a worker does? Any other that holds our lock is a stranger.
    is_ours: bool,
}

impl Alone {
    /// Takes the lock, or says who has it.
    pub async fn take(mut connection: PgConnection, what: &str) -> Result<Result<Alone, Holder>, Error> {
        loop {
            if try_take(&mut connection, what).await? {
                return Ok(Ok(Alone { _connection: connection }));
            }
            // none: it was given back meanwhile
            if let Some(holder) = holder(&mut connection, what).await? {
                return Ok(Err(holder));
            }
        }
    }
}

/// Takes the lock on a connection that stays the caller's: it is held as long as the connection is. False: somebody has it.
pub(crate) async fn try_take(connection: &mut PgConnection, what: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar(include_str!("alone_take.sql")).bind(what).fetch_one(connection).await?)
}

/// Who has the lock, if anybody.
pub(crate) async fn holder(connection: &mut PgConnection, what: &str) -> Result<Option<Holder>, Error> {
    Ok(sqlx::query_as(include_str!("alone_holder.sql")).bind(what).fetch_optional(connection).await?)
}

impl Holder {
    /// A stranger's lock is an error; one of our own processes is at work.
    pub fn refuse_stranger(&self, what: &str) -> Result<(), Error> {
        if self.is_ours { Ok(()) } else { Err(Error::Held(format!("{what} waits for a lock that is held by {self}"))) }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Holder { pid, role, application, is_ours } = self;
        write!(f, "process {pid} of role {role} ({application})")?;
        if *is_ours { Ok(()) } else { write!(f, ", which is no worker; end it: select pg_terminate_backend({pid})") }
    }
}
