//! Whether what an audit scheduled is still on its way.

use sqlx::PgConnection;

use crate::Error;

/// Is a job open that an audit scheduled?
pub async fn open_audit(connection: &mut PgConnection, collection: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar(include_str!("open_audit.sql")).bind(collection).fetch_one(connection).await?)
}
