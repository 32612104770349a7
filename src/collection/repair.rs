//! New numbers: for rows of a changed related row, for rows that Elasticsearch is ahead of, for documents without a row.

use std::collections::HashSet;

use sqlx::{Connection, PgConnection, PgPool, Row};

use crate::Error;
use crate::database;

/// Rows touched in one transaction: as many as a batch, so that their locks are short.
const CHUNK: i32 = 2_500;

/// What one expansion did.
#[derive(Clone, Copy, Debug)]
pub struct Expanded {
    /// Touch jobs that were taken up. None: nothing is due.
    pub jobs: i32,
    /// Rows that drew a new revision.
    pub touched: i32,
}

/// Takes up the first due touch jobs of a collection and touches a chunk of their rows, in a short transaction of its own.
pub async fn expand_touches(pool: &PgPool, collection: &str) -> Result<Expanded, Error> {
    let mut transaction = database::begin(pool).await?;
    let row = sqlx::query(include_str!("expand_touches.sql")).bind(collection).bind(CHUNK).fetch_one(&mut *transaction).await?;
    let expanded = Expanded { jobs: row.try_get("jobs")?, touched: row.try_get("touched")? };
    transaction.commit().await?;
    Ok(expanded)
}

/// Gives rows a new revision, and so a job. A locked row is passed over: it is being changed and brings its own. An error of the
/// table's own triggers undoes nothing but the touch.
pub async fn touch(connection: &mut PgConnection, collection: &str, keys: &[&str]) -> Result<HashSet<String>, Error> {
    let mut savepoint = connection.begin().await?;
    let touched = sqlx::query_scalar(include_str!("touch.sql")).bind(collection).bind(keys).fetch_all(&mut *savepoint).await;
    match touched {
        Ok(touched) => {
            savepoint.commit().await?;
            Ok(touched.into_iter().collect())
        }
        Err(sqlx::Error::Database(_)) => {
            savepoint.rollback().await?;
            Ok(HashSet::new())
        }
        Err(error) => Err(error.into()),
    }
}

/// Records a new number for keys that have a document and no row; the next pass writes their tombstones.
pub async fn record_gone(connection: &mut PgConnection, collection: &str, keys: &[&str]) -> Result<(), Error> {
    sqlx::query(include_str!("record_gone.sql")).bind(collection).bind(keys).execute(connection).await?;
    Ok(())
}

/// Lifts the sequence above a version seen in Elasticsearch, in a transaction of its own: a sequence is never rolled back, and its
/// lock must not wait for a batch. False: the version is too high to be true.
pub async fn raise_revision(pool: &PgPool, above: i64) -> Result<bool, Error> {
    Ok(sqlx::query_scalar(include_str!("raise_revision.sql")).bind(above).fetch_one(pool).await?)
}
