//! `/healthz`, `/readyz` and `/metrics` of a worker.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::accept::{self, Limits};
use crate::telemetry::Telemetry;
use crate::worker::Worker;

/// Connections at a time: a scraper, a few probes, and room.
const CONNECTIONS: usize = 64;
/// The head of a request must be here by then.
const HEAD: Duration = Duration::from_secs(5);
/// All of it: the request, the answer, and a client that reads it. A scrape waits two seconds for Postgres at most.
const WHOLE: Duration = Duration::from_secs(10);
/// The largest head, in bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// The largest body, in bytes: nothing here takes one.
const BODY_BYTES: u64 = 1024;

/// Serves one request per connection until `stop`.
pub(super) async fn serve(listener: TcpListener, worker: Worker, telemetry: Telemetry, stop: CancellationToken) {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(worker)
        .route("/metrics", get(metrics))
        .with_state(telemetry)
        .method_not_allowed_fallback(async || (StatusCode::METHOD_NOT_ALLOWED, "there is nothing to change here: GET\n"))
        .fallback(async || (StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n"))
        .layer(middleware::from_fn(refuse_large));
    let limits = Limits {
        connections: CONNECTIONS,
        head: HEAD,
        head_bytes: HEAD_BYTES,
        life: WHOLE,
        grace: Duration::ZERO,
        keep: false,
        base: String::new(),
    };
    accept::serve(listener, router, limits, stop).await
}

async fn refuse_large(request: Request, next: Next) -> Response {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|bytes| bytes > BODY_BYTES) {
        return (StatusCode::PAYLOAD_TOO_LARGE, "nothing here takes a body\n").into_response();
    }
    next.run(request).await
}

/// Alive: the loop goes round. A server that is down is no reason to restart the worker.
async fn healthz(State(worker): State<Worker>) -> impl IntoResponse {
    if worker.is_alive() { (StatusCode::OK, "alive\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "the loop is stuck\n") }
}

/// Ready: the last tick did its work, for every collection.
async fn readyz(State(worker): State<Worker>) -> impl IntoResponse {
    match worker.trouble() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

async fn metrics(State(telemetry): State<Telemetry>) -> impl IntoResponse {
    match telemetry.scrape().await {
        Ok((kind, text)) => (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
