use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use catchword::Stored;
use sqlx::PgConnection;

use super::{COLLECTION, Service, body, direct, id, json, no_annotation};
use crate::annotation::Change;
use crate::problem::Problem;
use crate::store;

/// Changes the fields that the client names.
pub(super) async fn change(
    State(service): State<Service>,
    path: Result<Path<String>, PathRejection>,
    request: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let id = id(path)?;
    let change = Change::read(&body(request)?)?;
    let kept = service
        .catchword
        .store_and_schedule(COLLECTION, async |tx: &mut PgConnection| {
            if !store::change(tx, id, &change).await? {
                return Err(no_annotation(id));
            }
            let annotation = store::find(&mut *tx, id).await?.ok_or_else(|| no_annotation(id))?;
            Ok(Stored::new(annotation, [id]))
        })
        .await?;
    Ok((direct(&kept.direct), json(StatusCode::OK, kept.value)).into_response())
}
