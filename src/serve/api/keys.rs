//! One key: what both sides have of it, and whether it has arrived.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::input::{Asked, Place, decoded, no_text, span, text};
use crate::serve::{Problem, Serve, Who, actions, input_error};
use crate::wait::{Became, Until};

/// The longest wait: below the time that a request may take.
const LONGEST: Duration = Duration::from_secs(30);
const USUAL: Duration = Duration::from_secs(5);
/// Bytes of a key, as Elasticsearch takes them.
const MOST_KEY: usize = 512;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    until: Option<UntilWord>,
    limit: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UntilWord {
    Indexed,
    Searchable,
}

/// What became of a key that was waited for.
#[derive(Serialize)]
struct Waited {
    key: String,
    /// The revision that was waited for; none: there was never such a row.
    revision: Option<i64>,
    /// `indexed`, `searchable`, `superseded`, `waiting`, `dead`.
    became: &'static str,
    /// What is known, where it has not come.
    why: Option<String>,
    /// Is what was waited for there?
    has_come: bool,
}

/// `keys/KEY` and `keys/KEY/wait`. A key may hold slashes, so both are told apart here: a last `/wait` that is not written as `%2Fwait` is
/// no part of the key.
pub(super) async fn key(
    State(serve): State<Serve>,
    who: Who,
    place: Place,
    Asked(asked): Asked<Wait>,
    raw: super::RawKey,
) -> Result<Response, Problem> {
    let collection = &serve.collection(&who, place.collection()?)?.name;
    let (raw, waits) = raw.0.strip_suffix("/wait").map_or((raw.0.as_str(), false), |key| (key, true));
    let key = decoded(raw).ok_or_else(|| no_text("key"))?;
    text("key", &key, MOST_KEY)?;
    if !waits {
        if asked.until.is_some() || asked.limit.is_some() {
            return Err(Problem::bad("until", "there is nothing to wait for here", format!("ask for …/keys/{raw}/wait")));
        }
        return Ok(Json(actions::explain(&serve, &who, collection, &key).await?).into_response());
    }
    let until = match asked.until.unwrap_or(UntilWord::Indexed) {
        UntilWord::Indexed => Until::Indexed,
        UntilWord::Searchable => Until::Searchable,
    };
    let limit = asked.limit.as_deref().map_or(Ok(USUAL), |limit| span("limit", limit, LONGEST))?;
    let waited = serve.catchword.wait_until(collection, [&key], until, limit).await.map_err(input_error("key"))?;
    let waited = waited.into_iter().next().ok_or_else(|| Problem::internal("nothing is known of the key", "try again"))?;
    let has_come = waited.has_come(until);
    let (became, why) = match waited.became {
        Became::Indexed => ("indexed", None),
        Became::Searchable => ("searchable", None),
        Became::Superseded => ("superseded", None),
        Became::Waiting(why) => ("waiting", Some(why)),
        Became::Dead(reason) => ("dead", Some(reason)),
    };
    Ok(Json(Waited { key: waited.key, revision: waited.revision, became, why, has_come }).into_response())
}
