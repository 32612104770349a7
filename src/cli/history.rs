//! `catchword history`

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::args::{Args, History};
use super::sparkline::{Steps, sparkline};
use super::{End, print_json, say};
use crate::history::{self, Minute};

/// Columns of a sparkline: with the numbers before it, a line fits into 80.
const COLUMNS: usize = 38;

/// The minutes of one collection.
#[derive(Serialize)]
struct Shown<'c> {
    collection: &'c str,
    minutes: Vec<Minute>,
}

pub(super) async fn run(args: &Args, options: &History) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let config = catchword.config();
    let names: Vec<&str> = match options.collection.as_deref() {
        Some(name) => vec![config.collection(Some(name))?.name.as_str()],
        None => config.collections.iter().map(|collection| collection.name.as_str()).collect(),
    };
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    let mut shown = Vec::new();
    for collection in names {
        shown.push(Shown { collection, minutes: history::read(&mut connection, collection, options.span).await? });
    }
    let nothing = shown.iter().all(|shown| shown.minutes.is_empty());
    if options.json {
        print_json(&shown)?;
    } else {
        let tables: Vec<String> = shown.iter().map(|shown| table(shown, options.span, Utc::now())).collect();
        say(tables.join("\n"))?;
    }
    Ok(if nothing { End::Not } else { End::Done })
}

/// One line for each figure.
fn table(Shown { collection, minutes }: &Shown<'_>, span: Duration, now: DateTime<Utc>) -> String {
    let last = humantime::format_duration(span);
    if minutes.is_empty() {
        return format!("{collection}: no history of the last {last}; a worker writes it, once a minute\n");
    }
    let steps = Steps::of((span.as_secs() / 60) as i64, COLUMNS);
    let mut text = format!(
        "{collection}, the last {last}: {} minutes with a worker; a bar is {}\n{:<13}{:>9}{:>9}{:>9}\n",
        minutes.len(),
        if steps.minutes == 1 { "a minute".into() } else { format!("{} minutes", steps.minutes) },
        "",
        "last",
        "mean",
        "most"
    );
    for (name, value) in FIGURES {
        let known: Vec<f64> = minutes.iter().filter_map(value).collect();
        let is_time = value_is_time(name);
        let shown = |number: Option<f64>| number.map_or("–".into(), |number| if is_time { seconds(number) } else { count(number) });
        let mean = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64);
        let most = known.iter().copied().reduce(f64::max);
        let bars = sparkline(&steps.most(minutes, now, value));
        let line = format!("  {name:<11}{:>9}{:>9}{:>9}  {bars}", shown(minutes.last().and_then(value)), shown(mean), shown(most));
        text += line.trim_end();
        text.push('\n');
    }
    text
}

type Figure = (&'static str, fn(&Minute) -> Option<f64>);

const FIGURES: [Figure; 10] = [
    ("due", |minute| Some(minute.due as f64)),
    ("waiting", |minute| Some(minute.waiting as f64)),
    ("oldest", |minute| minute.oldest_seconds),
    ("scheduled", |minute| Some(minute.scheduled as f64)),
    ("settled", |minute| Some(minute.settled as f64)),
    ("written", |minute| Some(minute.written as f64)),
    ("pushed back", |minute| Some(minute.pushed_back as f64)),
    ("buried", |minute| Some(minute.buried as f64)),
    ("fresh p50", |minute| minute.fresh_p50),
    ("fresh p99", |minute| minute.fresh_p99),
];

fn value_is_time(name: &str) -> bool {
    name == "oldest" || name.starts_with("fresh")
}

/// A number of jobs in at most eight letters.
pub(super) fn count(number: f64) -> String {
    match number {
        0.0 => "0".into(),
        n if n < 9.95 && n.fract() >= 0.05 => format!("{n:.1}"),
        n if n < 100_000.0 => format!("{n:.0}"),
        n if n < 10_000_000.0 => format!("{:.0}k", n / 1_000.0),
        n => format!("{:.0}M", n / 1_000_000.0),
    }
}

/// A span in at most seven letters.
pub(super) fn seconds(span: f64) -> String {
    match span {
        s if s < 0.9995 => format!("{:.0} ms", s * 1_000.0),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_spans_fit_into_a_column() {
        for (number, told) in
            [(0.0, "0"), (0.3, "0.3"), (1.0, "1"), (9.96, "10"), (12_345.0, "12345"), (1_234_567.0, "1235k"), (2e7, "20M")]
        {
            assert_eq!(count(number), told);
        }
        for (span, told) in [
            (0.0, "0 ms"),
            (0.04, "40 ms"),
            (0.9999, "1.0 s"),
            (1.24, "1.2 s"),
            (90.0, "90 s"),
            (600.0, "10 min"),
            (7_200.0, "2 h"),
            (700_000.0, "8 d"),
        ] {
            assert_eq!(seconds(span), told);
        }
    }
}
