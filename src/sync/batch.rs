//! One batch, from claim to commit: the story of the whole project on one screen.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::{PgConnection, Postgres, Transaction};
use tokio::time::Instant;
use tracing::{Instrument, debug_span};

use super::compare::{Verdict, compare};
use super::deadline::Deadline;
use super::fate::{Fate, Finding, fate, mass_refusal};
use super::measured::Measured;
use super::outcome::Outcome;
use super::walk::Look;
use super::write::{Written, write};
use crate::collection::{self, Collection, Unbuildable, Want};
use crate::config::CANARY;
use crate::elastic::{Answer, Has};
use crate::job::{self, Job};
use crate::{Error, Inner, crash};

/// The limit of one look at Elasticsearch.
const LOOK: Duration = Duration::from_secs(10);

/// What is known of a key after both looks: one verdict per target.
pub(super) struct Key {
    pub want: Want,
    pub verdicts: Vec<Verdict>,
    /// The highest version that a target has.
    pub seen: i64,
}

/// What a batch begins with.
struct Looked<'k> {
    /// What each target has, in the order of the keys.
    documents: Vec<Result<Vec<Has>, Answer>>,
    keys: HashMap<&'k str, Key>,
    unbuildable: Vec<Unbuildable>,
}

/// Works a claimed batch. Whatever ends it early, the transaction's end frees the jobs, and what was written changes nothing twice.
pub(super) async fn batch(
    inner: &Inner,
    collection: &Collection,
    mut transaction: Transaction<'static, Postgres>,
    jobs: &[Job],
    when: Look,
) -> Result<(Outcome, Measured), Error> {
    let deadline = Deadline::start();
    let mut measured = Measured::default();
    crash::point("after-claim");
    let (good, mut findings) = sort_out_bad_keys(jobs);
    let Looked { documents, keys, unbuildable } = match when {
        Look::First => look_at_both(inner, collection, &mut transaction, &good, deadline, &mut measured).await?,
        Look::Later => Looked::supposed_missing(collection, &good),
    };
    sort_out_what_never_was(collection, &keys, &mut findings);
    let mut written = write(&inner.elastic, collection, &mut transaction, &keys, deadline).instrument(debug_span!("write")).await?;
    (measured.answers, measured.bulks) = (std::mem::take(&mut written.counts), std::mem::take(&mut written.bulks));
    let mended = mend(inner, collection, &mut transaction, &keys, &mut findings).await?;

    for fault in unbuildable.into_iter().chain(written.unbuildable.iter().cloned()) {
        if let Some(key) = good.iter().find(|key| **key == fault.key) {
            findings.insert(key, Finding::Unbuildable(fault.error));
        }
    }
    for (key, seen) in &keys {
        let finding = Finding::Seen { verdict: combined(&seen.verdicts), answer: written.worst(key).cloned() };
        findings.entry(key).or_insert(finding);
    }
    let mut outcome = count(jobs, &written);
    outcome.canary = if collection.name == CANARY { outcome.claimed } else { 0 };
    if when == Look::First {
        keys.values().for_each(|seen| outcome.count(combined(&seen.verdicts)));
    }
    outcome.touched = mended;
    note_health(inner, collection, &documents, &written, &findings, &mut outcome);
    let settled = async {
        let burials = settle(&mut transaction, collection, jobs, &findings, &mut outcome, &mut measured).await?;
        transaction.commit().await?;
        Ok::<_, Error>(burials)
    };
    for burial in settled.instrument(debug_span!("settle")).await? {
        tracing::warn!(collection = collection.name, job = burial.id, reason = burial.reason.name(), "buried: {}", burial.error);
    }
    Ok((outcome, measured))
}

/// A key that no document can have would fail the bulk. The rest is looked at once per key, however many jobs name it.
fn sort_out_bad_keys(jobs: &[Job]) -> (Vec<&str>, HashMap<&str, Finding>) {
    let mut good: Vec<&str> = jobs.iter().map(|job| job.key.as_str()).collect();
    good.sort_unstable();
    good.dedup();
    let mut bad = HashMap::new();
    good.retain(|key| match collection::no_id(key) {
        None => true,
        Some(fault) => {
            bad.insert(*key, Finding::BadKey(fault));
            false
        }
    });
    (good, bad)
}

