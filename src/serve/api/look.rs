//! What changes nothing.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::input::{Asked, Place, span};
use crate::check::Level;
use crate::history::Minute;
use crate::journal::Line;
use crate::serve::{Problem, Serve, Who, actions};
use crate::status::{CollectionStatus, Status};

/// As `catchword status --json`. 503: Postgres does not answer, and this is what is known.
pub(super) async fn status(State(serve): State<Serve>, who: Who) -> Result<Response, Problem> {
    let status = serve.status().await?.only(who.collections.as_deref());
    Ok((code(&status), Json(status)).into_response())
}

/// As `catchword check --json`. 503: it could not tell.
pub(super) async fn check(State(serve): State<Serve>, who: Who) -> Response {
    let report = serve.check().await.only(who.collections.as_deref());
    let code = if report.level == Level::Unknown { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (code, Json(report)).into_response()
}

/// The collections of `catchword status --json`.
pub(super) async fn collections(State(serve): State<Serve>, who: Who) -> Result<Response, Problem> {
    let status = serve.status().await?.only(who.collections.as_deref());
    Ok((code(&status), Json(status.collections)).into_response())
}

/// One of them.
pub(super) async fn collection(State(serve): State<Serve>, who: Who, place: Place) -> Result<Response, Problem> {
    let name = &serve.collection(&who, place.collection()?)?.name;
    let status = serve.status().await?;
    let found: Option<&CollectionStatus> = status.collections.iter().find(|collection| collection.name == *name);
    let found = found.ok_or_else(|| Problem::unknown_collection(name))?;
    Ok((code(&status), Json(found)).into_response())
}

fn code(status: &Status) -> StatusCode {
    if status.postgres.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// How far back, where nothing else is said.
const SPAN: Duration = Duration::from_secs(3 * 3600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    span: Option<String>,
}

/// A row per minute, the oldest first; minutes without a worker are left out.
pub(super) async fn history(
    State(serve): State<Serve>,
    who: Who,
    place: Place,
    Asked(asked): Asked<Of>,
) -> Result<Json<Vec<Minute>>, Problem> {
    let span = asked.span.as_deref().map_or(Ok(SPAN), |text| span("span", text, actions::LONGEST_HISTORY))?;
    Ok(Json(actions::history(&serve, &who, place.collection()?, span).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalOf {
    collection: Option<String>,
    limit: Option<i64>,
}

/// As `catchword journal --json`.
pub(super) async fn journal(State(serve): State<Serve>, who: Who, Asked(asked): Asked<JournalOf>) -> Result<Json<Vec<Line>>, Problem> {
    let limit = asked.limit.unwrap_or(50);
    if !(1..=actions::MOST_LINES).contains(&limit) {
        return Err(Problem::bad("limit", format!("{limit} lines"), format!("write 1 to {}", actions::MOST_LINES)));
    }
    Ok(Json(actions::journal(&serve, &who, asked.collection.as_deref(), limit).await?))
}
