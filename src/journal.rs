//! The journal of what operators did.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection};

use crate::Error;

/// A line of the journal.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Line {
    pub at: DateTime<Utc>,
    pub who: String,
    pub what: String,
    pub collection: Option<String>,
    pub detail: Option<String>,
    pub count: Option<i64>,
}

/// The newest lines, the newest first.
pub async fn journal(connection: &mut PgConnection, collection: Option<&str>, limit: i64) -> Result<Vec<Line>, Error> {
    let collections = collection.map(|name| [name.to_owned()]);
    journal_of(connection, collections.as_ref().map(<[String; 1]>::as_slice), limit).await
}

/// The same of these collections; none: of everything.
pub async fn journal_of(connection: &mut PgConnection, collections: Option<&[String]>, limit: i64) -> Result<Vec<Line>, Error> {
    Ok(sqlx::query_as(include_str!("journal.sql")).bind(collections).bind(limit).fetch_all(connection).await?)
}
