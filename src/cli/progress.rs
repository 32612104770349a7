//! How far a reindex or an audit has come: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use indicatif::{ProgressBar, ProgressStyle};

/// Lines of what could not be counted are this many apart.
const STRIDE: i64 = 100_000;

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: Option<i64>,
    said: AtomicI64,
    done: &'static str,
}

impl Progress {
    /// Of so many that are to be `done`; none: more than could be counted.
    pub fn start(total: Option<i64>, done: &'static str) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| match total {
            Some(total) => {
                let style =
                    ProgressStyle::with_template(&format!("{{bar:40}} {{human_pos}} of {{human_len}} {done}, {{per_sec}}, {{eta}} to go"));
                let bar = ProgressBar::new(total.max(0) as u64);
                style.map_or(bar.clone(), |style| bar.with_style(style))
            }
            None => {
                let style = ProgressStyle::with_template(&format!("{{spinner}} {{human_pos}} {done}, {{per_sec}}"));
                let bar = ProgressBar::no_length();
                style.map_or(bar.clone(), |style| bar.with_style(style))
            }
        });
        Progress { bar, total, said: AtomicI64::new(0), done }
    }

    /// About one line per tenth.
    pub fn at(&self, now: i64) {
        let stride = self.total.map_or(STRIDE, |total| (total / 10).max(1));
        match (&self.bar, self.total) {
            (Some(bar), _) => bar.set_position(now.max(0) as u64),
            (None, total) if now - self.said.load(Relaxed) >= stride && total.is_none_or(|total| now < total) => {
                self.said.store(now, Relaxed);
                let of = total.map_or(String::new(), |total| format!(" of {total}"));
                eprintln!("{now}{of} {}", self.done);
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
