//! Deletes jobs that a look has satisfied.

use sqlx::PgConnection;

use crate::{Error, crash};

/// Deletes these claimed jobs, and the dead letters of their keys.
pub async fn settle(connection: &mut PgConnection, ids: &[i64]) -> Result<(), Error> {
    if !ids.is_empty() {
        sqlx::query(include_str!("settle.sql")).bind(ids).execute(connection).await?;
        crash::point("settled-before-commit");
    }
    Ok(())
}
