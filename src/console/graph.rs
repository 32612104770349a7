//! Graphs as SVG: minutes go in, a picture comes out. Pure. Colours are the stylesheet's, so a graph is dark where the page is.

use std::fmt::Write;

use chrono::{DateTime, Duration, DurationRound, Timelike, Utc};

use super::words::count;
use crate::history::Minute;

/// The picture, in its own units; the page makes it as wide as there is room.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 150.0;
/// Room for the numbers at the left and the times below.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 6.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 22.0;
/// A gap narrower than this has no room for its words.
const WORDS: f64 = 70.0;
/// So many places tell their value under the pointer.
const SPOTS: usize = 60;

/// How a number is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// How much there is, at each minute.
    Level,
    /// How much was done, in each minute.
    Work,
}

/// A graph.
pub(super) struct Graph<'g> {
    /// For those who do not see it.
    pub title: &'g str,
    /// What is counted, in the plural.
    pub unit: &'g str,
    pub shape: Shape,
    /// One for each minute, the oldest first; none: no worker wrote that minute down.
    pub values: Vec<Option<f64>>,
    /// The minute of the last one.
    pub end: DateTime<Utc>,
}

/// Minutes in their places: one place for each minute up to `end`.
pub(super) fn places(minutes: &[Minute], end: DateTime<Utc>, span: usize) -> Vec<Option<&Minute>> {
    let mut places = vec![None; span];
    for minute in minutes {
        let ago = (end - whole_minute(minute.at)).num_minutes();
        if let Some(place) = usize::try_from(ago).ok().and_then(|ago| span.checked_sub(ago + 1)) {
            places[place] = Some(minute);
        }
    }
    places
}

/// The last minute that can be told in full: the one before this one, or the newest that was written down.
pub(super) fn last_minute(minutes: &[Minute], now: DateTime<Utc>) -> DateTime<Utc> {
    let before = whole_minute(now) - Duration::minutes(1);
    minutes.last().map_or(before, |minute| whole_minute(minute.at).clamp(before, before + Duration::minutes(1)))
}

fn whole_minute(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(Duration::minutes(1)).unwrap_or(at)
}

