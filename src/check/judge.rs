//! How things stand goes in, judgements come out. Pure.

mod collection;
mod freshness;
mod words;

use super::thresholds::{HELD_BACK_SECONDS, HELD_BACK_TRANSACTIONS, PASSLESS_SECONDS, PRODUCERLESS_SECONDS, TROUBLED_SECONDS};
use super::{Check, Level};
use crate::config::CANARY;
use crate::heartbeat::WorkerRow;
use crate::standing::{Holder, Standing, Topic};
use words::{span, unwell, well};

/// Judges everything that is known. Each judgement is there whatever it comes to, so that a script sees what was looked at.
pub(super) fn judge(standing: &Standing) -> Vec<Check> {
    let living: Vec<&WorkerRow> = standing.living().collect();
    let mut checks: Vec<Check> = standing.refused.iter().map(|(topic, why)| untold(*topic, why)).collect();
    checks.push(elasticsearch(standing.elasticsearch.as_deref()));
    if standing.knows(Topic::Workers) {
        checks.extend([passes(&living), breaker(&living)]);
    }
    if standing.knows(Topic::Vacuum) {
        checks.push(vacuum(&standing.holders));
    }
    if standing.knows(Topic::Canary) && standing.knows(Topic::Workers) {
        checks.push(producer(standing.canary_seconds, &living));
    }
    if standing.knows(Topic::Unserved) && standing.knows(Topic::Workers) {
        checks.push(unserved(&standing.unserved));
    }
    for collection in &standing.collections {
        checks.extend(collection::judge(standing, collection, told(standing, &collection.name)));
        checks.extend(judge_freshness(standing, &collection.name));
    }
    // where nobody writes, the canary alone says how fresh search is
    if standing.canary_seconds.is_some() {
        checks.extend(judge_freshness(standing, CANARY));
    }
    checks
}

fn judge_freshness(standing: &Standing, collection: &str) -> Vec<Check> {
    if standing.knows(Topic::Freshness) { freshness::judge(collection, &standing.seen).into() } else { Vec::new() }
}

/// Who hears of an outage, of workers that fail or of none at all need not hear of what follows from it.
fn told(standing: &Standing, collection: &str) -> Told {
    let serving = standing.serving(collection);
    let is_told = standing.elasticsearch.is_some()
        || serving.is_empty()
        || serving.iter().any(|worker| worker.breaker != "closed" || is_failing(worker));
    if is_told { Told::Elsewhere } else { Told::Nowhere }
}

/// Whether a line about everybody tells already why a collection cannot be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Elsewhere,
    Nowhere,
}

/// Why Postgres could not be asked at all.
#[derive(Debug)]
pub(super) enum Unasked {
    Down(String),
    /// It answered, and refused: a missing right, a lock, another version's schema, a standby.
    Refused(String),
}

/// What can be told when Postgres cannot be asked: nothing about the queue.
pub(super) fn judge_unasked(unasked: &Unasked, elasticsearch_why: Option<&str>) -> Vec<Check> {
    let postgres = match unasked {
        Unasked::Down(why) => unknown(why.clone(), "start it, or correct DATABASE_URL; until then nothing can be judged"),
        Unasked::Refused(why) => unknown(refusal(why), "fix that; until then nothing can be told"),
    };
    vec![postgres, elasticsearch(elasticsearch_why)]
}

/// What Postgres refused to tell, while it told the rest.
fn untold(topic: Topic, why: &str) -> Check {
    let says = format!("{} (asked for: {})", refusal(why), topic.name());
    unknown(says, "fix that, or end what holds the lock (pg_stat_activity names it); until then this is not judged")
}

fn refusal(why: &str) -> String {
    format!("postgres answers, and refuses: {}", why.trim_start_matches("postgres says: "))
}

fn unknown(says: String, remedy: &str) -> Check {
    Check { level: Level::Unknown, ..unwell("CatchwordPostgresDown", None, says, remedy) }
}

fn elasticsearch(why: Option<&str>) -> Check {
    let name = "CatchwordElasticsearchDown";
    match why {
        None => well(name, None, "elasticsearch answers"),
        Some(why) => unwell(name, None, why.into(), "start it, or correct ELASTICSEARCH_URL; writes go on, and their jobs wait"),
    }
}

/// Ticks of a living worker must succeed now and then.
fn passes(living: &[&WorkerRow]) -> Check {
    let name = "CatchwordPassFailing";
    match living.iter().find(|worker| is_failing(worker)) {
        None => lane(living).unwrap_or_else(|| well(name, None, "passes succeed")),
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

/// Nothing is lost and everything moves, but nobody is as fast as was promised: a worker wants to keep the quick lane and cannot.
fn lane(living: &[&WorkerRow]) -> Option<Check> {
    let (worker, why) = living.iter().find_map(|worker| Some((worker, worker.lane.as_ref()?)))?;
    let says = format!("passes succeed, but the worker on {} cannot keep the quick lane, so writes wait for its tick: {why}", worker.host);
    let remedy = "end whoever holds the lane's lock, if one is named; otherwise read the worker's log";
    Some(Check { level: Level::Warning, ..unwell("CatchwordPassFailing", None, says, remedy) })
}

fn is_failing(worker: &WorkerRow) -> bool {
    let patience = if worker.trouble.is_some() { TROUBLED_SECONDS } else { PASSLESS_SECONDS };
    worker.passed_seconds_ago > patience
}

fn breaker(living: &[&WorkerRow]) -> Check {
    let name = "CatchwordBreakerOpen";
    match living.iter().find(|worker| worker.breaker != "closed") {
        None => well(name, None, "no worker's circuit breaker is open"),
        Some(worker) => unwell(
            name,
            None,
            format!("the worker on {} sends nothing to Elasticsearch (circuit breaker open): {}", worker.host, worker.breaker),
            "fix what it says; it tries again automatically",
        ),
    }
}

/// The canary's change schedules a job each minute, through the same triggers as every write. Without a worker nobody changes it, and that is
/// told elsewhere.
fn producer(canary_seconds: Option<f64>, living: &[&WorkerRow]) -> Check {
    let name = "CatchwordProducerStopped";
    match canary_seconds {
        Some(seconds) if seconds > PRODUCERLESS_SECONDS && !living.is_empty() => unwell(
            name,
            None,
            format!(
                "workers live, and not even the canary was {}: writes to Postgres may fail or schedule no jobs",
                if seconds.is_finite() { format!("changed for {}", span(seconds)) } else { "ever changed".into() }
            ),
            "catchword doctor looks at the triggers; read the worker's log",
        ),
        Some(_) => well(name, None, "the canary's jobs are scheduled"),
        None => well(name, None, "there is no canary to judge by"),
    }
}

fn vacuum(holders: &[Holder]) -> Check {
    let name = "CatchwordVacuumHeldBack";
    let too_old = |held: &&Holder| match held.seconds {
        Some(seconds) => seconds > HELD_BACK_SECONDS,
        None => held.transactions > HELD_BACK_TRANSACTIONS,
    };
    let Some(held) = holders.iter().find(too_old) else { return well(name, None, "vacuum is not held back") };
    let since = held.seconds.map_or_else(|| format!("{} transactions", held.transactions), span);
    let remedy = match held.by.as_str() {
        "session" => {
            "ask its owner, then end it (select pg_terminate_backend(PID); a superuser's session needs a superuser): its transaction is rolled back"
        }
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
                "start the worker whose configuration has it; only if nobody needs it any more: catchword detach NAME, which deletes its jobs",
            )
        },
    }
}

#[cfg(test)]
mod tests;
