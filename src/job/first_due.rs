//! Is anything due, and what was it last refused for?

use sqlx::{FromRow, PgConnection};

use crate::Error;

/// A job that is due.
#[derive(Clone, Debug, FromRow)]
pub struct FirstDue {
    /// `index` or `touch`.
    pub name: String,
    pub last_error: Option<String>,
}

/// The first due job of a collection; none: nothing is due, as far as the first 1,000 tell.
pub async fn first_due(connection: &mut PgConnection, collection: &str) -> Result<Option<FirstDue>, Error> {
    Ok(sqlx::query_as(include_str!("first_due.sql")).bind(collection).fetch_optional(connection).await?)
}

/// Which of these collections have jobs that were dated while Postgres' clock was ahead.
pub async fn dated_ahead(connection: &mut PgConnection, collections: &[String]) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar(include_str!("dated_ahead.sql")).bind(collections).fetch_all(connection).await?)
}
