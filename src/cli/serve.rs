//! `/healthz`, `/readyz` and `/metrics` of a worker.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::accept;
use crate::telemetry::Telemetry;
use crate::worker::Worker;

/// Serves until `stop`.
pub(super) async fn serve(listener: TcpListener, worker: Worker, telemetry: Telemetry, stop: CancellationToken) {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(worker)
        .route("/metrics", get(metrics))
        .with_state(telemetry)
        .method_not_allowed_fallback(async || (StatusCode::METHOD_NOT_ALLOWED, "there is nothing to change here: GET\n"))
        .fallback(async || (StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n"));
    accept::serve(listener, router, stop).await
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
