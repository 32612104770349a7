//! Audits: a worker runs them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;

use super::input::{Body, Place};
use crate::audit::Shown;
use crate::serve::actions::{self, Changed};
use crate::serve::{Problem, Serve, Who};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Audit {
    /// Schedule what differs.
    #[serde(default)]
    repair: bool,
    /// Compare the documents themselves, too.
    #[serde(default)]
    content: bool,
}

pub(super) async fn list(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Vec<Shown>>, Problem> {
    Ok(Json(actions::audits(&serve, &who, Some(place.collection()?)).await?))
}

pub(super) async fn start(
    State(serve): State<Serve>,
    who: Who,
    place: Place,
    Body(audit): Body<Audit>,
) -> Result<(StatusCode, Json<Shown>), Problem> {
    let shown = actions::audit_start(&serve, &who, place.collection()?, audit.repair, audit.content).await?;
    Ok((StatusCode::ACCEPTED, Json(shown)))
}

pub(super) async fn show(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Shown>, Problem> {
    Ok(Json(actions::audit(&serve, &who, place.collection()?, place.id()?).await?))
}

pub(super) async fn stop(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Changed>, Problem> {
    Ok(Json(actions::audit_stop(&serve, &who, place.collection()?, place.id()?).await?))
}
