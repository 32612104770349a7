use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use catchword::Stored;
use serde_json::json;
use sqlx::PgConnection;

use super::{COLLECTION, Service, direct, id, no_annotation};
use crate::problem::Problem;
use crate::store;

/// Deletes an annotation softly: the row stays, the view stops returning it, and so it leaves the
/// index. Rows that are purged from the table leave it just the same.
pub(super) async fn delete(State(service): State<Service>, path: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let id = id(path)?;
    let kept = service
        .catchword
        .store_and_schedule(COLLECTION, async |tx: &mut PgConnection| {
            if !store::delete(tx, id).await? {
                return Err(no_annotation(id));
            }
            Ok(Stored::new((), [id]))
        })
        .await?;
    Ok((direct(&kept.direct), Json(json!({ "id": id, "deleted": true }))).into_response())
}
