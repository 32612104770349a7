//! Pushes metrics to a collector. Exporting blocks, so it happens on threads beside the runtime.

use std::time::Duration;

use anyhow::Context;
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use tokio::sync::oneshot;

use super::{ENDPOINT, traces};
use crate::Catchword;

/// How often, unless `OTEL_METRIC_EXPORT_INTERVAL` says otherwise: in milliseconds there.
const EVERY: Duration = Duration::from_secs(60);
/// The last push may hold up the end of the process for this long. A collector that takes connections and does not answer would take 10 s.
const LAST: Duration = Duration::from_secs(3);

/// The reader that exports when it is told to: its own clock, which knows nothing of Postgres, never comes.
pub(super) fn reader(endpoint: &str) -> anyhow::Result<PeriodicReader<MetricExporter>> {
    let exporter = MetricExporter::builder().with_tonic().build().with_context(|| wrong(endpoint))?;
    Ok(PeriodicReader::builder(exporter).with_interval(Duration::from_secs(100 * 365 * 86_400)).build())
}

pub(super) fn wrong(endpoint: &str) -> String {
    format!("{ENDPOINT} = {endpoint:?} cannot be used; write the address of a collector that speaks gRPC, as in http://127.0.0.1:4317")
}

/// Reads what only Postgres knows, pushes, and does so again, as long as the process runs.
pub(super) fn begin(provider: SdkMeterProvider, catchword: Catchword, endpoint: String) {
    let every = std::env::var("OTEL_METRIC_EXPORT_INTERVAL").ok().and_then(|millis| millis.trim().parse().ok());
    let every = every.filter(|millis| *millis > 0).map_or(EVERY, Duration::from_millis);
    tokio::spawn(async move {
        let mut failing = false;
        loop {
            tokio::time::sleep(every).await;
            catchword.observe().await;
            let provider = provider.clone();
            let pushed = beside(move || provider.force_flush()).await;
            // said when it begins and when it ends
            match pushed {
                Ok(Err(error)) if !failing => {
                    failing = true;
                    tracing::warn!("metrics cannot be pushed to {endpoint}: {error}");
                }
                Ok(Ok(())) if failing => {
                    failing = false;
                    tracing::info!("metrics are pushed again");
                }
                _ => {}
            }
        }
    });
}

/// The last push of metrics and traces, side by side.
pub(super) async fn end(provider: SdkMeterProvider) {
    let metrics = beside(move || provider.shutdown());
    let traces = beside(traces::end);
    _ = tokio::time::timeout(LAST, async { tokio::join!(metrics, traces) }).await;
}

/// On a thread of its own, which nobody waits for at the end: one of the runtime's would hold up its end.
fn beside<T: Send + 'static>(blocking: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (done, result) = oneshot::channel();
    std::thread::spawn(move || _ = done.send(blocking()));
    result
}
