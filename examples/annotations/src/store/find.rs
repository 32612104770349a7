use sqlx::PgExecutor;
use uuid::Uuid;

/// The JSON of an annotation as the view builds it: what the index holds is what a client gets.
/// `None` if there is none of this id, or it was deleted.
pub async fn find(conn: impl PgExecutor<'_>, id: Uuid) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar(include_str!("find.sql")).bind(id).fetch_optional(conn).await
}
