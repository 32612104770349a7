//! What a figure came to: kept as JSON, printed as a table, put into docs/benchmarks.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::scale::Scale;

/// One figure: lines that are judged, and curves to be drawn.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub number: u8,
    pub seconds: f64,
    pub at: String,
    pub lines: Vec<Line>,
    pub series: Vec<Series>,
    pub notes: Vec<String>,
}

/// One line of the table.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    pub what: String,
    pub measured: String,
    pub limit: String,
    /// What is judged: mostly measured over limit.
    pub value: f64,
    pub goal: Goal,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Report {
    pub fn line(&mut self, what: impl Into<String>, measured: impl Into<String>, limit: impl Into<String>, value: f64, goal: Goal) {
        let line = Line { what: what.into(), measured: measured.into(), limit: limit.into(), value, goal };
        eprintln!("    {}: {} against {}: {value:.2}, goal {goal}", line.what, line.measured, line.limit);
        self.lines.push(line);
    }

    /// Something to know that is not judged.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        eprintln!("    {text}");
        self.notes.push(text);
    }

    pub fn curve(&mut self, name: impl Into<String>, points: Vec<(f64, f64)>) {
        self.series.push(Series { name: name.into(), points });
    }

    /// Writes `target/bench/SCALE-NN.json`. A smoke run leaves nothing.
    pub fn keep(mut self, number: u8, scale: Scale, took: Duration) -> anyhow::Result<()> {
        if scale == Scale::Smoke {
            return Ok(());
        }
        self.number = number;
        self.seconds = took.as_secs_f64();
        self.at = chrono::Utc::now().format("%Y-%m-%d %H:%M UTC").to_string();
        fs::create_dir_all(folder())?;
        fs::write(folder().join(format!("{}-{number:02}.json", scale.name())), serde_json::to_string_pretty(&self)?)?;
        Ok(())
    }
}

impl Line {
    fn met(&self) -> &'static str {
        let met = match self.goal {
            Goal::AtLeast(least) => self.value >= least,
            Goal::AtMost(most) => self.value <= most,
        };
        if met { "met" } else { "**not met**" }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Goal::AtLeast(least) => write!(f, "≥ {least}"),
            Goal::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

impl Scale {
    pub fn name(self) -> &'static str {
        self.pick("full", "quick", "smoke")
    }
}

/// The figures that were last measured at this scale, in order.
pub fn kept(scale: Scale) -> anyhow::Result<Vec<Report>> {
    let mut all = Vec::new();
    for number in 1..=u8::MAX {
        if let Ok(text) = fs::read_to_string(folder().join(format!("{}-{number:02}.json", scale.name()))) {
            all.push(serde_json::from_str(&text)?);
        }
    }
    Ok(all)
}

/// Prints the table; a full one also goes into docs/benchmarks.md, between its two marks. Lines of figures that were not measured on
/// this machine stay there as they are.
pub fn print(scale: Scale) -> anyhow::Result<()> {
    let reports = kept(scale)?;
    println!("\n{}", table(&reports, ""));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/benchmarks.md");
    let (begin, end) = ("<!-- the table begins -->\n", "<!-- the table ends -->");
    let text = fs::read_to_string(&page).unwrap_or_default();
    if let (Scale::Full, Some((before, rest))) = (scale, text.split_once(begin))
        && let Some((was, after)) = rest.split_once(end)
    {
        fs::write(&page, format!("{before}{begin}{}{end}{after}", table(&reports, was)))?;
    }
    Ok(())
}

/// The lines of these figures and then their notes, in the order of their numbers, among those that `was` has of others.
fn table(reports: &[Report], was: &str) -> String {
    let measured: BTreeSet<u8> = reports.iter().map(|report| report.number).collect();
    let mut lines: BTreeMap<u8, String> = BTreeMap::new();
    let mut notes: BTreeMap<u8, String> = BTreeMap::new();
    for line in was.lines() {
        let (whose, number) = match (line.strip_prefix("| "), line.strip_prefix("* ")) {
            (Some(rest), _) => (&mut lines, rest.split_once(" |")),
            (_, Some(rest)) => (&mut notes, rest.split_once(':')),
            _ => continue,
        };
        if let Some(number) = number.and_then(|(number, _)| number.parse().ok())
            && !measured.contains(&number)
        {
            *whose.entry(number).or_default() += &format!("{line}\n");
        }
    }
    for report in reports {
        let number = report.number;
        for line in &report.lines {
            let Line { what, measured, limit, value, goal } = line;
            *lines.entry(number).or_default() +=
                &format!("| {number} | {what} | {measured} | {limit} | {value:.2} | {goal} | {} |\n", line.met());
        }
        for note in &report.notes {
            *notes.entry(number).or_default() += &format!("* {number}: {note}\n");
        }
    }
    let head = "| # | work | measured | limit, same run | ratio | goal | |\n|---|---|---|---|---|---|---|\n";
    let (lines, notes): (String, String) = (lines.into_values().collect(), notes.into_values().collect());
    format!("{head}{lines}\n{notes}")
}

fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
    target.join("bench")
}
