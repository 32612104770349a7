//! Scheduling by hand, from any language.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;

use super::input::{Body, Place, span, tag, text};
use crate::serve::actions::{self, Scheduled, given};
use crate::serve::{Problem, Serve, Who};

/// Keys in one request.
const MOST_KEYS: usize = 100;
/// Characters of a key.
const MOST_KEY: usize = 512;
/// As `catchword.schedule` has it.
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Jobs {
    keys: Vec<String>,
    #[serde(default, deserialize_with = "given")]
    tag: Option<String>,
    #[serde(default, deserialize_with = "given")]
    delay: Option<String>,
}

/// Schedules keys: a worker looks at each until both sides agree.
pub(super) async fn schedule(
    State(serve): State<Serve>,
    who: Who,
    place: Place,
    Body(jobs): Body<Jobs>,
) -> Result<(StatusCode, Json<Scheduled>), Problem> {
    let collection = place.collection()?;
    if jobs.keys.is_empty() || jobs.keys.len() > MOST_KEYS {
        return Err(Problem::bad("keys", format!("there are {} keys", jobs.keys.len()), format!("send 1 to {MOST_KEYS} in one request")));
    }
    for (n, key) in jobs.keys.iter().enumerate() {
        text(&format!("keys[{n}]"), key, MOST_KEY)?;
    }
    let delay = jobs.delay.as_deref().map_or(Ok(Duration::ZERO), |delay| span("delay", delay, LONGEST_DELAY))?;
    let scheduled = actions::schedule(&serve, &who, collection, &jobs.keys, tag(jobs.tag.as_deref())?, delay).await?;
    Ok((StatusCode::ACCEPTED, Json(scheduled)))
}
