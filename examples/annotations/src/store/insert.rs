use sqlx::PgConnection;
use uuid::Uuid;

use super::page::page;
use crate::annotation::NewAnnotation;

/// Saves an annotation, and its page if it is new; returns its id.
pub async fn insert(conn: &mut PgConnection, new: &NewAnnotation) -> Result<Uuid, sqlx::Error> {
    let page = page(conn, &new.target.normalized, new.title.as_deref()).await?;
    sqlx::query_scalar(include_str!("insert.sql"))
        .bind(&new.userid)
        .bind(&new.groupid)
        .bind(&new.text)
        .bind(&new.tags)
        .bind(&new.target.uri)
        .bind(&new.target.normalized)
        .bind(&new.references)
        .bind(new.shared)
        .bind(page)
        .fetch_one(conn)
        .await
}
