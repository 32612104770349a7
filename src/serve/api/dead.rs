//! Dead letters.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::input::{Asked, Body, Place, tag, text, time};
use crate::job::{Group, Letter};
use crate::serve::actions::{self, Chosen, Count};
use crate::serve::{Problem, Serve, Who};

/// Characters of an error or a reason that one may ask for.
const MOST: usize = 2_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    reason: Option<String>,
    tag: Option<String>,
    since: Option<String>,
    error: Option<String>,
    /// One by one instead of by error.
    #[serde(default)]
    each: bool,
    limit: Option<i64>,
}

/// Those of all collections, by error.
pub(super) async fn all(State(serve): State<Serve>, who: Who) -> Result<Json<Vec<Group>>, Problem> {
    Ok(Json(actions::dead_groups(&serve, &who, None, &Chosen::default()).await?))
}

/// As `catchword dead list --json`, or with `each` as `catchword dead list --each --json`.
pub(super) async fn list(State(serve): State<Serve>, who: Who, place: Place, Asked(asked): Asked<Listed>) -> Result<Response, Problem> {
    let collection = place.collection()?;
    let limit = asked.limit.unwrap_or(actions::MOST_LETTERS);
    if !(1..=actions::MOST_LETTERS).contains(&limit) {
        return Err(Problem::bad("limit", format!("{limit} dead letters"), format!("write 1 to {}", actions::MOST_LETTERS)));
    }
    let since = asked.since.as_deref().map(|since| time("since", since)).transpose()?;
    let chosen = Chosen { ids: None, reason: asked.reason, tag: asked.tag, since, error: asked.error, all: true };
    checked(&chosen)?;
    if asked.each {
        return Ok(Json(actions::dead_letters(&serve, &who, collection, &chosen, limit).await?).into_response());
    }
    let mut groups = actions::dead_groups(&serve, &who, Some(collection), &chosen).await?;
    groups.truncate(limit as usize);
    Ok(Json(groups).into_response())
}

/// As `catchword dead show ID --json`.
pub(super) async fn show(State(serve): State<Serve>, who: Who, place: Place) -> Result<Json<Letter>, Problem> {
    let id = place.id()?;
    let chosen = Chosen { ids: Some(vec![id]), ..Chosen::default() };
    let found = actions::dead_letters(&serve, &who, place.collection()?, &chosen, 1).await?;
    let none = || Problem::not_found(format!("there is no dead letter {id} of this collection"), "list them: GET …/dead-letters?each=true");
    found.into_iter().next().map(Json).ok_or_else(none)
}

/// Schedules them again.
pub(super) async fn replay(State(serve): State<Serve>, who: Who, place: Place, Body(chosen): Body<Chosen>) -> Result<Json<Count>, Problem> {
    checked(&chosen)?;
    Ok(Json(actions::replay(&serve, &who, place.collection()?, &chosen).await?))
}

/// Deletes them.
pub(super) async fn discard(
    State(serve): State<Serve>,
    who: Who,
    place: Place,
    Body(chosen): Body<Chosen>,
) -> Result<Json<Count>, Problem> {
    checked(&chosen)?;
    Ok(Json(actions::discard(&serve, &who, place.collection()?, &chosen).await?))
}

fn checked(chosen: &Chosen) -> Result<(), Problem> {
    if let Some(reason) = &chosen.reason
        && !actions::REASONS.contains(&reason.as_str())
    {
        return Err(Problem::bad("reason", "there is no such reason", format!("write one of {}", actions::REASONS.join(", "))));
    }
    if chosen.ids.as_ref().is_some_and(Vec::is_empty) {
        return Err(Problem::bad("ids", "there are no numbers in it", "leave it out, or name some"));
    }
    if let Some(error) = chosen.error.as_ref().filter(|error| !error.is_empty()) {
        text("error", error, MOST)?;
    }
    tag(chosen.tag.as_deref()).map(|_| ())
}
