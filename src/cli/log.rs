//! Log lines go to standard error: standard output is for results.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::args::{Command, LogFormat};

/// Starts logging. `CATCHWORD_LOG` says how much. A worker says what its passes did; a command's own last line says that.
pub(super) fn start(format: LogFormat, command: &Command) {
    let usual = if matches!(command, Command::Worker(_)) { "warn,catchword=info,sqlx=error" } else { "warn" };
    let filter = EnvFilter::try_from_env("CATCHWORD_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).init(),
    }
}
