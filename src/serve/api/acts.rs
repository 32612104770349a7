//! Pause and resume.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;

use super::input::{Body, Place, text};
use crate::serve::actions::{self, Changed, MOST_REASON};
use crate::serve::{Problem, Serve, Who};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Why {
    reason: String,
}

pub(super) async fn pause(State(serve): State<Serve>, who: Who, place: Place, Body(why): Body<Why>) -> Result<Json<Changed>, Problem> {
    let reason = text("reason", why.reason.trim(), MOST_REASON)?;
    Ok(Json(actions::pause(&serve, &who, place.collection()?, reason).await?))
}

pub(super) async fn resume(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Changed>, Problem> {
    Ok(Json(actions::resume(&serve, &who, place.collection()?).await?))
}
