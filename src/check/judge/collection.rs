//! The judgements of one collection. Pure.

use super::super::thresholds::*;
use super::super::{Check, Level};
use super::Told;
use super::words::{counted, jobs, span, unwell, warning, well};
use crate::audit::Verified;
use crate::heartbeat::WorkerRow;
use crate::job::{Census, Letters};
use crate::standing::{CollectionStanding, Standing, Topic};

const START: &str = "start one: catchword worker";

/// Everything about one collection, as far as it was read.
pub(super) fn judge(standing: &Standing, collection: &CollectionStanding, told: Told) -> Vec<Check> {
    let serving = standing.serving(&collection.name);
    let blocked = blocked(standing, collection);
    let told = if blocked.level == Level::Well { told } else { Told::Elsewhere };
    let mut checks = Vec::new();
    if standing.knows(Topic::Workers) {
        checks.push(worker_absent(collection, &serving));
        checks.extend(collection.census.as_ref().map(|census| consumer_stopped(collection, census, &serving)));
    }
    if let Some(census) = &collection.census {
        checks.extend([no_progress(collection, census, told), queue_long(collection, census), oldest_due(collection, census)]);
        checks.extend([oldest_change(collection, census), expired(collection, census)]);
    }
    if let (Some(census), Some(letters)) = (&collection.census, &collection.letters) {
        checks.push(dead_letters(collection, census, letters));
    }
    if standing.knows(Topic::Attached) {
        checks.push(blocked);
    }
    checks.extend(collection.letters.as_ref().map(|letters| ahead(collection, letters)));
    if standing.knows(Topic::Pauses) {
        checks.push(paused(collection));
    }
    if standing.knows(Topic::Audits) {
        let verified = collection.audit.as_ref();
        checks.extend([switched(collection, verified), lost_writes(collection, verified)]);
    }
    if standing.knows(Topic::Audits) || collection.drift.is_some() || collection.not_shown.is_some() {
        checks.push(drift(collection, collection.audit.as_ref()));
    }
    if standing.knows(Topic::Unaudited) {
        checks.push(audit_stale(collection));
    }
    checks
}

fn worker_absent(collection: &CollectionStanding, serving: &[&WorkerRow]) -> Check {
    let name = "CatchwordWorkerAbsent";
    match serving.len() {
        0 => unwell(name, Some(collection), "no worker that serves it is running, or it is stuck".into(), START),
        n => well(name, Some(collection), format!("served by {n}")),
    }
}

fn consumer_stopped(collection: &CollectionStanding, census: &Census, serving: &[&WorkerRow]) -> Check {
    let name = "CatchwordConsumerStopped";
    let age = due_for(census);
    if age > STOPPED_SECONDS && collection.paused.is_none() && serving.is_empty() {
        let says = format!("{} due, the first for {}, and no worker takes them", jobs(census.due), span(age));
        return unwell(name, Some(collection), says, START);
    }
    well(name, Some(collection), "what is due is taken")
}

/// Whatever the cause: ticks see due jobs, and none of them moves.
fn no_progress(collection: &CollectionStanding, census: &Census, told: Told) -> Check {
    let name = "CatchwordNoProgress";
    let Some(seconds) = collection.stands_still_for() else { return well(name, Some(collection), "what is due moves") };
    if told == Told::Elsewhere {
        return well(name, Some(collection), format!("nothing has moved for {}, and another line says why", span(seconds)));
    }
    let why = census.still_why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    let which = if census.due > 0 { format!("{} due", jobs(census.due)) } else { "jobs were refused and wait for another try".into() };
    let says = format!("{which}, and none was written or settled for {}{why}", span(seconds));
    unwell(name, Some(collection), says, "look at one key (catchword explain), and at who locks jobs; the worker's log says when it began")
}

fn queue_long(collection: &CollectionStanding, census: &Census) -> Check {
    let (name, due) = ("CatchwordQueueLong", census.due);
    if due > QUEUE_JOBS && due_for(census) > QUEUE_SECONDS && collection.paused.is_none() {
        let says = format!("{} due, the first for {}", jobs(due), span(due_for(census)));
        return unwell(name, Some(collection), says, "watch whether it shrinks (catchword status); if not, start another worker");
    }
    well(name, Some(collection), format!("{} due", jobs(due)))
}

