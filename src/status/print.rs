//! How it is printed for people.

use std::fmt;
use std::time::Duration;

use super::{CollectionStatus, Status};
use crate::audit::Verified;
use crate::heartbeat::{ABSENT_SECONDS, WorkerRow};
use crate::job::{self, Census};
use crate::printable::{Line, Tone, printable, write_plain};

/// What is told of an index of which Elasticsearch does not say it.
pub(crate) const UNKNOWN: &str = "an unknown number of documents";

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_plain(f, self.lines())
    }
}

impl Status {
    /// All of it, line by line.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(why) = &self.postgres {
            lines.push((Tone::Wrong, format!("postgres    could not be asked: {}", printable(why))));
            lines.push((Tone::Plain, String::new()));
        }
        for (n, collection) in self.collections.iter().enumerate() {
            if n > 0 {
                lines.push((Tone::Plain, String::new()));
            }
            lines.extend(collection.lines());
        }
        lines.push((Tone::Plain, String::new()));
        lines.extend(self.lines_of_everybody());
        lines
    }

    /// What is not of one collection: workers, reindexes, jobs that nobody serves.
    pub(crate) fn lines_of_everybody(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if self.workers.is_empty() && self.postgres.is_none() {
            lines.push((Tone::Note, "workers     none is running; start one: catchword worker".into()));
        }
        lines.extend(self.workers.iter().flat_map(worker));
        for reindex in &self.reindexes {
            // what cannot go on is tried again
            let tone = if reindex.trouble.is_some() { Tone::Note } else { Tone::Plain };
            lines.push((tone, format!("reindex     {reindex}")));
        }
        for collection in &self.unserved {
            let says = format!(
                "unserved    {} has jobs, is not in this configuration, and no worker serves it: these jobs wait until one does",
                printable(collection)
            );
            lines.push((Tone::Wrong, says));
        }
        lines
    }
}

fn worker(worker: &WorkerRow) -> Vec<Line> {
    let (seen, served) = (ago(worker.seen_seconds_ago), worker.collections.join(", "));
    let (tone, absent) = if worker.is_alive() { (Tone::Plain, "") } else { (Tone::Note, ", absent") };
    let mut lines = vec![(
        tone,
        format!("worker      {} {} serves {served}, seen {seen}{absent}", printable(&worker.host), printable(&worker.version)),
    )];
    if let Some(trouble) = &worker.trouble {
        lines.push((Tone::Note, format!("            its last tick failed: {}", printable(trouble))));
    }
    if let Some(why) = &worker.lane {
        lines.push((Tone::Note, format!("            cannot keep the quick lane, so writes wait for its tick: {}", printable(why))));
    }
    if worker.breaker != "closed" {
        let says = format!("            sends nothing to Elasticsearch (circuit breaker open): {}", printable(&worker.breaker));
        lines.push((Tone::Note, says));
    }
    lines
}

