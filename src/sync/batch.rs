//! One batch, from claim to commit: the story of the whole project on one screen.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::{PgConnection, Postgres, Transaction};
use tracing::{Instrument, debug_span};

use super::deadline::Deadline;
use super::fate::{Fate, Finding, fate, mass_refusal};
use super::find::{Facts, find, sort_out_bad_keys};
use super::groups;
use super::panicked::UnderWay;
use super::renumber::{Renumbered, renumber};
use super::search::{Found, Search};
use super::walk::Look;
use super::write::Written;
use crate::collection::Collection;
use crate::config::CANARY;
use crate::context::Context;
use crate::elastic::Answer;
use crate::health::Fault;
use crate::job::{self, Job};
use crate::outcome::Measured;
use crate::outcome::Outcome;
use crate::{Error, crash};

/// Works a claimed batch. Whatever ends it early, the transaction's end frees the jobs, and what was written changes nothing twice.
pub(super) async fn batch(
    context: &Context,
    collection: &Collection,
    mut transaction: Transaction<'static, Postgres>,
    jobs: &[Job],
    when: Look,
    under_way: &UnderWay,
) -> Result<(Outcome, Measured), Error> {
    let deadline = Deadline::start();
    let mut measured = Measured::default();
    crash::point("after-claim");
    let (good, mut findings) = sort_out_bad_keys(jobs.iter().map(|job| job.key.as_str()));
    let search = Search::begin(with_suspicion(&good, jobs, &context.health.blamed.among(&collection.name, &good)));
    let searched = groups::work(context, collection, &mut transaction, search, when, deadline, under_way, &mut measured).await?;
    let groups::Searched { worked, found, faults, pace } = searched;
    let renumbered = match when {
        Look::First => renumber(context, collection, &mut transaction, &worked, deadline).await?,
        Look::Later => Renumbered::default(),
    };
    let is_down = faults.first().is_some_and(Option::is_some);
    let facts = Facts { key_type: &collection.key_type, worked: &worked, renumbered: &renumbered, found: &found, is_down };
    findings.extend(good.iter().filter_map(|key| Some((*key, find(key, &facts)?))));
    let mut outcome = count(jobs, &worked.written);
    outcome.canary = if collection.name == CANARY { outcome.claimed } else { 0 };
    if when == Look::First {
        worked.keys.values().for_each(|seen| outcome.count(seen.verdict()));
    }
    outcome.touched = renumbered.drawn;
    context.health.blamed.note(&collection.name, &found.searched());
    note_health(context, collection, faults, pace, &findings, &mut outcome);
    let settled = async {
        let burials = settle(&mut transaction, collection, jobs, &findings, &found, &mut outcome, &mut measured).await?;
        transaction.commit().await?;
        Ok::<_, Error>(burials)
    };
    for burial in settled.instrument(debug_span!("settle")).await? {
        tracing::warn!(collection = collection.name, job = burial.id, reason = burial.reason.name(), "buried: {}", burial.error);
    }
    Ok((outcome, measured))
}

/// How many keys were in the smallest request without an answer that each of these was in, by what their jobs and this
/// process remember.
fn with_suspicion<'k>(keys: &[&'k str], jobs: &[Job], blamed: &HashSet<&str>) -> Vec<(&'k str, Option<usize>)> {
    let mut among: HashMap<&str, usize> = blamed.iter().map(|key| (*key, 1)).collect();
    for (job, size) in jobs.iter().filter_map(|job| Some((job, usize::try_from(job.unanswered?).ok()?))) {
        among.entry(&job.key).and_modify(|before| *before = size.min(*before)).or_insert(size);
    }
    keys.iter().map(|key| (*key, among.get(key).copied())).collect()
}

fn count(jobs: &[Job], written: &Written) -> Outcome {
    Outcome {
        claimed: jobs.len() as u64,
        expired: jobs.iter().filter(|job| job.expired).count() as u64,
        written: written.applied,
        conflicts: written.conflicts,
        batches: 1,
        ..Outcome::default()
    }
}

