//! How far a reindex has come: a bar on a terminal, plain lines elsewhere.

use std::cell::Cell;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// Lines of a reindex that could not be counted are this many jobs apart.
const STRIDE: i64 = 100_000;

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: Option<i64>,
    said: Cell<i64>,
}

impl Progress {
    /// Of so many; none: more than could be counted.
    pub fn start(total: Option<i64>) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| match total {
            Some(total) => {
                let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} scheduled, {per_sec}, {eta} to go");
                let bar = ProgressBar::new(total.max(0) as u64);
                style.map_or(bar.clone(), |style| bar.with_style(style))
            }
            None => {
                let style = ProgressStyle::with_template("{spinner} {human_pos} scheduled, {per_sec}");
                let bar = ProgressBar::no_length();
                style.map_or(bar.clone(), |style| bar.with_style(style))
            }
        });
        Progress { bar, total, said: Cell::new(0) }
    }

    /// About one line per tenth.
    pub fn at(&self, scheduled: i64) {
        let stride = self.total.map_or(STRIDE, |total| (total / 10).max(1));
        match (&self.bar, self.total) {
            (Some(bar), _) => bar.set_position(scheduled.max(0) as u64),
            (None, total) if scheduled - self.said.get() >= stride && total.is_none_or(|total| scheduled < total) => {
                self.said.set(scheduled);
                let of = total.map_or(String::new(), |total| format!(" of {total}"));
                eprintln!("{scheduled}{of} scheduled");
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
