//! The HTTP interface: one verb, one file.
//!
//! | | |
//! |---|---|
//! | `POST /api/annotations` | save an annotation: 201, its JSON, `Location`; 200 if it was saved under the same `Idempotency-Key` |
//! | `POST /api/annotations?wait=searchable` | the same, answered when search shows it, or after two seconds; `searchable` says which |
//! | `GET /api/annotations/{id}/search-status` | whether search shows it as it is now |
//! | `GET /api/annotations/{id}` | read it, from Postgres |
//! | `PATCH /api/annotations/{id}` | change what is named |
//! | `DELETE /api/annotations/{id}` | delete it, softly |
//! | `GET /api/search` | find annotations, in Elasticsearch, the last changed first |
//! | `GET /healthz` | 200 while the service runs |
//! | `GET /metrics` | for Prometheus: what the direct path does |
//!
//! A write answers with the header `catchword-direct`: `indexed` if the document is in the index
//! already, `left` if the loop will see to it. Either way the write is done.
//!
//! There are no accounts: `userid` is what the client says, and `shared` is kept for whoever puts a
//! login before this.

mod change;
mod create;
mod delete;
mod health;
mod metrics;
mod search;
mod show;
mod status;
mod wait;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{DefaultBodyLimit, Path, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use catchword::telemetry::{Telemetry, go_on};
use catchword::{Catchword, Direct};
use tracing::Instrument;
use uuid::Uuid;

use crate::problem::Problem;
use crate::search::SearchClient;

/// The largest body of a request: an annotation is half a kilobyte, and a long one a few.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// The collection's name in `catchword.toml`.
pub const COLLECTION: &str = "annotation";

const DIRECT: HeaderName = HeaderName::from_static("catchword-direct");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What the routes share.
#[derive(Clone)]
pub struct Service {
    /// Stores, and schedules.
    pub catchword: Catchword,
    /// Finds.
    pub search: SearchClient,
    /// Counts.
    pub telemetry: Telemetry,
}

/// The routes.
pub fn router(service: Service) -> Router {
    Router::new()
        .route("/api/annotations", post(create::create))
        .route("/api/annotations/{id}", get(show::show).patch(change::change).delete(delete::delete))
        .route("/api/annotations/{id}/search-status", get(status::status))
        .route("/api/search", get(search::search))
        .route("/healthz", get(health::health))
        .route("/metrics", get(metrics::metrics))
        .method_not_allowed_fallback(async || Problem::Method)
        .fallback(async |uri: Uri| Problem::NotFound(format!("path {}", uri.path())))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(middleware::from_fn(traced))
        .with_state(service)
}

/// A span per request, going on with the client's trace if it names one: what is written inside carries it to its job.
async fn traced(request: Request, next: Next) -> Response {
    let span = tracing::info_span!("request", method = %request.method(), path = request.uri().path());
    if let Some(traceparent) = request.headers().get("traceparent").and_then(|value| value.to_str().ok()) {
        go_on(&span, traceparent);
    }
    next.run(request).instrument(span).await
}

/// The body, or what to tell a client whose body is too large or was cut off.
fn body(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::TooLarge(MAX_BODY_BYTES),
        _ => Problem::Unread,
    })
}

/// The id in the path. What is no uuid names no annotation: that is 404 and not 400.
fn id(path: Result<Path<String>, PathRejection>) -> Result<Uuid, Problem> {
    let Path(text) = path.map_err(|_| no_annotation("of this id"))?;
    text.parse().map_err(|_| no_annotation(text))
}

fn no_annotation(id: impl std::fmt::Display) -> Problem {
    Problem::NotFound(format!("annotation {id}"))
}

/// JSON that Postgres has built already: passed on, not parsed.
fn json(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}

/// What the direct path came to, as a header.
fn direct(direct: &Direct) -> [(HeaderName, HeaderValue); 1] {
    let word = match direct {
        Direct::Indexed => "indexed",
        Direct::Left(_) => "left",
    };
    [(DIRECT, HeaderValue::from_static(word))]
}
