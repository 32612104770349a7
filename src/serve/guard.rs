//! What stands between a connection and a handler: limits, who asks, where the request comes from, and what every answer carries.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, LOCATION};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use url::form_urlencoded::byte_serialize;

use super::keys::Found;
use super::origin::{Only, is_from_here, is_meant_for, is_safe, only};
use super::{BODY_BYTES, Problem, Role, Serve, Via, Who, session};
use crate::accept::{OutsideBase, Peer};
use crate::printable::printable;

/// A request that takes longer is answered with 503. Longer than `status`, `check` and the longest wait take.
pub(super) const WHOLE: Duration = Duration::from_secs(40);
/// The longest path with its query, in bytes: a key has 512 bytes at most, and each may be written as three.
const PATH_BYTES: usize = 4 * 1024;
/// Requests a second of whoever has no key of his own.
const WITHOUT_KEY: f64 = 50.0;
/// Characters of a name that a proxy may say.
const USER: usize = 64;

/// Nothing is loaded from elsewhere, no script or style stands in a page, nobody puts a page into a frame.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
                              form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (HeaderName::from_static("content-security-policy"), CONTENT_POLICY),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cache-control"), "no-store"),
];

/// The outermost: whatever happens inside, an answer comes out within the time, with the headers that every answer has.
pub(super) async fn finish(State(serve): State<Serve>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let (started, is_page) = (Instant::now(), !is_api(&path));
    let answered = tokio::time::timeout(WHOLE, AssertUnwindSafe(next.run(request)).catch_unwind()).await;
    let mut response = match answered {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => Problem::internal("the request could not be worked on", "see the log of catchword serve").into_response(),
        Err(_) => Problem::unavailable(format!("it took longer than {} s", WHOLE.as_secs())).into_response(),
    };
    if is_page && let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let who = response.extensions().get::<Who>().cloned();
        let (status, headers) = (response.status(), response.headers().clone());
        response = (serve.pages.problem)(&serve, who.as_ref(), &problem);
        *response.status_mut() = status;
        for name in [axum::http::header::RETRY_AFTER, axum::http::header::ALLOW] {
            if let Some(value) = headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
    }
    for (name, value) in HEADERS {
        // a file whose name holds its hash may be kept
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    log(&method, &path, response.extensions().get::<Who>(), response.status(), started);
    response
}

/// A line for what may have changed something; others are for whoever wants to see everything. Never a header or a body.
fn log(method: &Method, path: &str, who: Option<&Who>, status: StatusCode, started: Instant) {
    let (who, status) = (who.map_or("nobody", |who| &who.name), status.as_u16());
    let (who, path, ms) = (printable(who), printable(path), started.elapsed().as_millis() as u64);
    if is_safe(method) {
        tracing::debug!(who, status, ms, "{method} {path}");
    } else {
        tracing::info!(who, status, ms, "{method} {path}");
    }
}

/// Refuses what nobody needs to look at.
pub(super) async fn admit(State(serve): State<Serve>, request: Request, next: Next) -> Response {
    match refused(&serve, &request) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn refused(serve: &Serve, request: &Request) -> Option<Problem> {
    let headers = request.headers();
    if request.extensions().get::<OutsideBase>().is_some() {
        return Some(Problem::not_found("this server answers below its base path only", format!("begin with {}/", serve.options.base)));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|bytes| bytes > BODY_BYTES as u64) {
        return Some(too_large());
    }
    if request.uri().path_and_query().is_some_and(|path| path.as_str().len() > PATH_BYTES) {
        let problem = Problem::new(
            StatusCode::URI_TOO_LONG,
            "too-long",
            "The path is too long",
            format!("a path with its query has {PATH_BYTES} bytes at most"),
            "shorten it",
        );
        return Some(problem);
    }
    if matches!(only(headers, HOST), Only::Many) {
        return Some(Problem::bad("Host", "there is more than one Host header", "send one"));
    }
    // whoever is behind a trusted proxy comes by its name
    if serve.options.loopback && !serve.is_from_proxy(request.extensions()) && !is_meant_for(request.uri(), headers, &serve.options.hosts) {
        return Some(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "misdirected",
            "The request is meant for another host",
            "the Host header names neither this machine nor a name that was given with --host",
            "ask for 127.0.0.1 or localhost; behind a proxy, start catchword serve with --host NAME",
        ));
    }
    None
}

pub(super) fn too_large() -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too-large",
        "The request is too large",
        format!("a body has {} KB at most", BODY_BYTES / 1024),
        "send less in one request",
    )
}

/// Finds out who asks, and lets through who may be here at all.
pub(super) async fn identify(State(serve): State<Serve>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let found = match serve.identified(&parts).await {
        Ok(found) => found,
        Err(problem) => return serve.turned_away(&parts, problem),
    };
    if let Some(found) = &found {
        let caller = format!("{:?} {}", found.who.via, found.id);
        if let Err(seconds) = serve.rates.take(&caller, found.rate, Instant::now()) {
            return Problem::too_many(format!("{} may send {} requests a second", found.who.name, found.rate), seconds).into_response();
        }
        parts.extensions.insert(found.who.clone());
    }
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if let Some(found) = found {
        response.extensions_mut().insert(found.who);
    }
    response
}

