//! Whether a write has reached the index: what SQL says of it, and waiting until it has.

mod schedule;
mod standing;
mod until;

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgDatabaseError;

use crate::common::World;

/// What a statement is refused with, and the hint.
async fn refusal(world: &World, sql: &str) -> (String, String) {
    let error = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&world.pool).await.unwrap_err();
    let error = error.into_database_error().unwrap();
    let hint = error.downcast_ref::<PgDatabaseError>().hint().unwrap_or_default().to_owned();
    (error.message().to_owned(), hint)
}
