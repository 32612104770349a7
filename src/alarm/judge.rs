//! Facts in, judgements out. Pure.

mod collection;
mod freshness;
mod words;

use super::thresholds::{HELD_BACK_SECONDS, HELD_BACK_TRANSACTIONS, PASSLESS_SECONDS, PRODUCERLESS_SECONDS, TROUBLED_SECONDS};
use super::{Check, Facts, HeldBack, Level};
use crate::config::CANARY;
use crate::worker::WorkerRow;
use words::{span, unwell, well};

/// Judges everything. Each judgement is there whatever it comes to, so that a script sees what was looked at.
pub fn judge(facts: &Facts) -> Vec<Check> {
    let living: Vec<&WorkerRow> = facts.workers.iter().filter(|worker| worker.is_alive()).collect();
    let mut checks = vec![elasticsearch(facts.elasticsearch.as_deref()), passes(&living), breaker(&living), vacuum(&facts.held_back)];
    checks.extend([producer(facts.canary_seconds, &living), unserved(&facts.unserved)]);
    for collection in &facts.collections {
        let serving: Vec<&WorkerRow> = living.iter().copied().filter(|worker| worker.collections.contains(&collection.name)).collect();
        // who hears of an outage, of workers that fail or of none at all need not hear of what follows from it
        let told = facts.elasticsearch.is_some()
            || serving.is_empty()
            || serving.iter().any(|worker| worker.breaker != "closed" || is_failing(worker));
        let why_not = if told { Told::Elsewhere } else { Told::Nowhere };
        checks.extend(collection::judge(collection, &serving, why_not));
        checks.extend(freshness::judge(&collection.name, &facts.seen));
    }
    // where nobody writes, the canary alone says how fresh search is
    if facts.canary_seconds.is_some() {
        checks.extend(freshness::judge(CANARY, &facts.seen));
    }
    checks
}

/// Whether a line about everybody tells already why a collection cannot be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Elsewhere,
    Nowhere,
}

/// What can be said when Postgres cannot be asked: nothing about the queue.
pub(super) fn blind(why: &str, elasticsearch_why: Option<&str>) -> Vec<Check> {
    let remedy = "bring it back or correct DATABASE_URL; until then nothing can be told";
    let postgres = Check { level: Level::Unknown, ..unwell("CatchwordPostgresDown", None, why.into(), remedy) };
    vec![postgres, elasticsearch(elasticsearch_why)]
}

fn elasticsearch(why: Option<&str>) -> Check {
    let name = "CatchwordElasticsearchDown";
    match why {
        None => well(name, None, "elasticsearch answers"),
        Some(why) => unwell(name, None, why.into(), "bring it back, or correct ELASTICSEARCH_URL; writes go on and leave their jobs"),
    }
}

/// Ticks of a living worker must succeed now and then.
fn passes(living: &[&WorkerRow]) -> Check {
    let name = "CatchwordPassFailing";
    match living.iter().find(|worker| is_failing(worker)) {
        None => well(name, None, "passes succeed"),
        Some(worker) => {
            let why = worker.trouble.as_ref().map_or(String::new(), |trouble| format!(": {trouble}"));
            unwell(
                name,
                None,
                format!("no pass of the worker on {} has succeeded for {}{why}", worker.host, span(worker.passed_seconds_ago)),
                "read its log and its /readyz: the error of the last tick is there",
            )
        }
    }
}

fn is_failing(worker: &WorkerRow) -> bool {
    let patience = if worker.trouble.is_some() { TROUBLED_SECONDS } else { PASSLESS_SECONDS };
    worker.passed_seconds_ago > patience
}

fn breaker(living: &[&WorkerRow]) -> Check {
    let name = "CatchwordBreakerOpen";
    match living.iter().find(|worker| worker.breaker != "closed") {
        None => well(name, None, "elasticsearch is not being left alone"),
        Some(worker) => unwell(
            name,
            None,
            format!("the worker on {} leaves elasticsearch alone for now: {}", worker.host, worker.breaker),
            "mend what it says; it tries again by itself every minute",
        ),
    }
}

/// The canary leaves a job each minute through the same triggers as every write. Without a worker nobody stirs it, and that is told elsewhere.
fn producer(canary_seconds: Option<f64>, living: &[&WorkerRow]) -> Check {
    let name = "CatchwordProducerStopped";
    match canary_seconds {
        Some(seconds) if seconds > PRODUCERLESS_SECONDS && !living.is_empty() => unwell(
            name,
            None,
            format!(
                "workers live, and not even the canary was changed for {}: writes to Postgres may fail or leave no jobs",
                span(seconds)
            ),
            "catchword doctor looks at the triggers; read the worker's log",
        ),
        Some(_) => well(name, None, "the canary leaves its jobs"),
        None => well(name, None, "there is no canary to tell by"),
    }
}

fn vacuum(held_back: &[HeldBack]) -> Check {
    let name = "CatchwordVacuumHeldBack";
    let too_old = |held: &&HeldBack| match held.seconds {
        Some(seconds) => seconds > HELD_BACK_SECONDS,
        None => held.transactions > HELD_BACK_TRANSACTIONS,
    };
    let Some(held) = held_back.iter().find(too_old) else { return well(name, None, "vacuum is not held back") };
    let since = held.seconds.map_or_else(|| format!("{} transactions", held.transactions), span);
    let remedy = match held.by.as_str() {
        "session" => "ask its owner, then end it (select pg_terminate_backend(PID)): its transaction is undone",
        "prepared" => "ask who prepared it, then commit prepared or rollback prepared: either is for good",
        "slot" => {
            "let its reader catch up; only if that is gone for good, drop it (select pg_drop_replication_slot(NAME)): a replica that uses it must be made again"
        }
        _ => "end the long query on that standby; with hot_standby_feedback = off it would be cancelled there instead",
    };
    unwell(name, None, format!("{} has held vacuum back for {since}, so that settled jobs pile up as dead rows", held.who), remedy)
}

fn unserved(unserved: &[String]) -> Check {
    let name = "CatchwordWorkerAbsent";
    match unserved {
        [] => well(name, None, "no jobs of a collection that nobody serves"),
        [first, ..] => Check {
            collection: Some(first.clone()),
            ..unwell(
                name,
                None,
                format!("{} has jobs, is not in this configuration, and no worker serves it", unserved.join(", ")),
                "start the worker whose configuration has it; only if nobody needs it any more: catchword detach NAME, which forgets its jobs",
            )
        },
    }
}

#[cfg(test)]
mod tests;
