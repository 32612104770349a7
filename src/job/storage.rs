//! How the queue lies on disk.

use sqlx::{FromRow, PgConnection};

use crate::Error;

/// The table of jobs, as Postgres keeps it.
#[derive(Clone, Debug, FromRow)]
pub struct Storage {
    pub dead_tuples: i64,
    pub table_bytes: i64,
    pub index_bytes: i64,
    /// Jobs ever scheduled.
    pub scheduled: i64,
}

/// Reads it, from catalogs and statistics alone.
pub async fn storage(connection: &mut PgConnection) -> Result<Storage, Error> {
    Ok(sqlx::query_as(include_str!("storage.sql")).fetch_one(connection).await?)
}
