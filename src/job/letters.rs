//! Dead letters that have nothing left to say: their keys are in step without them.

use std::time::Duration;

use sqlx::PgConnection;

use crate::Error;

/// Keys of dead letters that are older than this.
pub async fn old_letters(connection: &mut PgConnection, collection: &str, age: Duration, limit: i64) -> Result<Vec<String>, Error> {
    let found = sqlx::query_scalar(include_str!("old_letters.sql")).bind(collection).bind(age.as_secs_f64()).bind(limit);
    Ok(found.fetch_all(connection).await?)
}

/// Throws away the old letters of these keys.
pub async fn clear_letters(connection: &mut PgConnection, collection: &str, keys: &[&str], age: Duration) -> Result<(), Error> {
    let cleared = sqlx::query(include_str!("clear_letters.sql")).bind(collection).bind(keys).bind(age.as_secs_f64());
    cleared.execute(connection).await?;
    Ok(())
}