impl Serve {
    /// Who asks. None: nobody in particular, for what is everybody's.
    async fn identified(&self, request: &Parts) -> Result<Option<Found>, Problem> {
        let (headers, is_public) = (&request.headers, is_public(request.uri.path()));
        let has_key = !matches!(only(headers, AUTHORIZATION), Only::None);
        // no browser adds a key on its own account, so nobody else's page sends one
        let is_excused = has_key && !is_public;
        if !is_safe(&request.method) && !is_excused && !is_from_here(headers) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "cross-site",
                "The request does not come from a page of this host",
                "a request that changes something needs an API key, or Sec-Fetch-Site: same-origin, or an Origin equal to the Host",
                "send the key in the header Authorization: Bearer cwk_…, or use the page itself",
            ));
        }
        if is_public {
            return Ok(None);
        }
        match self.known(request).await? {
            Some(found) => Ok(Some(found)),
            None => Err(Problem::unauthorized()),
        }
    }

    async fn known(&self, request: &Parts) -> Result<Option<Found>, Problem> {
        let headers = &request.headers;
        match only(headers, AUTHORIZATION) {
            Only::One(value) => {
                let key = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, key)| key.trim());
                return self.whose_key(key.unwrap_or_default()).await.map(Some);
            }
            Only::Many => return Err(Problem::unauthorized()),
            Only::None => {}
        }
        if let Some(key) = session::named(headers).and_then(|id| self.sessions.key_of(id, Instant::now())) {
            return self.whose_session(&key).await.map(Some);
        }
        if let Some(user) = self.proxy_user(request)? {
            let role = self.options.proxy.as_ref().map_or(Role::Reader, |proxy| proxy.role);
            return Ok(Some(self.without_key(format!("proxy:{user}"), role, Via::Proxy)));
        }
        Ok(self.is_open_to(request).then(|| self.without_key("open".into(), Role::Reader, Via::Open)))
    }

    fn without_key(&self, name: String, role: Role, via: Via) -> Found {
        let role = if self.options.read_only { Role::Reader } else { role };
        Found { id: name.clone(), rate: WITHOUT_KEY, who: Who { name, role, collections: None, via, unconfirmed: false } }
    }

    /// Is the other end of the connection a proxy that is trusted?
    fn is_from_proxy(&self, extensions: &Extensions) -> bool {
        let peer = extensions.get::<Peer>();
        let networks = self.options.proxy.as_ref().map(|proxy| &proxy.networks);
        matches!((peer, networks), (Some(peer), Some(all)) if all.iter().any(|network| network.contains(peer.0.ip())))
    }

    /// The user that a trusted proxy names. What anybody else says in that header is not believed.
    fn proxy_user(&self, request: &Parts) -> Result<Option<String>, Problem> {
        let Some(proxy) = self.options.proxy.as_ref().filter(|_| self.is_from_proxy(&request.extensions)) else { return Ok(None) };
        match only(&request.headers, proxy.header.clone()) {
            Only::None | Only::One("") => Ok(None),
            Only::One(user) if user.len() <= USER && user.bytes().all(|b| b.is_ascii_graphic()) => Ok(Some(user.to_owned())),
            _ => Err(Problem::unauthorized()),
        }
    }

    /// May whoever is on this machine look? Not what a proxy brings: that may come from anywhere.
    fn is_open_to(&self, request: &Parts) -> bool {
        let brought = ["forwarded", "x-forwarded-for", "x-real-ip", "via"].iter().any(|name| request.headers.contains_key(*name));
        let here = request.extensions.get::<Peer>().is_some_and(|peer| peer.0.ip().to_canonical().is_loopback());
        self.options.open && here && !brought
    }

    /// A person is sent to where one signs in; a program is told what is wrong.
    fn turned_away(&self, request: &Parts, problem: Problem) -> Response {
        let path = request.uri.path();
        if problem.status != StatusCode::UNAUTHORIZED || is_api(path) || !is_safe(&request.method) {
            return problem.into_response();
        }
        let wanted = request.uri.path_and_query().map_or("/", |path| path.as_str());
        let next: String = byte_serialize(wanted.as_bytes()).collect();
        let place =
            if wanted == "/" { format!("{}/sign-in", self.options.base) } else { format!("{}/sign-in?next={next}", self.options.base) };
        match HeaderValue::try_from(place) {
            Ok(place) => (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response(),
            Err(_) => problem.into_response(),
        }
    }
}

/// Is an answer for programs?
pub(super) fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// What needs no key: where one signs in, what the pages look like, what the API is, and whether anybody is there.
fn is_public(path: &str) -> bool {
    matches!(path, "/sign-in" | "/sign-out" | "/healthz" | "/favicon.ico" | "/api/v1/openapi.json") || path.starts_with("/assets/")
}

/// Did the browser come by TLS, as far as a proxy says? It only decides whether a cookie is for TLS alone.
pub(super) fn is_by_tls(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https")
}
