//! One provider of metrics for the process: the text that Prometheus scrapes, and a push by OTLP where
//! `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector. Without it nothing of OTLP runs.
//!
//! For a binary that has no OpenTelemetry of its own. One that has sets its own global provider, calls [`Catchword::watch`] after it, and
//! [`Catchword::observe`] before each export.

mod push;
mod traces;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Encoder, Registry, TextEncoder};

use crate::Catchword;
use crate::gauges::Part;
pub use traces::{go_on, traces};

/// Where a collector listens. Its sisters (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_METRIC_EXPORT_INTERVAL`, …) mean what OpenTelemetry says.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The metrics of this process.
#[derive(Clone)]
pub struct Telemetry {
    registry: Registry,
    provider: SdkMeterProvider,
    catchword: Catchword,
}

/// What a scrape is answered with: the content type, and the text.
pub type Scraped = (String, Vec<u8>);

impl Telemetry {
    /// Sets the global provider, makes the series, and begins to push if somebody is to be pushed to. Once per process, before anything
    /// is recorded.
    pub fn start(catchword: &Catchword, part: Part) -> anyhow::Result<Telemetry> {
        let registry = Registry::new();
        // the names are Prometheus' own already
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .without_units()
            .without_counter_suffixes()
            .scope_info_enabled(false)
            .without_target_info()
            .build()?;
        let mut builder = SdkMeterProvider::builder().with_reader(exporter).with_resource(resource());
        if let Some(endpoint) = endpoint() {
            builder = builder.with_reader(push::reader(&endpoint)?);
        }
        let provider = builder.build();
        opentelemetry::global::set_meter_provider(provider.clone());
        catchword.watch(part);
        if let Some(endpoint) = endpoint() {
            push::begin(provider.clone(), catchword.clone(), endpoint);
        }
        Ok(Telemetry { registry, provider, catchword: catchword.clone() })
    }

    /// All series as they are now.
    pub async fn scrape(&self) -> anyhow::Result<Scraped> {
        self.catchword.observe().await;
        let (mut text, encoder) = (Vec::new(), TextEncoder::new());
        encoder.encode(&self.registry.gather(), &mut text)?;
        Ok((encoder.format_type().to_owned(), text))
    }

    /// Pushes what is left, metrics and traces. Takes three seconds at most; without a collector no time at all.
    pub async fn end(self) {
        if endpoint().is_some() {
            push::end(self.provider).await;
        }
    }
}

fn endpoint() -> Option<String> {
    std::env::var(ENDPOINT).ok().filter(|endpoint| !endpoint.trim().is_empty())
}

/// Who sends: `OTEL_SERVICE_NAME`, or the program's name.
fn resource() -> Resource {
    let builder = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_some() {
        return builder.build();
    }
    let program = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    builder.with_service_name(program.unwrap_or_else(|| "catchword".to_owned())).build()
}
