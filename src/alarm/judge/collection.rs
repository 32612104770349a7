//! The judgements of one collection. Pure.

use super::super::thresholds::*;
use super::super::{Check, CollectionFacts, Level};
use super::Told;
use super::words::{counted, jobs, span, unwell, well};
use crate::worker::WorkerRow;

const START: &str = "start one: catchword worker";

/// Everything about one collection; `serving` are its living workers.
pub(super) fn judge(collection: &CollectionFacts, serving: &[&WorkerRow], told: Told) -> [Check; 15] {
    let blocked = blocked(collection, serving);
    let told = if blocked.level == Level::Well { told } else { Told::Elsewhere };
    [
        worker_absent(collection, serving),
        consumer_stopped(collection, serving),
        no_progress(collection, told),
        queue_long(collection),
        oldest_due(collection),
        oldest_change(collection),
        expired(collection),
        dead_letters(collection),
        blocked,
        ahead(collection),
        switched(collection),
        paused(collection),
        lost_writes(collection),
        audit_drift(collection),
        audit_stale(collection),
    ]
}

fn worker_absent(collection: &CollectionFacts, serving: &[&WorkerRow]) -> Check {
    let name = "CatchwordWorkerAbsent";
    match serving.len() {
        0 => unwell(name, Some(collection), format!("no worker that serves it was seen for {}", span(ABSENT_SECONDS)), START),
        n => well(name, Some(collection), format!("served by {n}")),
    }
}

fn consumer_stopped(collection: &CollectionFacts, serving: &[&WorkerRow]) -> Check {
    let name = "CatchwordConsumerStopped";
    let age = collection.age();
    if age > STOPPED_SECONDS && collection.paused.is_none() && serving.is_empty() {
        let says = format!("{} due, the first for {}, and nobody takes them", jobs(collection.census.due), span(age));
        return unwell(name, Some(collection), says, START);
    }
    well(name, Some(collection), "what is due is taken")
}

/// Whatever the cause: ticks see due jobs, and none of them moves.
fn no_progress(collection: &CollectionFacts, told: Told) -> Check {
    let name = "CatchwordNoProgress";
    let census = &collection.census;
    let seconds = census.still_seconds.unwrap_or(0.0);
    if seconds <= STILL_SECONDS || collection.paused.is_some() {
        return well(name, Some(collection), "what is due moves");
    }
    if told == Told::Elsewhere {
        return well(name, Some(collection), format!("nothing has moved for {}, and another line says why", span(seconds)));
    }
    let why = census.still_why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    let which = if census.due > 0 { format!("{} due", jobs(census.due)) } else { "jobs were refused and wait for another try".into() };
    let says = format!("{which}, and none was written or settled for {}{why}", span(seconds));
    unwell(name, Some(collection), says, "look at one key (catchword explain), and at who locks jobs; the worker's log says when it began")
}

fn queue_long(collection: &CollectionFacts) -> Check {
    let (name, due) = ("CatchwordQueueLong", collection.census.due);
    if due > QUEUE_JOBS && collection.age() > QUEUE_SECONDS && collection.paused.is_none() {
        let says = format!("{} due, the first for {}", jobs(due), span(collection.age()));
        return unwell(name, Some(collection), says, "watch whether it shrinks (catchword status); if not, start another worker");
    }
    well(name, Some(collection), format!("{} due", jobs(due)))
}

fn oldest_due(collection: &CollectionFacts) -> Check {
    let name = "CatchwordOldestDueJob";
    let (live, bulk) = (collection.census.oldest_live_seconds.unwrap_or(0.0), collection.census.oldest_bulk_seconds.unwrap_or(0.0));
    let remedy = "read why in the worker's log or its /readyz, and look at one key: catchword explain";
    match collection.paused {
        None if live > LIVE_DUE_SECONDS => {
            unwell(name, Some(collection), format!("a change has been due for {} and is not verified", span(live)), remedy)
        }
        None if bulk > BULK_DUE_SECONDS => {
            unwell(name, Some(collection), format!("a job of a reindex has been due for {}", span(bulk)), remedy)
        }
        _ => well(name, Some(collection), "nothing has been due for long"),
    }
}

/// By a clock that no postponement moves: what is put off again and again is never due for long.
fn oldest_change(collection: &CollectionFacts) -> Check {
    let name = "CatchwordOldestChange";
    let seconds = collection.census.oldest_change_seconds.unwrap_or(0.0);
    if seconds <= CHANGE_SECONDS || collection.paused.is_some() {
        return well(name, Some(collection), "no change waits for long");
    }
    let census = &collection.census;
    let touches = match (census.failing_touches, &census.failing_touch_error) {
        (0, _) => String::new(),
        (n, error) => format!(
            "; {} of related rows could not be passed on{}",
            counted(n, "change"),
            error.as_ref().map_or(String::new(), |error| format!(": {error}"))
        ),
    };
    let says = format!("a change was made {} ago and is not verified{touches}", span(seconds));
    unwell(name, Some(collection), says, "look at the oldest ones: the runbook has the query; then at one key: catchword explain")
}

