//! How it is printed for people.

use std::fmt;
use std::time::Duration;

use super::{CollectionStatus, Status};
use crate::audit::Verified;
use crate::job::{self, Census};
use crate::printable::printable;

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.postgres {
            writeln!(f, "postgres    could not be asked: {}\n", printable(why))?;
        }
        for (n, collection) in self.collections.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            collection.fmt(f)?;
        }
        writeln!(f)?;
        if self.workers.is_empty() && self.postgres.is_none() {
            writeln!(f, "workers     none is running; start one: catchword worker")?;
        }
        for worker in &self.workers {
            let (seen, served) = (ago(worker.seen_seconds_ago), worker.collections.join(", "));
            let absent = if worker.is_alive() { "" } else { ", absent" };
            writeln!(f, "worker      {} {} serves {served}, seen {seen}{absent}", printable(&worker.host), printable(&worker.version))?;
            if let Some(trouble) = &worker.trouble {
                writeln!(f, "            its last tick failed: {}", printable(trouble))?;
            }
            if worker.breaker != "closed" {
                writeln!(f, "            sends nothing to Elasticsearch (circuit breaker open): {}", printable(&worker.breaker))?;
            }
        }
        for reindex in &self.reindexes {
            writeln!(f, "unfinished  {reindex}: it runs, or was interrupted; continue it with: catchword reindex --resume {}", reindex.id)?;
        }
        for collection in &self.unserved {
            writeln!(
                f,
                "unserved    {} has jobs, is not in this configuration, and no worker serves it: these jobs wait until one does",
                printable(collection)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for CollectionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        match &self.census {
            Some(census) => write_census(f, census)?,
            None => writeln!(f, "  jobs      unknown")?,
        }
        if let Some(seconds) = self.stands_still_for {
            let why = self
                .census
                .as_ref()
                .and_then(|census| census.still_why.as_deref())
                .or(self.blocked.as_deref())
                .unwrap_or("the reason is not known");
            writeln!(f, "  still     jobs wait, and none has moved for {}: {}", whole(seconds), printable(why))?;
        }
        if let Some(why) = &self.paused {
            writeln!(f, "  paused    {}", printable(why))?;
        }
        if let Some(why) = &self.blocked {
            writeln!(f, "  blocked   {}", printable(why))?;
        }
        let indices = self.indices.join(", ");
        match (self.documents, &self.uncounted) {
            (Some(documents), _) => writeln!(f, "  index     {} -> {indices}, {documents} documents", self.alias)?,
            (None, _) if self.indices.is_empty() => writeln!(f, "  index     none yet; create it: catchword migrate")?,
            (None, why) => writeln!(
                f,
                "  index     {} -> {indices}, an unknown number of documents: {}",
                self.alias,
                printable(why.as_deref().unwrap_or("not asked"))
            )?,
        }
        if let Some(rebuild) = &self.rebuild {
            writeln!(f, "  rebuild   {rebuild}")?;
        }
        if let Some(due) = &self.drift {
            writeln!(f, "  drift     {due}")?;
        }
        if let Some(why) = &self.not_shown {
            writeln!(f, "  alias     {}", printable(why))?;
        }
        if let Some(differ) = &self.unmigrated {
            writeln!(f, "  migrate   {differ}")?;
        }
        if let Some(audit) = &self.audit {
            writeln!(f, "  verified  {}", verified(&self.name, audit))?;
            if let Some(lost) = &audit.lost {
                writeln!(f, "  lost      {}; an audit is requested", printable(lost))?;
            }
        }
        if !self.served && self.census.as_ref().is_some_and(|census| census.due + census.waiting > 0) {
            writeln!(f, "  unserved  no living worker serves it; start one: catchword worker")?;
        }
        Ok(())
    }
}

fn write_census(f: &mut fmt::Formatter<'_>, census: &Census) -> fmt::Result {
    let oldest = match (census.oldest_change_seconds, census.oldest_due_seconds) {
        (Some(seconds), _) => format!(", the oldest change is {} old", whole(seconds)),
        (None, Some(seconds)) => format!(", the first one due {}", ago(seconds)),
        (None, None) => String::new(),
    };
    let counted = |n: i64| if census.estimated && n >= job::CENSUS_LIMIT { format!("about {n}") } else { n.to_string() };
    writeln!(f, "  due       {}{oldest}", counted(census.due))?;
    writeln!(f, "  waiting   {}", counted(census.waiting))?;
    writeln!(f, "  dead      {}", counted(census.dead))?;
    if let (touches @ 1.., Some(seconds)) = (census.failing_touches, census.failing_touch_seconds) {
        let error = census.failing_touch_error.as_deref().unwrap_or("the reason is not known");
        writeln!(f, "  touches   {} failing, the oldest is {} old: {}", counted(touches), whole(seconds), printable(error))?;
    }
    if census.expired > 0 {
        writeln!(f, "  expired   {}", counted(census.expired))?;
    }
    Ok(())
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
