//! Sends spans to a collector.

use std::sync::OnceLock;

use anyhow::Context;
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Metadata, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::{endpoint, push, resource};
use crate::traceparent;

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// The layer that sends spans to where `OTEL_EXPORTER_OTLP_ENDPOINT` says; none: it says nothing. Once per process, inside its runtime.
pub fn traces<S>() -> anyhow::Result<Option<Box<dyn Layer<S> + Send + Sync>>>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let Some(endpoint) = endpoint() else { return Ok(None) };
    let exporter = SpanExporter::builder().with_tonic().build().with_context(|| push::wrong(&endpoint))?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build();
    let tracer = provider.tracer("catchword");
    opentelemetry::global::set_tracer_provider(provider.clone());
    _ = PROVIDER.set(provider);
    Ok(Some(tracing_opentelemetry::layer().with_tracer(tracer).with_filter(filter_fn(is_sent)).boxed()))
}

/// Lets a request's span go on with the trace that its header `traceparent` names. A wrong one is passed over.
pub fn go_on(span: &tracing::Span, traceparent: &str) {
    if let Some(context) = traceparent::parse(traceparent) {
        // it fails only where nobody traces
        _ = span.set_parent(opentelemetry::Context::new().with_remote_span_context(context));
    }
}

/// Spans of connections live as long as these and would grow without end; and exporting must not make spans to export.
fn is_sent(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target().split("::").next().unwrap_or_default();
    let connections = ["h2", "hyper", "hyper_util", "tonic", "tower", "rustls", "opentelemetry", "opentelemetry_sdk", "opentelemetry_otlp"];
    let least = if target == "catchword" { Level::DEBUG } else { Level::INFO };
    !connections.contains(&target) && *metadata.level() <= least
}

/// Sends what is left. Blocks.
pub(super) fn end() {
    if let Some(provider) = PROVIDER.get() {
        _ = provider.shutdown();
    }
}
