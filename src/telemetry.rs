//! One provider of metrics for the process, and the text that Prometheus scrapes.
//!
//! For a binary that has no OpenTelemetry of its own. One that has sets its own global provider, calls [`watch`](crate::metrics::watch)
//! after it, and [`Catchword::observe`] before each export.

use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Encoder, Registry, TextEncoder};

use crate::Catchword;
use crate::metrics::{Part, watch};

/// The metrics of this process.
#[derive(Clone)]
pub struct Telemetry {
    registry: Registry,
    catchword: Catchword,
}

/// What a scrape is answered with: the content type, and the text.
pub type Scraped = (String, Vec<u8>);

impl Telemetry {
    /// Sets the global provider and makes the series. Once per process, before anything is recorded.
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
        opentelemetry::global::set_meter_provider(SdkMeterProvider::builder().with_reader(exporter).build());
        watch(catchword, part);
        Ok(Telemetry { registry, catchword: catchword.clone() })
    }

    /// All series as they are now.
    pub async fn scrape(&self) -> anyhow::Result<Scraped> {
        self.catchword.observe().await;
        let (mut text, encoder) = (Vec::new(), TextEncoder::new());
        encoder.encode(&self.registry.gather(), &mut text)?;
        Ok((encoder.format_type().to_owned(), text))
    }
}
