use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Service;

/// `GET /metrics`: for Prometheus.
pub(super) async fn metrics(State(service): State<Service>) -> Response {
    match service.telemetry.scrape().await {
        Ok((kind, text)) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