fn expired(collection: &CollectionFacts) -> Check {
    let name = "CatchwordJobsExpired";
    match collection.census.expired {
        0 => well(name, Some(collection), "none"),
        n => unwell(
            name,
            Some(collection),
            format!("{} older than 30 days: something was out of step for a month", jobs(n)),
            "find out why (a pause, no worker, a document that is refused); they are still worked on and not lost",
        ),
    }
}

fn dead_letters(collection: &CollectionFacts) -> Check {
    let name = "CatchwordDeadLettersGrowing";
    let remedy = "catchword dead list; mend what it says, then catchword dead replay";
    match (collection.letters.lately, collection.census.dead) {
        (0, 0) => well(name, Some(collection), "none"),
        (0, dead) => {
            let says = format!("{} given up, none in the last hour", counted(dead, "document"));
            Check { level: Level::Warning, ..unwell(name, Some(collection), says, remedy) }
        }
        (lately, _) => unwell(name, Some(collection), format!("{} given up in the last hour", counted(lately, "document")), remedy),
    }
}

/// What is found now outweighs what a worker said at its last tick.
fn blocked(collection: &CollectionFacts, serving: &[&WorkerRow]) -> Check {
    let name = "CatchwordCollectionBlocked";
    let said = || serving.iter().find_map(|worker| worker.blocked.get(&collection.name)?.as_str());
    match collection.blocked.as_deref().or_else(said) {
        None => well(name, Some(collection), "it can be worked on"),
        Some(why) => {
            unwell(name, Some(collection), why.into(), "mend that; it goes on by itself. catchword doctor looks at everything around it")
        }
    }
}

fn ahead(collection: &CollectionFacts) -> Check {
    let name = "CatchwordAhead";
    match collection.letters.ahead {
        0 => well(name, Some(collection), "postgres has the highest numbers"),
        n => unwell(
            name,
            Some(collection),
            format!("the index stays ahead of Postgres for {}", counted(n, "key")),
            "find out who else writes to the index; then catchword dead replay --reason ahead",
        ),
    }
}

fn switched(collection: &CollectionFacts) -> Check {
    let name = "CatchwordServerSwitched";
    match collection.verified.as_ref().and_then(|verified| verified.switched.as_ref()) {
        None => well(name, Some(collection), "the same server as before"),
        Some(switched) => unwell(
            name,
            Some(collection),
            format!("{} ago Postgres became {}, so commits may be lost", span(switched.seconds), switched.how),
            "catchword reindex NAME --all --anew --hidden --yes",
        ),
    }
    .named(&collection.name)
}

fn paused(collection: &CollectionFacts) -> Check {
    let name = "CatchwordPausedTooLong";
    match &collection.paused {
        Some((seconds, why)) if *seconds > PAUSED_SECONDS => {
            let says = format!("paused for {} {why}", span(*seconds));
            unwell(name, Some(collection), says, "if nobody needs it any more: catchword resume NAME").named(&collection.name)
        }
        _ => well(name, Some(collection), "not paused for long"),
    }
}

fn lost_writes(collection: &CollectionFacts) -> Check {
    let name = "CatchwordIndexLostWrites";
    match collection.verified.as_ref().and_then(|verified| verified.lost_lately.as_deref()) {
        None => well(name, Some(collection), "the index has what it confirmed"),
        Some(lost) => unwell(
            name,
            Some(collection),
            lost.into(),
            "find out what became of the index; a worker audits and repairs by itself, or: catchword audit NAME --repair",
        )
        .named(&collection.name),
    }
}

fn audit_drift(collection: &CollectionFacts) -> Check {
    let name = "CatchwordAuditDrift";
    let Some(verified) = collection.verified.as_ref().filter(|verified| verified.differed() > 0) else {
        return well(name, Some(collection), "the last audit found nothing");
    };
    let differences = counted(i64::try_from(verified.differed()).unwrap_or(i64::MAX), "difference");
    let says = format!("the last audit found {differences} that no job would have repaired");
    let repair = || format!("{}; if it finds some again: {}", verified.repair(&collection.name), verified.causes());
    let correct = || verified.correct(&collection.name);
    let remedy = match (verified.mendable(), verified.given_up()) {
        (_, 0) => repair(),
        (0, _) => correct(),
        (_, dead) => format!("{}; {dead} given up: {}", repair(), correct()),
    };
    unwell(name, Some(collection), says, &remedy)
}

fn audit_stale(collection: &CollectionFacts) -> Check {
    let name = "CatchwordAuditStale";
    let seconds = collection.unaudited_seconds;
    if seconds > UNAUDITED_SECONDS {
        let says = format!("nobody has compared all of it with Postgres for {}", span(seconds));
        return unwell(name, Some(collection), says, "set audit under [worker], or: catchword audit NAME").named(&collection.name);
    }
    well(name, Some(collection), "all of it was compared lately, or attached")
}

impl CollectionFacts {
    /// For how long the oldest due job has been due.
    fn age(&self) -> f64 {
        self.census.oldest_due_seconds.unwrap_or(0.0)
    }
}