/// A key that is not of the collection's type has no row. If it has no document either, somebody scheduled it by mistake; if it has one,
/// an audit found it, and it is seen gone like any other orphan.
fn sort_out_what_never_was<'k>(collection: &Collection, keys: &HashMap<&'k str, Key>, findings: &mut HashMap<&'k str, Finding>) {
    for (key, seen) in keys.iter().filter(|(_, seen)| seen.want == Want::Never && seen.seen == 0) {
        if let Some(fault) = collection.key_type.fault(key).filter(|_| combined(&seen.verdicts) == Verdict::Gone) {
            findings.insert(key, Finding::BadKey(fault));
        }
    }
}

/// Elasticsearch first: its version came from a committed row, so a row read later can only be equal or newer.
async fn look_at_both<'k>(
    inner: &Inner,
    collection: &Collection,
    connection: &mut PgConnection,
    keys: &[&'k str],
    deadline: Deadline,
    measured: &mut Measured,
) -> Result<Looked<'k>, Error> {
    let started = Instant::now();
    let documents = look(inner, collection, keys, deadline).instrument(debug_span!("look", side = "elasticsearch")).await;
    let at_elasticsearch = started.elapsed();
    let (wants, unbuildable) = collection.wants(connection, keys).instrument(debug_span!("look", side = "postgres")).await?;
    measured.looks = Some((at_elasticsearch, started.elapsed() - at_elasticsearch));
    crash::point("after-look");
    let keys = debug_span!("compare", keys = keys.len()).in_scope(|| judge(keys, &documents, &wants));
    Ok(Looked { documents, keys, unbuildable })
}

impl<'k> Looked<'k> {
    /// Nothing was looked at, so nothing can agree: whatever the view returns is written, and every job is left.
    fn supposed_missing(collection: &Collection, keys: &[&'k str]) -> Looked<'k> {
        let missing = || Key { want: Want::Present(0), verdicts: vec![Verdict::Missing; collection.targets.len()], seen: 0 };
        let fit = keys.iter().filter(|key| collection.key_type.fault(key).is_none());
        Looked { documents: Vec::new(), keys: fit.map(|key| (*key, missing())).collect(), unbuildable: Vec::new() }
    }
}

/// What each target has of each key, in the order of the keys. A sick index that nobody reads is left alone for a while: its keys are
/// unknown, and those of the readers' go on.
async fn look(inner: &Inner, collection: &Collection, keys: &[&str], deadline: Deadline) -> Vec<Result<Vec<Has>, Answer>> {
    let mut seen = Vec::new();
    for (n, target) in collection.targets.iter().enumerate() {
        let limit = deadline.within(LOOK).unwrap_or(Duration::from_millis(1));
        seen.push(match if n == 0 { Ok(()) } else { inner.admits_beside(target) } {
            Ok(()) => inner.elastic.look(target, keys, limit).await,
            Err(why) => Err(Answer::Unknown(why)),
        });
    }
    seen
}

fn judge<'k>(keys: &[&'k str], documents: &[Result<Vec<Has>, Answer>], wants: &HashMap<String, Want>) -> HashMap<&'k str, Key> {
    let judged = keys.iter().enumerate().filter_map(|(n, key)| {
        let want = *wants.get(*key)?;
        let has = documents.iter().map(|target| match target {
            Ok(all) => all.get(n).cloned().unwrap_or_else(|| Has::Unknown("no answer".into())),
            Err(answer) => Has::Unknown(answer.to_string()),
        });
        let has: Vec<Has> = has.collect();
        let seen = has.iter().map(|has| if let Has::Present(version) = has { *version } else { 0 }).max().unwrap_or(0);
        Some((*key, Key { want, verdicts: has.iter().map(|has| compare(want, has)).collect(), seen }))
    });
    judged.collect()
}

/// Of several targets: unknown before ahead before anything to write before agreement. No target at all is unknown.
fn combined(verdicts: &[Verdict]) -> Verdict {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Unknown => 3,
        Verdict::Ahead => 2,
        Verdict::Missing | Verdict::Stale | Verdict::Orphan | Verdict::Untold => 1,
        Verdict::Current | Verdict::Gone => 0,
    };
    verdicts.iter().copied().max_by_key(rank).unwrap_or(Verdict::Unknown)
}

/// The highest version that can be true; above it the sequence would not last.
const HIGHEST: i64 = 1 << 61;

