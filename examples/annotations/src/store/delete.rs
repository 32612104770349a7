use sqlx::PgConnection;
use uuid::Uuid;

/// Deletes an annotation softly; `false` if there is none of this id, or it was deleted before.
pub async fn delete(conn: &mut PgConnection, id: Uuid) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(include_str!("delete.sql")).bind(id).execute(conn).await?;
    Ok(done.rows_affected() > 0)
}