impl CollectionStatus {
    /// Its name, and what is to be said of it. What [`is_well`](Status::is_well) does not pass is told as wrong.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let mut lines = vec![(Tone::Plain, self.name.clone())];
        match &self.census {
            Some(census) => lines.extend(census_lines(census)),
            None => lines.push((Tone::Wrong, "  jobs      unknown".into())),
        }
        if let Some(seconds) = self.stands_still_for {
            let why = self
                .census
                .as_ref()
                .and_then(|census| census.still_why.as_deref())
                .or(self.blocked.as_deref())
                .unwrap_or("the reason is not known");
            let says = format!("  still     jobs wait, and none has moved for {}: {}", whole(seconds), printable(why));
            lines.push((Tone::Wrong, says));
        }
        if let Some(why) = &self.paused {
            lines.push((Tone::Note, format!("  paused    {}", printable(why))));
        }
        if let Some(why) = &self.blocked {
            lines.push((Tone::Wrong, format!("  blocked   {}", printable(why))));
        }
        lines.push(self.index());
        if let Some(rebuild) = &self.rebuild {
            lines.push((Tone::Plain, format!("  rebuild   {rebuild}")));
        }
        if let Some(due) = &self.drift {
            lines.push((Tone::Note, format!("  drift     {due}")));
        }
        if let Some(why) = &self.not_shown {
            lines.push((Tone::Wrong, format!("  alias     {}", printable(why))));
        }
        if let Some(differ) = &self.unmigrated {
            lines.push((Tone::Wrong, format!("  migrate   {differ}")));
        }
        if let Some(audit) = &self.audit {
            let tone = if audit.repairable() > 0 && audit.scheduled == 0 { Tone::Wrong } else { Tone::Plain };
            lines.push((tone, format!("  verified  {}", verified(&self.name, audit))));
            if let Some(lost) = &audit.lost {
                lines.push((Tone::Wrong, format!("  lost      {}; an audit is requested", printable(lost))));
            }
        }
        if let Some(census) = self.census.as_ref().filter(|census| !self.served && census.due + census.waiting > 0) {
            let forgotten = self.paused.is_none() && census.oldest_due_seconds.is_some_and(|age| age > ABSENT_SECONDS);
            let tone = if forgotten { Tone::Wrong } else { Tone::Note };
            lines.push((tone, "  unserved  no living worker serves it; start one: catchword worker".into()));
        }
        lines
    }

    fn index(&self) -> Line {
        let indices = self.indices.join(", ");
        match (self.documents, &self.uncounted) {
            (Some(documents), _) => (Tone::Plain, format!("  index     {} -> {indices}, {documents} documents", self.alias)),
            (None, _) if self.indices.is_empty() => (Tone::Wrong, "  index     none yet; create it: catchword migrate".into()),
            (None, why) => {
                let why = printable(why.as_deref().unwrap_or("not asked"));
                (Tone::Wrong, format!("  index     {} -> {indices}, {UNKNOWN}: {why}", self.alias))
            }
        }
    }
}

fn census_lines(census: &Census) -> Vec<Line> {
    let oldest = match (census.oldest_change_seconds, census.oldest_due_seconds) {
        (Some(seconds), _) => format!(", the oldest change is {} old", whole(seconds)),
        (None, Some(seconds)) => format!(", the first one due {}", ago(seconds)),
        (None, None) => String::new(),
    };
    let counted = |n: i64| if census.estimated && n >= job::CENSUS_LIMIT { format!("about {n}") } else { n.to_string() };
    let mut lines = vec![
        (Tone::Plain, format!("  due       {}{oldest}", counted(census.due))),
        (Tone::Plain, format!("  waiting   {}", counted(census.waiting))),
        (if census.dead > 0 { Tone::Wrong } else { Tone::Plain }, format!("  dead      {}", counted(census.dead))),
    ];
    if let (touches @ 1.., Some(seconds)) = (census.failing_touches, census.failing_touch_seconds) {
        let error = census.failing_touch_error.as_deref().unwrap_or("the reason is not known");
        let says = format!("  touches   {} failing, the oldest is {} old: {}", counted(touches), whole(seconds), printable(error));
        lines.push((Tone::Note, says));
    }
    if census.expired > 0 {
        lines.push((Tone::Wrong, format!("  expired   {}", counted(census.expired))));
    }
    lines
}

/// Up to when both sides were seen to agree, and what was repaired for it.
fn verified(name: &str, audit: &Verified) -> String {
    let runs = if audit.running { "; an audit runs" } else { "" };
    let Some(at) = audit.verified_up_to else {
        return format!("never; a worker audits it automatically, or: catchword audit {name}{runs}");
    };
    let at = at.format("%Y-%m-%d %H:%M UTC");
    let repair = match (audit.repairable(), audit.scheduled) {
        (0, _) => format!("up to {at}"),
        (_, scheduled @ 1..) if audit.healing => format!("up to {at}, {scheduled} scheduled for repair"),
        (_, repaired @ 1..) => format!("up to {at}, {repaired} repaired"),
        (differ, 0) => format!("not: {differ} differed at {at}; repair them: {}", audit.repair(name)),
    };
    let given_up = match audit.given_up() {
        0 => String::new(),
        dead => format!("; {dead} given up: {}", audit.correct(name)),
    };
    format!("{repair}{given_up}{runs}")
}

fn ago(seconds: f64) -> String {
    format!("{} ago", whole(seconds))
}

fn whole(seconds: f64) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(seconds.max(0.0) as u64))
}
