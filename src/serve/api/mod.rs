//! `/api/v1`: what the commands tell and do, as JSON. `openapi.json` describes it; a test compares the two.

mod acts;
mod audits;
mod dead;
mod input;
mod jobs;
mod keys;
mod look;
mod rebuilds;
mod reindexes;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::routing::{MethodRouter, get, post, put};

use super::{Problem, Serve};

/// What describes all of it.
const DESCRIPTION: &str = include_str!("openapi.json");

/// Everything below `/api/v1`.
pub(super) fn routes() -> Router<Serve> {
    table().into_iter().fold(Router::new(), |router, (path, _, handler)| router.route(path, handler))
}

/// Each address with its method, so that a test can compare it with the description.
fn table() -> Vec<(&'static str, &'static str, MethodRouter<Serve>)> {
    vec![
        ("/openapi.json", "get", get(async || ([(CONTENT_TYPE, "application/json")], DESCRIPTION))),
        ("/status", "get", get(look::status)),
        ("/check", "get", get(look::check)),
        ("/journal", "get", get(look::journal)),
        ("/dead-letters", "get", get(dead::all)),
        ("/collections", "get", get(look::collections)),
        ("/collections/{collection}", "get", get(look::collection)),
        ("/collections/{collection}/history", "get", get(look::history)),
        ("/collections/{collection}/jobs", "post", post(jobs::schedule)),
        ("/collections/{collection}/keys/{*key}", "get", get(keys::key)),
        ("/collections/{collection}/pause", "post", post(acts::pause)),
        ("/collections/{collection}/resume", "post", post(acts::resume)),
        ("/collections/{collection}/dead-letters", "get", get(dead::list)),
        ("/collections/{collection}/dead-letters/{id}", "get", get(dead::show)),
        ("/collections/{collection}/dead-letters/replay", "post", post(dead::replay)),
        ("/collections/{collection}/dead-letters/discard", "post", post(dead::discard)),
        ("/collections/{collection}/reindexes", "get", get(reindexes::list)),
        ("/collections/{collection}/reindexes", "post", post(reindexes::start)),
        ("/collections/{collection}/reindexes/{id}", "get", get(reindexes::show)),
        ("/collections/{collection}/reindexes/{id}/cancel", "post", post(reindexes::cancel)),
        ("/collections/{collection}/reindexes/{id}/pause", "post", post(reindexes::pause)),
        ("/collections/{collection}/reindexes/{id}/resume", "post", post(reindexes::resume)),
        ("/collections/{collection}/reindexes/{id}/rate", "put", put(reindexes::rate)),
        ("/collections/{collection}/audits", "get", get(audits::list)),
        ("/collections/{collection}/audits", "post", post(audits::start)),
        ("/collections/{collection}/audits/{id}", "get", get(audits::show)),
        ("/collections/{collection}/audits/{id}/stop", "post", post(audits::stop)),
        ("/collections/{collection}/rebuild", "get", get(rebuilds::show)),
        ("/collections/{collection}/rebuild", "post", post(rebuilds::start)),
        ("/collections/{collection}/rebuild/back", "post", post(rebuilds::back)),
        ("/collections/{collection}/rebuild/abort", "post", post(rebuilds::abort)),
    ]
}

/// What stands behind `keys/`, as it was sent.
struct RawKey(String);

impl<S: Send + Sync> FromRequestParts<S> for RawKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<RawKey, Problem> {
        // what the router takes apart is decoded already, and then nobody knows which slash was part of the key
        let key = parts.uri.path().splitn(5, '/').nth(4);
        key.map(|key| RawKey(key.to_owned())).ok_or_else(|| Problem::bad("key", "there is no key", "write …/keys/KEY"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::{DESCRIPTION, table};

    #[test]
    fn the_description_has_every_address_and_no_other() {
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let described: BTreeSet<(String, String)> = description["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone())))
            .collect();
        // one route takes both: a key may hold slashes
        let both = |path: &str| match path.strip_suffix("{*key}") {
            Some(before) => vec![format!("{before}{{key}}"), format!("{before}{{key}}/wait")],
            None => vec![path.to_owned()],
        };
        let there: BTreeSet<(String, String)> =
            table().iter().flat_map(|(path, method, _)| both(path).into_iter().map(|path| (path, (*method).to_owned()))).collect();
        assert_eq!(described, there);
    }
}