/// Draws new numbers where the index has what Postgres never committed. After the bulk and directly before the commit, so that the
/// rows' locks are short.
async fn mend<'k>(
    inner: &Inner,
    collection: &Collection,
    connection: &mut PgConnection,
    keys: &HashMap<&'k str, Key>,
    findings: &mut HashMap<&'k str, Finding>,
) -> Result<u64, Error> {
    // of any target: one that cannot be asked does not keep the other from being mended
    let is = |verdict: Verdict| move |(_, seen): &(&&'k str, &Key)| seen.verdicts.contains(&verdict);
    let mut gone: Vec<&str> =
        keys.iter().filter(is(Verdict::Orphan)).filter(|(_, seen)| seen.want == Want::Never).map(|(key, _)| *key).collect();
    let mut rows = Vec::new();
    let mut above = 0;
    for (key, seen) in keys.iter().filter(is(Verdict::Ahead)) {
        if seen.seen >= HIGHEST {
            findings.insert(key, Finding::Hopeless);
            continue;
        }
        above = above.max(seen.seen);
        match seen.want {
            Want::Present(_) | Want::Hidden(_) => rows.push(*key),
            Want::Deleted(_) | Want::Never => gone.push(key),
        }
    }
    if above > 0 {
        tracing::error!(collection = collection.name, version = above, keys = rows.len() + gone.len(), "the index is ahead of Postgres");
        collection::raise_revision(&inner.pool, above).await?;
    }
    let mut mended = gone.len();
    if !rows.is_empty() {
        mended += collection::draw(connection, &collection.name, &rows).await?.len();
    }
    if !gone.is_empty() {
        collection::record_gone(connection, &collection.name, &gone).await?;
    }
    Ok(mended as u64)
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
    inner: &Inner,
    collection: &Collection,
    documents: &[Result<Vec<Has>, Answer>],
    written: &Written,
    findings: &HashMap<&str, Finding>,
    outcome: &mut Outcome,
) {
    let name = &collection.name;
    let is_blocked = |a: &Answer| matches!(a, Answer::Blocked(_));
    let readers = documents.first().and_then(failed_look);
    match readers.clone().or_else(|| written.any_of(0, is_failure)) {
        Some(answer) => {
            inner.breakers.note(name, &answer);
            outcome.unanswered = Some(answer.to_string());
        }
        None => inner.breakers.succeeded(name),
    }
    for (n, target) in collection.targets.iter().enumerate().skip(1) {
        let failed = documents.get(n).and_then(failed_look).or_else(|| written.any_of(n, |a| is_failure(a) || is_blocked(a)));
        inner.note_beside(name, target, failed);
    }
    let overloaded = |n| written.any_of(n, |a| matches!(a, Answer::Overloaded(_))).is_some();
    match (0..collection.targets.len()).any(overloaded) {
        true => inner.pace.slower(),
        false => inner.pace.faster(),
    }
    if let Some(Answer::Blocked(why)) = readers.filter(is_blocked).or_else(|| written.any_of(0, is_blocked)) {
        outcome.blocked.insert(name.clone(), why);
    } else if let Some(error) = mass_refusal(findings.values()) {
        outcome.refusing.insert(name.clone(), error);
    }
}

/// What is wrong with an index that could say nothing of any key.
fn failed_look(seen: &Result<Vec<Has>, Answer>) -> Option<Answer> {
    match seen {
        Err(answer) => Some(answer.clone()),
        Ok(all) if all.iter().all(|has| matches!(has, Has::Unknown(_))) => match all.first() {
            Some(Has::Unknown(why)) => Some(Answer::Unknown(why.clone())),
            _ => None,
        },
        Ok(_) => None,
    }
}

fn is_failure(answer: &Answer) -> bool {
    matches!(answer, Answer::Denied(_) | Answer::Unreachable(_) | Answer::Unknown(_) | Answer::Unavailable(_))
}

/// Carries out what becomes of each job. Where index or view are at fault, nothing is charged to anybody.
async fn settle(
    connection: &mut PgConnection,
    collection: &Collection,
    jobs: &[Job],
    findings: &HashMap<&str, Finding>,
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
    job::settle(connection, &collection.name, &settled, measured.fresh()).await?;
    job::postpone(connection, &postponed).await?;
    job::push_back(connection, &charges).await?;
    job::bury(connection, &burials).await?;
    outcome.settled = settled.len() as u64;
    outcome.postponed = postponed.len() as u64;
    outcome.pushed_back = charges.len() as u64;
    outcome.buried = burials.len() as u64;
    Ok(burials)
}
