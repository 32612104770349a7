//! How far a reindex or an audit has come: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// Lines of what could not be counted are this many apart.
const STRIDE: i64 = 100_000;
/// The end is not estimated before that: a first page says little of the speed.
const SOON: Duration = Duration::from_secs(3);

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: Option<i64>,
    said: AtomicI64,
    done: &'static str,
    /// When it was first told how far it is, and how far: what was done before a resume says nothing of the speed.
    first: OnceLock<(Instant, i64)>,
}

/// While nothing moves nobody knows how long it will take.
pub(super) fn to_go(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    if state.per_sec() >= 0.1 && state.pos() > 0 {
        _ = write!(out, ", {:#} to go", HumanDuration(state.eta()));
    }
}

impl Progress {
    /// Of so many that are to be `done`; none: more than could be counted.
    pub fn start(total: Option<i64>, done: &'static str) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| match total {
            Some(total) => {
                let style = ProgressStyle::with_template(&format!("{{bar:40}} {{human_pos}} of {{human_len}} {done}, {{per_sec}}{{left}}"));
                let bar = ProgressBar::new(total.max(0) as u64);
                style.map_or(bar.clone(), |style| bar.with_style(style.with_key("left", to_go)))
            }
            None => {
                let style = ProgressStyle::with_template(&format!("{{spinner}} {{human_pos}} {done}, {{per_sec}}"));
                let bar = ProgressBar::no_length();
                style.map_or(bar.clone(), |style| bar.with_style(style))
            }
        });
        Progress { bar, total, said: AtomicI64::new(0), done, first: OnceLock::new() }
    }

    /// About one line per tenth.
    pub fn at(&self, now: i64) {
        let (began, first) = *self.first.get_or_init(|| {
            if let Some(bar) = &self.bar {
                bar.set_position(now.max(0) as u64);
                bar.reset_eta();
            }
            (Instant::now(), now)
        });
        let stride = self.total.map_or(STRIDE, |total| (total / 10).max(1));
        match (&self.bar, self.total) {
            (Some(bar), _) => bar.set_position(now.max(0) as u64),
            (None, total) if now - self.said.load(Relaxed) >= stride && total.is_none_or(|total| now < total) => {
                self.said.store(now, Relaxed);
                let of = total.map_or(String::new(), |total| format!(" of {total}"));
                let left = total.and_then(|total| left(total - now, now - first, began.elapsed()));
                eprintln!("{now}{of} {}{}", self.done, left.map_or(String::new(), |left| format!(", about {} left", coarse(left))));
            }
            _ => {}
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How long so many will take, if so many took so long. None: it is too soon to say.
fn left(to_do: i64, done: i64, took: Duration) -> Option<Duration> {
    let known = took >= SOON && done > 0 && to_do > 0;
    known.then(|| took.mul_f64(to_do as f64 / done as f64))
}

/// One unit: the speed changes on the way.
fn coarse(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..90 => format!("{} s", seconds.max(1)),
        seconds @ 90..5_400 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h", (seconds + 1_800) / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_guessed_from_the_speed_so_far_and_not_at_once() {
        assert_eq!(left(900, 100, Duration::from_secs(10)), Some(Duration::from_secs(90)));
        assert_eq!(left(900, 100, Duration::from_secs(1)), None);
        assert_eq!(left(900, 0, Duration::from_secs(10)), None);
        assert_eq!(left(0, 100, Duration::from_secs(10)), None);
    }

    #[test]
    fn a_span_is_told_in_one_unit() {
        for (seconds, told) in [(0, "1 s"), (89, "89 s"), (90, "2 min"), (185, "3 min"), (5_399, "90 min"), (5_400, "2 h"), (9_100, "3 h")]
        {
            assert_eq!(coarse(Duration::from_secs(seconds)), told);
        }
    }
}
