//! What was looked at, and how it is.

use std::fmt;

use serde::Serialize;

use crate::printable::{self, Tone, printable, write_plain};

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// The promises hold; something is slower, or less safe than it could be.
    Warn,
    /// A promise rests on this, and it is not so.
    Fail,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// `postgres`, `schema`, `rights`, `elasticsearch`, `work`, or the collection's name before `table`, `view` or `index`.
    pub group: String,
    /// A word for what was looked at, stable for scripts.
    pub what: &'static str,
    pub level: Level,
    pub says: String,
    /// What to do; empty where it is ok.
    pub fix: String,
}

pub(super) fn ok(what: &'static str, says: impl Into<String>) -> Line {
    Line { group: String::new(), what, level: Level::Ok, says: says.into(), fix: String::new() }
}

pub(super) fn warn(what: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Line {
    Line { level: Level::Warn, fix: fix.into(), ..ok(what, says) }
}

pub(super) fn fail(what: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Line {
    Line { level: Level::Fail, fix: fix.into(), ..ok(what, says) }
}

/// Everything that was looked at.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// What could not be looked at, and why.
    pub unseen: Vec<String>,
    pub lines: Vec<Line>,
}

impl Report {
    pub(super) fn add(&mut self, group: &str, lines: impl IntoIterator<Item = Line>) {
        self.lines.extend(lines.into_iter().map(|line| Line { group: group.to_owned(), ..line }));
    }

    /// How many lines are of this level.
    pub fn count(&self, level: Level) -> usize {
        self.lines.iter().filter(|line| line.level == level).count()
    }
}

/// How much of a report is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// What is not ok, and how much is.
    NotOk,
    /// That first, then what is ok.
    All,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_plain(f, self.shown(Shown::All))
    }
}

impl Report {
    /// Line by line, what is not ok first.
    pub(crate) fn shown(&self, how: Shown) -> Vec<printable::Line> {
        let mut lines = self.grouped(|level| level != Level::Ok);
        lines.extend(self.unseen.iter().map(|unseen| (Tone::Wrong, format!("unseen  {}", printable(unseen)))));
        if how == Shown::All {
            lines.extend(self.grouped(|level| level == Level::Ok));
        }
        let (ok, warn, fail) = (self.count(Level::Ok), self.count(Level::Warn), self.count(Level::Fail));
        let more = if how == Shown::NotOk && ok > 0 { "; everything that was looked at: catchword doctor --all" } else { "" };
        let tone = match (fail, warn) {
            (1.., _) => Tone::Wrong,
            (0, 1..) => Tone::Note,
            (0, 0) => Tone::Well,
        };
        lines.push((
            if self.unseen.is_empty() { tone } else { Tone::Wrong },
            format!("{ok} ok, {warn} to think about, {fail} to fix{more}"),
        ));
        lines
    }

    /// The lines of these levels, each below the name of its group.
    fn grouped(&self, of: impl Fn(Level) -> bool) -> Vec<printable::Line> {
        let (mut lines, mut group) = (Vec::new(), "");
        for line in self.lines.iter().filter(|line| of(line.level)) {
            if line.group != group {
                group = &line.group;
                lines.push((Tone::Plain, printable(group)));
            }
            let (level, tone) = match line.level {
                Level::Ok => ("ok", Tone::Well),
                Level::Warn => ("warn", Tone::Note),
                Level::Fail => ("FAIL", Tone::Wrong),
            };
            lines.push((tone, format!("  {level:<5} {:<15} {}", line.what, printable(&line.says))));
            if !line.fix.is_empty() {
                lines.push((Tone::Plain, format!("  {:<5} {:<15} do: {}", "", "", printable(&line.fix))));
            }
        }
        lines
    }
}
