//! Remembers which jobs were in a request without an answer, so that the next pass tries them in smaller groups.

use sqlx::PgConnection;

use crate::Error;

/// Notes of each of these jobs how many keys were in the smallest request without an answer that its own was in; none: it is no
/// longer suspected.
pub async fn suspect(connection: &mut PgConnection, suspects: &[(i64, Option<i32>)]) -> Result<(), Error> {
    if suspects.is_empty() {
        return Ok(());
    }
    sqlx::query(include_str!("suspect.sql"))
        .bind(suspects.iter().map(|(id, _)| *id).collect::<Vec<_>>())
        .bind(suspects.iter().map(|(_, among)| *among).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}