/// Tells the breakers and the pace what was seen, and says whether the collection's index or view is at fault.
fn note_health(
    context: &Context,
    collection: &Collection,
    faults: Vec<Option<Answer>>,
    pace: groups::Pace,
    findings: &HashMap<&str, Finding>,
    outcome: &mut Outcome,
) {
    let name = &collection.name;
    let mut faults = faults.into_iter();
    let readers = faults.next().flatten();
    match &readers {
        Some(answer) => {
            context.health.breakers.note(name, answer);
            outcome.hindered = Some(answer.to_string());
        }
        None => context.health.breakers.succeeded(name),
    }
    for (target, fault) in collection.targets.iter().skip(1).zip(faults) {
        context.health.note_hidden_index(name, target, context.withheld(target).is_some(), fault);
    }
    match pace {
        groups::Pace::Slower => context.health.batches.of(name).slower(),
        groups::Pace::Same => {}
        groups::Pace::Faster => context.health.batches.of(name).faster(),
    }
    if let Some(Answer::Blocked(why)) = readers {
        outcome.blocked.insert(name.clone(), why);
    } else if let Some(error) = mass_refusal(findings.values(), context.health.faults.why(name, Fault::Refusing).as_deref()) {
        outcome.hindered = Some(error.clone());
        outcome.refusing.insert(name.clone(), error);
    }
}

/// Carries out what becomes of each job. Where index or view are at fault, nothing is charged to anybody.
async fn settle(
    connection: &mut PgConnection,
    collection: &Collection,
    jobs: &[Job],
    findings: &HashMap<&str, Finding>,
    found: &Found<'_>,
    outcome: &mut Outcome,
    measured: &mut Measured,
) -> Result<Vec<job::Burial>, Error> {
    let looked = measured.looks.map_or(Duration::ZERO, |(at_elasticsearch, _)| at_elasticsearch);
    let nobodys_fault = !outcome.blocked.is_empty() || !outcome.refusing.is_empty();
    let (mut settled, mut postponed, mut charges, mut burials) = (vec![], vec![], vec![], vec![]);
    for job in jobs {
        let decided = findings.get(job.key.as_str()).map_or(Fate::Leave, |finding| fate(job, finding));
        match decided {
            Fate::Settle => {
                measured.settled(job, looked);
                settled.push(job.id);
            }
            Fate::Leave => outcome.left += 1,
            Fate::Postpone => postponed.push(job.id),
            Fate::PushBack { .. } | Fate::Bury { .. } if nobodys_fault => postponed.push(job.id),
            Fate::PushBack { error, due } => {
                measured.pushed_back(job);
                charges.push(job::Charge { id: job.id, error, due });
            }
            Fate::Bury { reason, error } => {
                measured.buried(job, reason);
                burials.push(job::Burial { id: job.id, reason, error });
            }
        }
    }
    if outcome.hindered.is_none() {
        outcome.hindered = charges.first().map(|charge| charge.error.clone());
    }
    let suspects = suspects(jobs, found);
    let did = job::Did {
        written: outcome.written as i64,
        pushed_back: charges.len() as i64,
        buried: burials.len() as i64,
        fresh: measured.fresh(),
    };
    job::settle(connection, &collection.name, &settled, &did).await?;
    job::suspect(connection, &suspects).await?;
    job::postpone(connection, &postponed).await?;
    job::push_back(connection, &charges).await?;
    job::bury(connection, &burials).await?;
    outcome.settled = settled.len() as u64;
    outcome.suspected = jobs.iter().filter(|job| is_closer(job, found)).count() as u64;
    outcome.postponed = postponed.len() as u64;
    outcome.pushed_back = charges.len() as u64;
    outcome.buried = burials.len() as u64;
    Ok(burials)
}

/// What the jobs are to remember from now on, where it is something else than before.
fn suspects(jobs: &[Job], found: &Found<'_>) -> Vec<(i64, Option<i32>)> {
    let size = |among: usize| i32::try_from(among).unwrap_or(i32::MAX);
    let now = |key: &str| match (found.suspected.get(key), found.blamed.contains_key(key), found.cleared.contains(key)) {
        (Some(among), _, _) => Some(Some(size(*among))),
        (None, true, _) => Some(Some(1)),
        (None, false, true) => Some(None),
        (None, false, false) => None,
    };
    jobs.iter().filter_map(|job| Some((job.id, now(&job.key).filter(|now| *now != job.unanswered)?))).collect()
}

/// Did the search come closer to this one: is it alone to blame now, or will it be tried with fewer others than before?
fn is_closer(job: &Job, found: &Found<'_>) -> bool {
    let before = job.unanswered.and_then(|before| usize::try_from(before).ok());
    let fewer = found.suspected.get(job.key.as_str()).is_some_and(|now| before.is_none_or(|before| *now < before));
    fewer || found.blamed.contains_key(job.key.as_str())
}
