use sqlx::PgConnection;
use uuid::Uuid;

use super::page::page;
use crate::annotation::Change;

/// Changes an annotation; `false` if there is none of this id, or it was deleted.
pub async fn change(conn: &mut PgConnection, id: Uuid, change: &Change) -> Result<bool, sqlx::Error> {
    let page = match &change.target {
        Some(target) => Some(page(conn, &target.normalized, None).await?),
        None => None,
    };
    let done = sqlx::query(include_str!("change.sql"))
        .bind(id)
        .bind(&change.groupid)
        .bind(&change.text)
        .bind(&change.tags)
        .bind(change.target.as_ref().map(|target| &target.uri))
        .bind(change.target.as_ref().map(|target| &target.normalized))
        .bind(change.shared)
        .bind(page)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() > 0)
}
