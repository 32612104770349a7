use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::{Service, id, json, no_annotation};
use crate::problem::Problem;
use crate::store;

/// Reads an annotation from Postgres: by its id, a client sees its own write at once.
pub(super) async fn show(State(service): State<Service>, path: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let id = id(path)?;
    let annotation = store::find(service.catchword.pool(), id).await?;
    annotation.map(|annotation| json(StatusCode::OK, annotation)).ok_or_else(|| no_annotation(id))
}