fn oldest_due(collection: &CollectionStanding, census: &Census) -> Check {
    let name = "CatchwordOldestDueJob";
    let (live, bulk) = (census.oldest_live_seconds.unwrap_or(0.0), census.oldest_bulk_seconds.unwrap_or(0.0));
    let remedy = "read why in the worker's log or its /readyz, and look at one key: catchword explain";
    match &collection.paused {
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
fn oldest_change(collection: &CollectionStanding, census: &Census) -> Check {
    let name = "CatchwordOldestChange";
    let seconds = census.oldest_change_seconds.unwrap_or(0.0);
    if seconds <= CHANGE_SECONDS || collection.paused.is_some() {
        return well(name, Some(collection), "no change waits for long");
    }
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

fn expired(collection: &CollectionStanding, census: &Census) -> Check {
    let name = "CatchwordJobsExpired";
    match census.expired {
        0 => well(name, Some(collection), "none"),
        n => unwell(
            name,
            Some(collection),
            format!("{} older than 30 days: something was out of step for a month", jobs(n)),
            "find out why (a pause, no worker, a document that is refused); they are still worked on and not lost",
        ),
    }
}

fn dead_letters(collection: &CollectionStanding, census: &Census, letters: &Letters) -> Check {
    let name = "CatchwordDeadLettersGrowing";
    let remedy = "catchword dead list; fix what it says, then catchword dead replay";
    match (letters.lately, census.dead) {
        (0, 0) => well(name, Some(collection), "none"),
        (0, dead) => warning(name, collection, format!("{} given up, none in the last hour", counted(dead, "document")), remedy),
        (lately, _) => unwell(name, Some(collection), format!("{} given up in the last hour", counted(lately, "document")), remedy),
    }
}

fn blocked(standing: &Standing, collection: &CollectionStanding) -> Check {
    let name = "CatchwordCollectionBlocked";
    match standing.why_blocked(collection) {
        None => well(name, Some(collection), "it can be worked on"),
        Some(why) => {
            let remedy = "fix that; the work goes on automatically. catchword doctor looks at everything around it";
            unwell(name, Some(collection), why.into(), remedy)
        }
    }
}

fn ahead(collection: &CollectionStanding, letters: &Letters) -> Check {
    let name = "CatchwordAhead";
    match letters.ahead {
        0 => well(name, Some(collection), "postgres has the highest numbers"),
        n => unwell(
            name,
            Some(collection),
            format!("the index stays ahead of Postgres for {}", counted(n, "key")),
            "find out who else writes to the index; then catchword dead replay --reason ahead",
        ),
    }
}

fn switched(collection: &CollectionStanding, verified: Option<&Verified>) -> Check {
    let name = "CatchwordServerSwitched";
    match verified.and_then(|verified| verified.switched.as_ref()) {
        None => well(name, Some(collection), "the same server as before"),
        Some(switched) => unwell(
            name,
            Some(collection),
            format!("{} ago Postgres became {}, so commits may be lost", span(switched.seconds), switched.how),
            "catchword reindex NAME --all --rewrite --hidden --yes",
        ),
    }
    .named(&collection.name)
}

fn paused(collection: &CollectionStanding) -> Check {
    let name = "CatchwordPausedTooLong";
    match &collection.paused {
        Some(pause) if pause.seconds > PAUSED_SECONDS => {
            let says = format!("paused for {} {}", span(pause.seconds), pause.by_whom_and_why());
            unwell(name, Some(collection), says, "if nobody needs it any more: catchword resume NAME").named(&collection.name)
        }
        _ => well(name, Some(collection), "not paused for long"),
    }
}

fn lost_writes(collection: &CollectionStanding, verified: Option<&Verified>) -> Check {
    let name = "CatchwordIndexLostWrites";
    match verified.and_then(|verified| verified.lost_lately.as_deref()) {
        None => well(name, Some(collection), "the index has what it confirmed"),
        Some(lost) => unwell(
            name,
            Some(collection),
            lost.into(),
            "find out what became of the index; a worker audits and repairs automatically, or: catchword audit NAME --repair",
        )
        .named(&collection.name),
    }
}

/// Documents differ from Postgres, readers of several collections do not find them, or they were built by another view or mapping than there
/// is now. The last is known before any audit finds it in the documents, and nothing is held up by it: so it is a warning. So is a setting
/// that was not migrated, such as a schema that was not taken in.
fn drift(collection: &CollectionStanding, verified: Option<&Verified>) -> Check {
    let name = "CatchwordAuditDrift";
    let differed = verified.filter(|verified| verified.differed() > 0);
    if let (None, Some(why)) = (differed, &collection.not_shown) {
        return unwell(name, Some(collection), why.clone(), "readers of this collection alone miss nothing, and it is worked on meanwhile");
    }
    match (differed, &collection.drift) {
        (None, None) => match collection.attached.as_ref().filter(|attached| !attached.unmigrated.is_empty()) {
            None if verified.is_none_or(|verified| verified.finished_at.is_none()) => {
                well(name, Some(collection), "no audit has ended yet")
            }
            None => well(name, Some(collection), "the last audit found nothing"),
            Some(attached) => {
                let differ = format!("{}: the configuration and the database differ", attached.unmigrated.join(", "));
                warning(name, collection, differ, "catchword migrate")
            }
        },
        (None, Some(due)) => warning(name, collection, due.what.clone(), &due.remedy),
        (Some(verified), due) => {
            let also = due.as_ref().map_or(String::new(), |due| format!("; and {due}"));
            unwell(name, Some(collection), differences(verified), &format!("{}{also}", repair(&collection.name, verified)))
        }
    }
}

fn differences(verified: &Verified) -> String {
    let differences = counted(i64::try_from(verified.differed()).unwrap_or(i64::MAX), "difference");
    format!("the last audit found {differences} that no job would have repaired")
}

fn repair(collection: &str, verified: &Verified) -> String {
    let repair = || format!("{}; if it finds some again: {}", verified.repair(collection), verified.causes());
    let correct = || verified.correct(collection);
    match (verified.repairable(), verified.given_up()) {
        (_, 0) => repair(),
        (0, _) => correct(),
        (_, dead) => format!("{}; {dead} given up: {}", repair(), correct()),
    }
}

fn audit_stale(collection: &CollectionStanding) -> Check {
    let name = "CatchwordAuditStale";
    let seconds = collection.unaudited_seconds.unwrap_or(0.0);
    if seconds > UNAUDITED_SECONDS {
        let says = format!("it was not compared with Postgres as a whole for {}", span(seconds));
        return unwell(name, Some(collection), says, "set audit under [worker], or: catchword audit NAME").named(&collection.name);
    }
    well(name, Some(collection), "all of it was compared lately, or attached")
}

/// For how long the oldest due job has been due.
fn due_for(census: &Census) -> f64 {
    census.oldest_due_seconds.unwrap_or(0.0)
}
