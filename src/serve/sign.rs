//! Signing in and out, for people. The form is a page of the console; a key comes in its body and never in an address.

use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use url::form_urlencoded;

use super::{Problem, Serve, guard, session};
use crate::accept::Peer;

/// Tries to sign in per second and address: a person needs one.
const TRIES: f64 = 5.0;

pub(super) fn routes() -> Router<Serve> {
    Router::new().route("/sign-in", post(sign_in)).route("/sign-out", post(sign_out))
}

/// Takes the form's `key` and `next`, and begins a session.
async fn sign_in(State(serve): State<Serve>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Peer>().map_or(String::new(), |peer| peer.0.ip().to_string());
    if let Err(seconds) = serve.rates.take(&format!("sign-in {peer}"), TRIES, Instant::now()) {
        return Err(Problem::too_many("too many tries to sign in from one address", seconds));
    }
    let body: Bytes = axum::body::to_bytes(body, super::BODY_BYTES).await.map_err(|_| guard::too_large())?;
    let field = |name: &str| form_urlencoded::parse(&body).find(|(found, _)| found == name).map(|(_, value)| value.into_owned());
    let next = field("next").filter(|next| is_ours(next)).unwrap_or_else(|| "/".into());
    let found = match serve.whose_key(field("key").unwrap_or_default().trim()).await {
        Ok(found) => found,
        Err(problem) if problem.status == StatusCode::UNAUTHORIZED => {
            let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
            return Ok(go_to(&serve, &format!("/sign-in?refused=1&next={next}")));
        }
        Err(problem) => return Err(problem),
    };
    let no_random = || Problem::internal("the system has no random bytes", "look at the machine");
    let id = serve.sessions.begin(&found.id, Instant::now()).ok_or_else(no_random)?;
    // whoever was signed in before is not any more
    if let Some(before) = session::named(&parts.headers) {
        serve.sessions.end(before);
    }
    tracing::info!(who = found.who.name, "{} signed in", found.who.name);
    Ok(with_cookie(go_to(&serve, &next), &serve, &id, &parts.headers))
}

async fn sign_out(State(serve): State<Serve>, headers: HeaderMap) -> Response {
    if let Some(id) = session::named(&headers) {
        serve.sessions.end(id);
    }
    with_cookie(go_to(&serve, "/sign-in"), &serve, "", &headers)
}

/// A place on this host: nothing that a browser takes for another one.
fn is_ours(next: &str) -> bool {
    next.starts_with('/') && !next.starts_with("//") && next.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
}

fn go_to(serve: &Serve, place: &str) -> Response {
    let place = HeaderValue::try_from(format!("{}{place}", serve.options.base)).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
}

fn with_cookie(mut response: Response, serve: &Serve, id: &str, headers: &HeaderMap) -> Response {
    if let Some(cookie) = session::cookie(id, &serve.options.base, guard::is_by_tls(headers)) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn nobody_is_sent_to_another_host() {
        assert!(is_ours("/") && is_ours("/collections/note?x=%2F"));
        for other in ["", "https://evil", "//evil", "/\\evil", "\\evil", "/ x", "/\nx", "evil"] {
            assert!(!is_ours(other), "{other:?}");
        }
    }
}
