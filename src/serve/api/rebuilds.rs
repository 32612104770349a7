//! The rebuild of a collection: one at a time.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::input::{Body, Place, span};
use crate::rebuild::{LONGEST_KEEP, Rebuild};
use crate::serve::actions::{self, Rebuilding, given};
use crate::serve::{Problem, Serve, Who};

/// How long the old index is kept, where nothing else is said.
const KEEP: Duration = Duration::from_secs(24 * 3600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    /// Tell what would be done, and do nothing.
    #[serde(default)]
    dry_run: bool,
    #[serde(default, deserialize_with = "given")]
    keep: Option<String>,
}

pub(super) async fn show(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Rebuilding>, Problem> {
    Ok(Json(actions::rebuild(&serve, &who, place.collection()?).await?))
}

pub(super) async fn start(State(serve): State<Serve>, who: Who, place: Place, Body(start): Body<Start>) -> Result<Response, Problem> {
    let collection = place.collection()?;
    let keep = start.keep.as_deref().map_or(Ok(KEEP), |keep| span("keep", keep, LONGEST_KEEP))?;
    if start.dry_run {
        return Ok(Json(actions::rebuild_plan(&serve, &who, collection).await?).into_response());
    }
    Ok((StatusCode::ACCEPTED, Json(actions::rebuild_start(&serve, &who, collection, keep).await?)).into_response())
}

pub(super) async fn back(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Rebuild>, Problem> {
    Ok(Json(actions::rebuild_back(&serve, &who, place.collection()?).await?))
}

pub(super) async fn abort(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Rebuild>, Problem> {
    Ok(Json(actions::rebuild_abort(&serve, &who, place.collection()?).await?))
}
