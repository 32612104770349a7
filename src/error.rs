//! What can go wrong, named by what happened. A refused document is not here: a partly failed batch is a result.

use crate::{config, elastic};

/// An error of the library. Its text is one sentence, with the remedy if there is one, and never holds a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration or the environment is wrong.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// The address is one that Postgres' own client does not take; it is not repeated, because it holds a password.
    #[error("DATABASE_URL is not an address of Postgres; write postgres://user:password@host:5432/database")]
    DatabaseUrl,
    /// Postgres answered with an error, or not at all.
    #[error("{}", postgres_sentence(.0))]
    Postgres(#[source] sqlx::Error),
    /// None of several hosts answers and can be written to.
    #[error("no host of DATABASE_URL can be written to: {0}; start the primary, or add its host")]
    NoPrimary(String),
    /// Elasticsearch answered with an error, or not at all.
    #[error(transparent)]
    Elastic(#[from] elastic::Error),
    /// The answer to a commit was lost: the write may be there or not. Nothing was indexed; if it is there, its job is too.
    #[error("the answer to the commit was lost, so the write may be there or not; look before you repeat it")]
    CommitUnknown(#[source] sqlx::Error),
    /// Something is in place that catchword will not work on.
    #[error("{}", sentence(what, remedy.as_deref()))]
    Refused {
        /// What is in place, or missing.
        what: String,
        /// What to do about it, if something helps.
        remedy: Option<String>,
    },
    /// The view of a collection cannot be read at all: a missing name, a missing right.
    #[error("the view cannot be read: {0}")]
    View(String),
    /// The schema is another version's.
    #[error("{}", sentence(what, remedy.as_deref()))]
    Schema {
        /// How it differs.
        what: String,
        /// What to do about it, if something helps.
        remedy: Option<String>,
    },
    /// Somebody else holds a lock that only catchword should take.
    #[error("{0}")]
    Held(String),
    /// The process is stopping.
    #[error("stopping")]
    Stopped,
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Error {
        Error::Postgres(error)
    }
}

impl Error {
    /// A refusal without a remedy.
    pub fn refused(what: impl Into<String>) -> Error {
        Error::Refused { what: what.into(), remedy: None }
    }

    /// A refusal, and what to do about it. The two are printed as `what; remedy`.
    pub fn refused_with(what: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Refused { what: what.into(), remedy: Some(remedy.into()) }
    }

    /// The text without its remedy, where the two are kept apart; else all of it.
    pub(crate) fn what(&self) -> String {
        match self {
            Error::Refused { what, .. } | Error::Schema { what, .. } => what.clone(),
            Error::Elastic(error) => error.what(),
            other => other.to_string(),
        }
    }

    /// The remedy, where it is kept apart.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            Error::Refused { remedy, .. } | Error::Schema { remedy, .. } => remedy.clone(),
            Error::Elastic(error) => error.remedy(),
            _ => None,
        }
    }
}

/// What, and the remedy if there is one.
fn sentence(what: &str, remedy: Option<&str>) -> String {
    remedy.map_or(what.to_owned(), |remedy| format!("{what}; {remedy}"))
}

/// SQLSTATEs that somebody here acts on, by Postgres' own names.
impl Error {
    /// A missing right; also what only an owner may do.
    pub(crate) const INSUFFICIENT_PRIVILEGE: &str = "42501";
    /// A lock that was not had within `lock_timeout`.
    pub(crate) const LOCK_NOT_AVAILABLE: &str = "55P03";
    /// Two that waited for each other, resolved at our cost.
    pub(crate) const DEADLOCK_DETECTED: &str = "40P01";
    /// Over `statement_timeout`, or ended by somebody.
    pub(crate) const QUERY_CANCELED: &str = "57014";
    /// Over `transaction_timeout`.
    pub(crate) const TRANSACTION_TIMEOUT: &str = "25P04";
}

/// The server's own sentence and hint; sqlx' Display repeats the error code and hides the hint.
fn postgres_sentence(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(database) => {
            let hint = database.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().and_then(|e| e.hint());
            match hint {
                Some(hint) => format!("{}; {hint}", database.message()),
                None if database.code().as_deref() == Some(Error::INSUFFICIENT_PRIVILEGE) => format!(
                    "postgres says: {}; another role is meant for this, or it lacks its rights: run migrations/grants.sql, again after each migrate",
                    database.message()
                ),
                None => format!("postgres says: {}", database.message()),
            }
        }
        sqlx::Error::PoolTimedOut => {
            "no connection to Postgres within 10 s or its connect_timeout; is it up, and has it connections left?".into()
        }
        sqlx::Error::Io(error) => format!("cannot reach Postgres: {error}"),
        other => format!("postgres: {other}"),
    }
}

impl Error {
    /// Was Postgres not there, or not able to answer? Another attempt may find it well; a missing table or a wrong password stays.
    pub fn is_absence(&self) -> bool {
        match self {
            Error::Postgres(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|code| ["08", "53", "57"].iter().any(|class| code.starts_with(class)))
            }
            Error::Postgres(_) | Error::NoPrimary(_) => true,
            _ => false,
        }
    }

    /// Was there too much to do in the time, or a lock in the way? It may succeed a little later, or with less.
    pub(crate) fn is_too_slow(&self) -> bool {
        let codes = [Error::QUERY_CANCELED, Error::TRANSACTION_TIMEOUT, Error::LOCK_NOT_AVAILABLE, Error::DEADLOCK_DETECTED];
        self.sqlstate().is_some_and(|code| codes.contains(&&*code))
    }

    /// The SQLSTATE, if Postgres gave one.
    pub fn sqlstate(&self) -> Option<String> {
        match self {
            Error::Postgres(sqlx::Error::Database(error)) => error.code().map(|code| code.into_owned()),
            _ => None,
        }
    }
}
