use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use catchword::{Became, Until};
use serde_json::json;

use super::{COLLECTION, Service, id, no_annotation};
use crate::problem::Problem;
use crate::store;

/// Says whether search shows an annotation as it is now; of a deleted one, whether search no longer finds it. It looks once.
pub(super) async fn status(State(service): State<Service>, path: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let id = id(path)?;
    let is_there = store::find(service.catchword.pool(), id).await?.is_some();
    let waited = service.catchword.wait_until(COLLECTION, [id], Until::Searchable, Duration::ZERO).await?.pop();
    let waited = waited.filter(|waited| waited.revision.is_some()).ok_or_else(|| no_annotation(id))?;
    let is_shown = waited.has_come(Until::Searchable);
    // why it waits is the operator's business, and may name servers
    let (word, reason) = match (&waited.became, is_there) {
        (Became::Dead(reason), _) => ("dead", Some(reason)),
        (_, true) if is_shown => ("searchable", None),
        (_, false) if is_shown => ("gone", None),
        (Became::Indexed, _) => ("indexed", None),
        _ => ("waiting", None),
    };
    let body = json!({ "id": id, "status": word, "searchable": is_there && is_shown, "revision": waited.revision, "reason": reason });
    Ok(Json(body).into_response())
}
