//! New numbers: for rows of a changed related row, for rows that Elasticsearch is ahead of, for documents without a row.

use sqlx::{FromRow, PgConnection, PgPool};

use crate::Error;
use crate::database;

/// The limit of one step, in milliseconds: live writes may have to wait for it.
const STEP: i32 = 2_000;

/// What one step did.
#[derive(Clone, Debug, FromRow)]
pub struct Expanded {
    /// Touch jobs that were taken up. None: nothing is due.
    pub jobs: i32,
    /// Rows that drew a new number.
    pub touched: i32,
    /// Why it could not be done now, or why one waits: a lock, too many rows for the time, an error. The next step should be smaller.
    pub slow: Option<String>,
}

/// Takes up the first due touch jobs of a collection and touches up to so many of their rows, in a short transaction of its own.
pub async fn expand_touches(pool: &PgPool, collection: &str, rows: i32) -> Result<Expanded, Error> {
    let mut transaction = database::begin(pool).await?;
    sqlx::query(include_str!("limit.sql")).bind(STEP).execute(&mut *transaction).await?;
    let expanded = sqlx::query_as(include_str!("expand_touches.sql")).bind(collection).bind(rows).fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(expanded)
}

/// Draws a new number for rows, and writes nothing to them. The keys of those that drew one: a locked row is passed over. No job is left:
/// the caller has one, or leaves one.
pub async fn draw(connection: &mut PgConnection, collection: &str, keys: &[&str]) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar("select catchword.draw($1, $2)").bind(collection).bind(keys).fetch_one(connection).await?)
}

/// Records a new number for keys that have a document and no row; the next pass writes their tombstones.
pub async fn record_gone(connection: &mut PgConnection, collection: &str, keys: &[&str]) -> Result<(), Error> {
    sqlx::query("select catchword.record_gone($1, $2)").bind(collection).bind(keys).execute(connection).await?;
    Ok(())
}

/// Lifts the sequence above a version seen in Elasticsearch, in a transaction of its own: a sequence is never rolled back, and its
/// lock must not wait for a batch. False: the version is too high to be true.
pub async fn raise_revision(pool: &PgPool, above: i64) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("select catchword.raise_revision($1)").bind(above).fetch_one(pool).await?)
}
