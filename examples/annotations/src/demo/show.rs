//! What the demo prints: sentences, and how far something is.

use std::fmt;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};

use super::clients::Saved;

/// Between two lines where there is no terminal: they all stay.
const PAUSE: Duration = Duration::from_secs(10);

/// How far several counts are: bars on a terminal, a line now and then elsewhere.
pub(super) struct Bars {
    /// Names, and how far each goes.
    counts: Vec<(&'static str, u64)>,
    bars: Vec<ProgressBar>,
    started: Instant,
    shown: (Instant, Vec<u64>),
    now: Vec<u64>,
}

impl Bars {
    /// Counts of these names, each up to its number.
    pub(super) fn new(counts: &[(&'static str, u64)]) -> Bars {
        let all = MultiProgress::new();
        let style = ProgressStyle::with_template("   {prefix:8} {bar:40} {human_pos:>6} of {human_len}, {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        // indicatif draws on standard error; where that is no terminal it draws nothing
        let terminal = std::io::stderr().is_terminal();
        let bars = counts.iter().filter(|_| terminal).map(|(name, most)| {
            let bar = all.add(ProgressBar::new(*most).with_style(style.clone()).with_prefix(*name));
            bar.tick();
            bar
        });
        let now = Instant::now();
        Bars { bars: bars.collect(), counts: counts.to_vec(), started: now, shown: (now, Vec::new()), now: Vec::new() }
    }

    /// They are so far now, in the order of their names.
    pub(super) fn at(&mut self, counts: &[u64]) {
        for (bar, count) in self.bars.iter().zip(counts) {
            bar.set_position(*count);
        }
        self.now = counts.to_vec();
        if self.bars.is_empty() && self.shown.0.elapsed() >= PAUSE && self.shown.1 != counts {
            self.line();
        }
    }

    /// They go no further, and a sentence comes next that says what they came to.
    pub(super) fn clear(mut self) {
        for bar in &self.bars {
            bar.finish_and_clear();
        }
        self.last_line();
    }

    /// They go no further, and stay to be seen.
    pub(super) fn end(mut self) {
        for bar in &self.bars {
            bar.abandon();
        }
        if !self.bars.is_empty() {
            println!();
        }
        self.last_line();
    }

    /// Where nothing was shown on the way, what comes next says it all.
    fn last_line(&mut self) {
        if self.bars.is_empty() && !self.shown.1.is_empty() && self.shown.1 != self.now {
            self.line();
        }
    }

    fn line(&mut self) {
        let counts = self.counts.iter().zip(&self.now);
        let counts = counts.map(|((name, most), count)| format!("{} of {} {name}", HumanCount(*count), HumanCount(*most)));
        let counts: Vec<String> = counts.collect();
        println!("   {:4.0} s: {}", self.started.elapsed().as_secs_f64(), counts.join(", "));
        self.shown = (Instant::now(), self.now.clone());
    }
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.count as f64 / self.took.as_secs_f64();
        write!(
            f,
            "saved {} annotations in {:.1} s: {:.0} per second, the slowest took {} ms; {} were indexed at once",
            HumanCount(self.count as u64),
            self.took.as_secs_f64(),
            rate,
            self.slowest.as_millis(),
            HumanCount(self.indexed as u64)
        )
    }
}

/// A table of two columns; the numbers end in one line.
pub(super) fn table(rows: &[(&str, u64)]) -> String {
    let lines = rows.iter().map(|(name, number)| format!("   {name:<20}{:>10}\n", HumanCount(*number).to_string()));
    lines.collect()
}
