//! What was looked at, and how it is.

use std::fmt;

use serde::Serialize;

use crate::printable::printable;

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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut group = "";
        for line in &self.lines {
            if line.group != group {
                group = &line.group;
                writeln!(f, "{}", printable(group))?;
            }
            let level = match line.level {
                Level::Ok => "ok",
                Level::Warn => "warn",
                Level::Fail => "FAIL",
            };
            writeln!(f, "  {level:<5} {:<15} {}", line.what, printable(&line.says))?;
            if !line.fix.is_empty() {
                writeln!(f, "  {:<5} {:<15} do: {}", "", "", printable(&line.fix))?;
            }
        }
        for unseen in &self.unseen {
            writeln!(f, "unseen  {}", printable(unseen))?;
        }
        let (ok, warn, fail) = (self.count(Level::Ok), self.count(Level::Warn), self.count(Level::Fail));
        writeln!(f, "{ok} ok, {warn} to think about, {fail} to fix")
    }
}
