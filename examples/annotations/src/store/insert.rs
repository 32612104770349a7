use sqlx::PgConnection;
use uuid::Uuid;

use super::page::page;
use crate::annotation::NewAnnotation;

/// Saves an annotation under this id, and its page if it is new.
pub async fn insert(conn: &mut PgConnection, id: Uuid, new: &NewAnnotation) -> Result<(), sqlx::Error> {
    let page = page(conn, &new.target.normalized, new.title.as_deref()).await?;
    sqlx::query(include_str!("insert.sql"))
        .bind(id)
        .bind(&new.userid)
        .bind(&new.groupid)
        .bind(&new.text)
        .bind(&new.tags)
        .bind(&new.target.uri)
        .bind(&new.target.normalized)
        .bind(&new.references)
        .bind(new.shared)
        .bind(page)
        .execute(conn)
        .await?;
    Ok(())
}
