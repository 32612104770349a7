//! Log lines go to standard error: standard output is for results.

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt, registry};

use super::args::{Command, LogFormat};
use super::paint::Paint;
use crate::telemetry;

/// Starts logging. `CATCHWORD_LOG` says how much. A worker says what its passes did, and sends spans if a collector is named; a
/// command's own last line says what it did.
pub(super) fn start(format: LogFormat, command: &Command) -> anyhow::Result<()> {
    let is_worker = matches!(command, Command::Worker(_));
    // a collector that is down is logged once, where metrics are pushed
    let usual = match command {
        Command::Worker(_) | Command::Serve(_) => {
            "warn,catchword=info,sqlx=error,opentelemetry=off,opentelemetry_sdk=off,opentelemetry-otlp=off"
        }
        // a line would stand on its screen
        Command::Status(status) if status.watch => "off",
        _ => "warn",
    };
    let filter = EnvFilter::try_from_env("CATCHWORD_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(Paint::of(&std::io::stderr()) == Paint::Colours).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    let traces = if is_worker { telemetry::traces()? } else { None };
    registry().with(lines.with_filter(filter)).with(traces).init();
    Ok(())
}