impl Graph<'_> {
    /// What the graph says, in a line: the newest number, and the highest.
    pub fn caption(&self) -> String {
        let (now, highest) = (self.values.last().copied().flatten(), self.highest());
        match (self.shape, now, highest) {
            (_, _, None) => "no worker has written anything down in this time".into(),
            (Shape::Level, Some(now), Some((_, most))) => format!("now {}, at most {}", round(now), round(most)),
            (Shape::Level, None, Some((_, most))) => format!("at most {}", round(most)),
            (Shape::Work, _, Some((_, most))) => {
                let all: f64 = self.values.iter().flatten().sum();
                format!("{} in all, at most {} a minute", round(all), round(most))
            }
        }
    }

    fn highest(&self) -> Option<(usize, f64)> {
        let known = self.values.iter().enumerate().filter_map(|(n, value)| Some((n, (*value)?)));
        known.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    fn step(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.values.len().max(1) as f64
    }

    fn at(&self, n: usize) -> DateTime<Utc> {
        self.end - Duration::minutes((self.values.len() - 1 - n) as i64)
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let mut svg = String::with_capacity(8_192);
        let title = format!("{}: {}", self.title, self.caption());
        _ = write!(svg, r#"<svg class="graph" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}">"#, escaped(&title));
        let top = round_top(self.highest().map_or(0.0, |(_, most)| most));
        let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value / top).clamp(0.0, 1.0);
        self.draw_gaps(&mut svg);
        for value in [0.0, top / 2.0, top] {
            let class = if value == 0.0 { "axis" } else { "grid" };
            _ = write!(svg, r#"<path class="{class}" d="M{LEFT} {0:.1}H{1:.1}"/>"#, y(value), WIDTH - RIGHT);
            _ = write!(svg, r#"<text class="value" x="{:.1}" y="{:.1}">{}</text>"#, LEFT - 6.0, y(value) + 3.5, short(value));
        }
        self.draw_times(&mut svg);
        match self.shape {
            Shape::Level => self.draw_level(&mut svg, &y),
            Shape::Work => self.draw_work(&mut svg, &y),
        }
        self.draw_spots(&mut svg);
        svg.push_str("</svg>");
        svg
    }

    /// Where nobody wrote anything down, so that nothing is taken for zero.
    fn draw_gaps(&self, svg: &mut String) {
        for gap in runs(&self.values, Option::is_none) {
            let (x, width) = (LEFT + gap.start as f64 * self.step(), gap.len() as f64 * self.step());
            let height = HEIGHT - BOTTOM - TOP;
            _ = write!(svg, r#"<rect class="gap" x="{x:.1}" y="{TOP}" width="{width:.1}" height="{height:.1}"/>"#);
            if width > WORDS {
                let (x, y) = (x + width / 2.0, TOP + height / 2.0 + 4.0);
                _ = write!(svg, r#"<text class="gap-word" x="{x:.1}" y="{y:.1}">no worker</text>"#);
            }
        }
    }

    /// A few round times.
    fn draw_times(&self, svg: &mut String) {
        let every = if self.values.len() > 60 { 30 } else { 10 };
        for n in (0..self.values.len()).filter(|n| self.at(*n).minute().is_multiple_of(every)) {
            let x = LEFT + (n as f64 + 0.5) * self.step();
            // one that would stand over the edge is left out
            if x > LEFT + 14.0 && x < WIDTH - 16.0 {
                let (y, time) = (HEIGHT - 6.0, self.at(n).format("%H:%M"));
                _ = write!(svg, r#"<text class="time" x="{x:.1}" y="{y:.1}">{time}</text>"#);
            }
        }
    }

    fn draw_level(&self, svg: &mut String, y: &impl Fn(f64) -> f64) {
        for run in runs(&self.values, Option::is_some) {
            let mut line = String::new();
            for n in run.clone() {
                let x = LEFT + (n as f64 + 0.5) * self.step();
                _ = write!(line, "{}{x:.1} {:.1}", if n == run.start { "M" } else { "L" }, y(self.values[n].unwrap_or(0.0)));
            }
            let (first, last) = (LEFT + (run.start as f64 + 0.5) * self.step(), LEFT + (run.end as f64 - 0.5) * self.step());
            if run.len() == 1 {
                // a line of no length is not drawn
                _ = write!(svg, r#"<circle class="dot" cx="{first:.1}" cy="{:.1}" r="1.8"/>"#, y(self.values[run.start].unwrap_or(0.0)));
                continue;
            }
            _ = write!(
                svg,
                r#"<path class="area" d="{line}L{last:.1} {0:.1}L{first:.1} {0:.1}Z"/><path class="line" d="{line}"/>"#,
                y(0.0)
            );
        }
    }

    fn draw_work(&self, svg: &mut String, y: &impl Fn(f64) -> f64) {
        let space = (self.step() * 0.2).min(1.5);
        for (n, value) in self.values.iter().enumerate() {
            if let Some(value) = value.filter(|value| *value > 0.0) {
                // what was done is seen, however little it was
                let height = (y(0.0) - y(value)).max(1.0);
                let (x, width) = (LEFT + n as f64 * self.step() + space / 2.0, self.step() - space);
                _ = write!(svg, r#"<rect class="bar" x="{x:.1}" y="{:.1}" width="{width:.1}" height="{height:.1}"/>"#, y(0.0) - height);
            }
        }
    }

    /// What a pointer that rests on a place is told.
    fn draw_spots(&self, svg: &mut String) {
        let each = self.values.len().div_ceil(SPOTS).max(1);
        for (n, some) in self.values.chunks(each).enumerate() {
            let known: Vec<f64> = some.iter().flatten().copied().collect();
            let Some(most) = known.iter().copied().reduce(f64::max) else { continue };
            let told = match self.shape {
                Shape::Level => most,
                Shape::Work => known.iter().sum(),
            };
            let (x, width) = (LEFT + (n * each) as f64 * self.step(), some.len() as f64 * self.step());
            let (at, height) = (self.at(n * each).format("%H:%M"), HEIGHT - BOTTOM - TOP);
            _ = write!(
                svg,
                r#"<rect class="spot" x="{x:.1}" y="{TOP}" width="{width:.1}" height="{height:.1}"><title>{at}: {} {}</title></rect>"#,
                round(told),
                escaped(self.unit)
            );
        }
    }
}

/// A small picture of how fresh search was: a bar for each minute, on a scale of times ten, so that 40 ms and a minute are both seen.
pub(super) fn sparkline(places: &[Option<&Minute>], objective: f64, title: &str) -> String {
    const HIGH: f64 = 26.0;
    const STEP: f64 = 2.0;
    let width = places.len() as f64 * STEP;
    let mut svg = String::with_capacity(4_096);
    _ = write!(
        svg,
        r#"<svg class="spark" viewBox="0 0 {width} {HIGH}" width="{width}" height="{HIGH}" role="img" aria-label="{}">"#,
        escaped(title)
    );
    for run in runs(places, Option::is_some) {
        let (from, to) = (run.start as f64 * STEP, run.end as f64 * STEP);
        _ = write!(svg, r#"<path class="axis" d="M{from} {0}H{to}"/>"#, HIGH - 0.5);
    }
    for (n, minute) in places.iter().enumerate() {
        if let Some(seconds) = minute.and_then(|minute| minute.fresh_p99) {
            let height = 2.0 + (HIGH - 3.0) * on_a_scale_of_tens(seconds);
            let class = if seconds > objective { "late" } else { "bar" };
            let (x, y) = (n as f64 * STEP, HIGH - 1.0 - height);
            _ = write!(svg, r#"<rect class="{class}" x="{x}" y="{y:.1}" width="1.5" height="{height:.1}"/>"#);
        }
    }
    svg.push_str("</svg>");
    svg
}

/// From 10 ms, which is 0, to a quarter of an hour, which is 1.
fn on_a_scale_of_tens(seconds: f64) -> f64 {
    ((seconds.max(0.01) / 0.01).log10() / (900.0_f64 / 0.01).log10()).clamp(0.0, 1.0)
}

/// Where neighbours are alike.
fn runs<T>(values: &[T], are: impl Fn(&T) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (n, _) in values.iter().enumerate().filter(|(_, value)| are(value)) {
        match runs.last_mut() {
            Some(run) if run.end == n => run.end += 1,
            _ => runs.push(n..n + 1),
        }
    }
    runs
}

/// A round number that is not below this one, and half of which is round too.
fn round_top(most: f64) -> f64 {
    let mut ten = 1.0;
    loop {
        if let Some(top) = [2.0, 4.0, 6.0, 8.0, 10.0].into_iter().map(|n| n * ten).find(|top| *top >= most) {
            return top;
        }
        ten *= 10.0;
    }
}

/// `1,200`, `12k`, `1.2M`: there is little room at an axis.
fn short(value: f64) -> String {
    match value {
        v if v >= 1_000_000.0 => format!("{}M", trimmed(v / 1_000_000.0)),
        v if v >= 10_000.0 => format!("{}k", trimmed(v / 1_000.0)),
        v => round(v),
    }
}

fn trimmed(value: f64) -> String {
    let told = format!("{value:.1}");
    told.strip_suffix(".0").map_or(told.clone(), str::to_owned)
}

fn round(value: f64) -> String {
    count(value.round() as i64)
}

/// For an attribute or a text of the picture.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
