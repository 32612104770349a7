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

/// What to run where somebody changed the table's own settings for vacuum.
pub const REPAIR_OPTIONS: &str = "run: alter table catchword.job reset (autovacuum_enabled), set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0)";

/// The table's own settings, each as name=value.
pub async fn options(connection: &mut PgConnection) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar(include_str!("options.sql")).fetch_one(connection).await?)
}
