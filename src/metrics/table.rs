//! The table of all metrics, for `docs/metrics.md`.

use std::fmt::Write;

use super::instrument::{Kind, Metric};
use super::names::ALL;

/// All metrics, in the order of the documentation.
pub fn all() -> &'static [&'static Metric] {
    ALL
}

/// One row per metric, as Markdown.
pub fn table() -> String {
    let mut text = String::from("| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n");
    for metric in ALL {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let unit = match metric.unit() {
            "s" => "seconds",
            "By" => "bytes",
            _ => "",
        };
        _ = writeln!(text, "| `{}` | {kind} | {} | {unit} | {} |", metric.name, labels.join(", "), metric.help);
    }
    text
}
