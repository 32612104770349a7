//! The curves as small SVG, written by hand: docs/bench/*.svg.

use std::fmt::Write as _;
use std::path::Path;

use crate::report::{Report, Series, kept};
use crate::scale::Scale;

/// A drawing: which figure's curves, and what the axes are.
struct Plot {
    number: u8,
    file: &'static str,
    title: &'static str,
    x: &'static str,
    y: &'static str,
    logarithmic: bool,
}

const PLOTS: [Plot; 4] = [
    Plot { number: 4, file: "latency", title: "Latency of direct writes", x: "ms, up to", y: "share of calls", logarithmic: true },
    Plot { number: 6, file: "claim", title: "Claim time against dead tuples", x: "dead tuples", y: "ms per claim", logarithmic: false },
    Plot { number: 7, file: "queue", title: "Throughput against queue length", x: "jobs in the queue", y: "jobs/s", logarithmic: true },
    Plot { number: 10, file: "memory", title: "A worker's memory while it drains", x: "seconds", y: "MB resident", logarithmic: false },
];

/// Draws what was measured at full scale.
pub fn draw(scale: Scale) -> anyhow::Result<()> {
    let folder = match scale {
        Scale::Full => Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/bench"),
        _ => Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench"),
    };
    std::fs::create_dir_all(&folder)?;
    let reports = kept(scale)?;
    for plot in PLOTS {
        if let Some(Report { series, .. }) = reports.iter().find(|report| report.number == plot.number && !report.series.is_empty()) {
            std::fs::write(folder.join(format!("{}.svg", plot.file)), svg(&plot, series))?;
        }
    }
    Ok(())
}

const COLOURS: [&str; 4] = ["#1f6f8b", "#d1495b", "#66883b", "#8f6bb3"];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
/// Room for what is written around the curves.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 50.0;

fn svg(plot: &Plot, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| series.points.iter().copied());
    let place = |x: f64| if plot.logarithmic { x.max(1e-9).log10() } else { x };
    let low = points().map(|(x, _)| place(x)).fold(f64::INFINITY, f64::min);
    let high = points().map(|(x, _)| place(x)).fold(f64::NEG_INFINITY, f64::max);
    let most = points().map(|(_, y)| y).fold(0.0, f64::max) * 1.1;
    let across = |x: f64| LEFT + (place(x) - low) / (high - low).max(1e-9) * (WIDTH - LEFT - RIGHT);
    let up = |y: f64| HEIGHT - BOTTOM - y / most.max(1e-9) * (HEIGHT - TOP - BOTTOM);

    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"20\" font-size=\"15\">{}</text>\n",
        plot.title
    );
    for n in 0..=4 {
        let y = most * f64::from(n) / 4.0;
        let at = up(y);
        _ = writeln!(out, "<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#ddd\"/>", WIDTH - RIGHT);
        _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 6.0, at + 4.0, short(y));
    }
    let mut marks: Vec<f64> = points().map(|(x, _)| x).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    let every = marks.len().div_ceil(8);
    for x in marks.iter().step_by(every) {
        _ = writeln!(out, "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>", across(*x), HEIGHT - BOTTOM + 18.0, short(*x));
    }
    _ = writeln!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", WIDTH - RIGHT, HEIGHT - 10.0, plot.x);
    _ = writeln!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#555\">{}</text>", WIDTH - RIGHT, 20, plot.y);
    for (n, series) in series.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let line: Vec<String> = series.points.iter().map(|(x, y)| format!("{:.1},{:.1}", across(*x), up(*y))).collect();
        _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", line.join(" "));
        _ = writeln!(out, "<text x=\"{}\" y=\"40\" fill=\"{colour}\">{}</text>", LEFT + 190.0 * n as f64, series.name);
    }
    out + "</svg>\n"
}

/// 5M, 100k, 12, 0.25
fn short(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.1}M", n / 1e6).replace(".0M", "M"),
        n if n >= 1e4 => format!("{:.0}k", n / 1e3),
        n if n >= 10.0 || n == 0.0 => format!("{n:.0}"),
        n => format!("{n:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}
