//! Deletes jobs that a look has satisfied.

use sqlx::PgConnection;

use crate::{Error, crash};

/// Of settled jobs, those that say how fresh search is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fresh {
    /// Live writes.
    pub changes: i64,
    /// Live writes that were seen later than the objective says.
    pub slow: i64,
}

/// Deletes these claimed jobs of a collection, and the dead letters of their keys, and counts how fresh they were.
pub async fn settle(connection: &mut PgConnection, collection: &str, ids: &[i64], fresh: Fresh) -> Result<(), Error> {
    if !ids.is_empty() {
        let settling = sqlx::query(include_str!("settle.sql")).bind(ids).bind(collection).bind(fresh.changes).bind(fresh.slow);
        settling.execute(connection).await?;
        crash::point("settled-before-commit");
    }
    Ok(())
}
