use sqlx::PgConnection;
use uuid::Uuid;

use crate::annotation::NewAnnotation;

/// What is known of a key under which a client wants to save an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It is new, and kept from now on.
    New,
    /// The same annotation was saved under it: this one.
    Saved(Uuid),
    /// Another annotation was saved under it.
    Taken,
}

/// Keeps a key for the annotation of this id, unless it is there already.
pub async fn claim_key(conn: &mut PgConnection, key: &str, new: &NewAnnotation, id: Uuid) -> Result<Claim, sqlx::Error> {
    let request = new.to_json();
    let kept = sqlx::query(include_str!("claim_key.sql")).bind(&new.userid).bind(key).bind(&request).bind(id).execute(&mut *conn).await?;
    if kept.rows_affected() > 0 {
        return Ok(Claim::New);
    }
    let (saved, same): (Uuid, bool) =
        sqlx::query_as(include_str!("find_key.sql")).bind(&new.userid).bind(key).bind(&request).fetch_one(conn).await?;
    Ok(if same { Claim::Saved(saved) } else { Claim::Taken })
}
