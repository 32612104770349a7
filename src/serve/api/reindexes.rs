//! Reindexes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::input::{Body, Place, tag};
use crate::reindex::Progress;
use crate::serve::actions::{self, Changed, NewReindex};
use crate::serve::{Problem, Serve, Who};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rate {
    #[serde(deserialize_with = "Option::deserialize")]
    rate: Option<i32>,
}

pub(super) async fn list(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Vec<Progress>>, Problem> {
    Ok(Json(actions::reindexes(&serve, &who, Some(place.collection()?)).await?))
}

/// With `dry_run` only counted: whoever asks sees how many keys it would be, and then asks without.
pub(super) async fn start(State(serve): State<Serve>, who: Who, place: Place, Body(new): Body<NewReindex>) -> Result<Response, Problem> {
    tag(new.tag.as_deref())?;
    if new.dry_run {
        return Ok(Json(actions::reindex_count(&serve, &who, place.collection()?, &new).await?).into_response());
    }
    Ok((StatusCode::ACCEPTED, Json(actions::reindex_start(&serve, &who, place.collection()?, &new).await?)).into_response())
}

pub(super) async fn show(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Progress>, Problem> {
    Ok(Json(actions::reindex(&serve, &who, place.collection()?, place.id()?).await?))
}

pub(super) async fn cancel(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Changed>, Problem> {
    Ok(Json(actions::reindex_cancel(&serve, &who, place.collection()?, place.id()?).await?))
}

pub(super) async fn pause(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Changed>, Problem> {
    Ok(Json(actions::reindex_pause(&serve, &who, place.collection()?, place.id()?).await?))
}

pub(super) async fn resume(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Changed>, Problem> {
    Ok(Json(actions::reindex_resume(&serve, &who, place.collection()?, place.id()?).await?))
}

pub(super) async fn rate(State(serve): State<Serve>, who: Who, place: Place, Body(rate): Body<Rate>) -> Result<Json<Changed>, Problem> {
    Ok(Json(actions::reindex_rate(&serve, &who, place.collection()?, place.id()?, rate.rate).await?))
}
