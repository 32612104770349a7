//! The first screen: one sentence, a row for each collection, what runs, who works, what was done.

use askama::Template;
use axum::response::Response;
use chrono::{DateTime, Utc};

use super::Console;
use super::down::{Down, downs};
use super::frame::{Frame, Tab, page};
use super::graph::{last_minute, places, sparkline};
use super::journal::JournalLine;
use super::running::{Run, running};
use super::seen::Known;
use super::state::State;
use super::text::{self, Text, text};
use super::verdict::{Cause, Verdict, verdict};
use super::words::{Moment, count, counted, moment, of, span};
use crate::check::{Level, Report};
use crate::heartbeat::WorkerRow;
use crate::history::Minute;
use crate::outcome::OBJECTIVE_SECONDS;
use crate::rebuild::{Stage, UnderWay};
use crate::serve::{Problem, Who};
use crate::status::{CollectionStatus, Status};

/// What `check` says of the servers themselves.
const SERVERS: [&str; 2] = ["CatchwordPostgresDown", "CatchwordElasticsearchDown"];
/// Causes that are shown; the page of all checks has the rest.
const CAUSES: usize = 4;
/// Lines of the journal.
const LINES: usize = 8;

#[derive(Template)]
#[template(path = "first.html")]
struct First {
    frame: Frame,
    verdict: Verdict,
    causes: Vec<Cause>,
    more_causes: usize,
    since: Option<Moment>,
    verified: Option<String>,
    downs: Vec<Down>,
    /// Is this what was known before Postgres went down?
    old: bool,
    rows: Vec<Row>,
    running: Vec<Run>,
    workers: Vec<WorkerLine>,
    journal: Vec<JournalLine>,
}

/// A collection.
pub(super) struct Row {
    pub name: String,
    pub href: String,
    pub dead_href: String,
    pub audits_href: String,
    pub state: State,
    pub word: String,
    pub due: String,
    pub waiting: String,
    pub oldest: String,
    pub dead: String,
    pub fresh: Option<String>,
    pub spark: String,
    pub verified: Option<Moment>,
    pub audit_runs: bool,
    pub index: String,
    pub documents: Option<String>,
    pub rebuild: Option<String>,
    pub whys: Vec<Why>,
}

/// Why something does not go on, or what is due.
pub(super) struct Why {
    pub state: State,
    pub word: &'static str,
    pub text: Text,
}

/// A worker.
struct WorkerLine {
    state: State,
    word: &'static str,
    host: String,
    version: String,
    serves: String,
    seen: String,
    troubles: Vec<Text>,
}

pub(super) async fn first(console: Console, who: Who) -> Result<Response, Problem> {
    let known = console.known().await?;
    let frame = Frame::of(&console.serve, &who, Tab::Overview, "").command("catchword status").renewed_by("/");
    page(&First::of(frame, &known, &who))
}

impl First {
    fn of(frame: Frame, known: &Known, who: &Who) -> First {
        let glance = known.last.as_ref().unwrap_or(&known.now);
        let now = glance.at;
        let mut judged = verdict(&known.now.report, known.now.told(), &|name| who.sees(name));
        let downs = downs(known);
        // a server that is down is told in full right below, and once is enough
        if let Some(down) = downs.first() {
            judged.sentence = down.short.to_owned();
        }
        let is_told = |cause: &Cause| !downs.is_empty() && SERVERS.contains(&cause.name);
        let seen = |cause: &&Cause| !is_told(cause);
        let causes: Vec<Cause> = judged.causes.iter().filter(seen).cloned().collect();
        let status = glance.status.as_deref().ok();
        let collections = || status.into_iter().flat_map(|status| &status.collections).filter(|collection| who.sees(&collection.name));
        let minutes = |name: &str| glance.beside.as_ref().and_then(|beside| beside.minutes.get(name)).map_or(&[][..], Vec::as_slice);
        First {
            frame: Frame { title: judged.headline.clone(), ..frame },
            more_causes: causes.len().saturating_sub(CAUSES),
            causes: causes.into_iter().take(CAUSES).collect(),
            since: known.state_since.filter(|_| judged.state == known.state).map(|since| moment(since, known.now.at)),
            verified: (judged.state <= State::Remark).then(|| verified(collections(), now)).flatten(),
            verdict: judged,
            downs,
            old: known.now.told().is_none(),
            rows: collections().map(|collection| row(collection, minutes(&collection.name), &known.now.report, now)).collect(),
            running: running(glance, who),
            workers: status.map(|status| workers(status, who)).unwrap_or_default(),
            journal: glance
                .beside
                .iter()
                .flat_map(|beside| &beside.journal)
                .filter(|line| line.collection.as_ref().map_or(who.collections.is_none(), |name| who.sees(name)))
                .take(LINES)
                .map(|line| JournalLine::of(line, now))
                .collect(),
        }
    }
}

/// Up to when everything was compared.
fn verified<'c>(collections: impl Iterator<Item = &'c CollectionStatus>, now: DateTime<Utc>) -> Option<String> {
    let verified: Option<Vec<DateTime<Utc>>> = collections.map(|c| c.audit.as_ref()?.verified_up_to).collect();
    let earliest = verified?.into_iter().min()?;
    Some(format!("Verified key by key, by an audit, up to {} UTC.", moment(earliest, now).short))
}

/// One row, judged.
pub(super) fn row(collection: &CollectionStatus, minutes: &[Minute], report: &Report, now: DateTime<Utc>) -> Row {
    let CollectionStatus { name, census, .. } = collection;
    let segment = text::segment(name);
    let (state, word) = state_of(collection, report);
    let told = |n: fn(&crate::job::Census) -> i64| census.as_ref().map_or("?".into(), |census| counted(census, n(census)));
    let oldest = census.as_ref().and_then(|census| census.oldest_change_seconds.or(census.oldest_due_seconds));
    let places = places(minutes, last_minute(minutes, now), 60);
    let latest = minutes.iter().rev().find_map(|minute| Some((minute.fresh_p50?, minute.fresh_p99?)));
    Row {
        href: format!("/collections/{segment}"),
        dead_href: text::link("/dead", &[("collection", name)]),
        audits_href: text::link("/audits", &[("collection", name)]),
        state,
        word,
        due: told(|census| census.due),
        waiting: told(|census| census.waiting),
        dead: told(|census| census.dead),
        oldest: oldest.map_or("–".into(), span),
        fresh: latest.map(|(half, most)| format!("{} / {}", span(half), span(most))),
        spark: sparkline(&places, OBJECTIVE_SECONDS, &freshness_in_words(name, minutes)),
        verified: collection.audit.as_ref().and_then(|audit| audit.verified_up_to).map(|at| moment(at, now)),
        audit_runs: collection.audit.as_ref().is_some_and(|audit| audit.running),
        index: collection.indices.first().cloned().unwrap_or_else(|| "none yet".into()),
        documents: match (collection.documents, collection.indices.is_empty()) {
            (Some(documents), _) => Some(of(documents as i64, "document")),
            (None, false) => Some("number not known".into()),
            (None, true) => None,
        },
        rebuild: collection.rebuild.as_ref().map(|rebuild| stage(rebuild, now)),
        whys: whys(collection, report),
        name: name.clone(),
    }
}

fn freshness_in_words(name: &str, minutes: &[Minute]) -> String {
    match minutes.iter().filter_map(|minute| minute.fresh_p99).reduce(f64::max) {
        Some(worst) => format!("freshness of {name} in the last hour: 99 of 100 changes within {} in the worst minute", span(worst)),
        None => format!("no changes of {name} in the last hour"),
    }
}

/// A word, with what `check` says of this collection in mind.
pub(super) fn state_of(collection: &CollectionStatus, report: &Report) -> (State, String) {
    let causes = || report.checks.iter().filter(|check| check.collection.as_deref() == Some(&collection.name)).map(super::verdict::cause);
    let worst = causes().map(|cause| cause.state).max().unwrap_or(State::InStep);
    let Some(census) = &collection.census else { return (State::Unknown, State::Unknown.word().into()) };
    let is_silent = report.checks.iter().any(|check| SERVERS.contains(&check.name) && check.level != Level::Well);
    match () {
        () if is_silent && collection.paused.is_none() => (State::Unknown, State::Unknown.word().into()),
        () if collection.blocked.is_some() => (State::NotWell, "blocked".into()),
        () if collection.stands_still_for.is_some() => (State::NotWell, "stands still".into()),
        () if collection.paused.is_some() => (State::Paused, "paused".into()),
        () if !collection.served => (State::NotWell, "no worker".into()),
        () if worst >= State::Behind => (worst, worst.word().into()),
        () if census.dead > 0 => (State::Remark, of(census.dead, "dead letter")),
        () if worst == State::Remark => (State::Remark, causes().map(|cause| word_of(cause.name)).next().unwrap_or("remark").into()),
        () if census.due > 0 => (State::InStep, "working".into()),
        () => (State::InStep, "in step".into()),
    }
}

fn word_of(name: &str) -> &'static str {
    if name == "CatchwordAuditDrift" { "drift" } else { "remark" }
}

/// Why it does not go on, and what is due.
fn whys(collection: &CollectionStatus, report: &Report) -> Vec<Why> {
    let silent = report.checks.iter().any(|check| check.name == SERVERS[1] && check.level != Level::Well);
    let why = |state, word, said: Option<&String>| said.map(|said| Why { state, word, text: text(said) });
    let still = collection.stands_still_for.map(|seconds| {
        let known = collection.census.as_ref().and_then(|census| census.still_why.as_deref());
        format!("jobs are due, and none has moved for {}: {}", span(seconds), known.unwrap_or("the reason is not known"))
    });
    let touches = collection.census.as_ref().filter(|census| census.failing_touches > 0).map(|census| {
        let error = census.failing_touch_error.as_deref().unwrap_or("the reason is not known");
        format!("{} of related rows could not be passed on: {error}", of(census.failing_touches, "change"))
    });
    let unserved = (!collection.served && collection.census.is_some() && collection.paused.is_none())
        .then(|| "no worker that runs serves it; start one: catchword worker".to_owned());
    [
        why(State::Paused, "paused", collection.paused.as_ref()),
        why(State::NotWell, "blocked", collection.blocked.as_ref()),
        why(State::NotWell, "stands still", still.as_ref().filter(|_| collection.blocked.is_none())),
        why(State::NotWell, "no worker", unserved.as_ref()),
        why(State::Behind, "touches", touches.as_ref()),
        why(State::Remark, "drift", collection.drift.as_ref()),
        why(State::NotWell, "search alias", collection.not_shown.as_ref()),
        why(State::Remark, "not migrated", collection.unmigrated.as_ref()),
        why(State::Unknown, "Elasticsearch", collection.uncounted.as_ref().filter(|_| collection.blocked.is_none() && !silent)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Where a rebuild is, in a few words.
pub(super) fn stage(under_way: &UnderWay, now: DateTime<Utc>) -> String {
    let rebuild = &under_way.rebuild;
    match (rebuild.stage, rebuild.drop_at, under_way.seconds_left) {
        (Stage::Keep, Some(at), _) => format!("{} kept until {}", rebuild.kept_index(), moment(at, now).short),
        (stage, _, _) if !rebuild.driven => format!("rebuild: {stage}, nobody works on it"),
        (Stage::Drain, _, Some(left)) => format!("rebuild: drain {:.0} %, about {}", under_way.ratio() * 100.0, span(left)),
        (stage, _, _) => format!("rebuild: {stage}"),
    }
}

fn workers(status: &Status, who: &Who) -> Vec<WorkerLine> {
    // one that is absent for hours was stopped; the newest of these says that there was one
    let alive = status.workers.iter().filter(|worker| worker.is_alive());
    let absent = status.workers.iter().filter(|worker| !worker.is_alive()).take(if alive.clone().next().is_some() { 0 } else { 2 });
    alive.chain(absent).map(|worker| WorkerLine::of(worker, who)).collect()
}

impl WorkerLine {
    fn of(worker: &WorkerRow, who: &Who) -> WorkerLine {
        let open = worker.breaker != "closed";
        let (state, word) = match () {
            () if !worker.is_alive() => (State::NotWell, "absent"),
            () if open => (State::NotWell, "breaker open"),
            () if worker.trouble.is_some() => (State::Behind, "last tick failed"),
            () if worker.lane.is_some() => (State::Behind, "no quick lane"),
            () => (State::InStep, "works"),
        };
        let breaker = open.then(|| format!("it sends nothing to Elasticsearch until a probe is answered: {}", worker.breaker));
        let lane = worker.lane.as_ref().map(|why| format!("it cannot keep the quick lane, so writes wait for its tick: {why}"));
        let serves: Vec<&str> = worker.collections.iter().map(String::as_str).filter(|name| who.sees(name)).collect();
        WorkerLine {
            state,
            word,
            host: text::line(&worker.host),
            version: text::line(&worker.version),
            serves: match serves.len() {
                0..=4 => serves.join(", "),
                n => format!("{} and {} more", serves[..3].join(", "), count(n as i64 - 3)),
            },
            seen: span(worker.seen_seconds_ago),
            troubles: breaker.iter().chain(&worker.trouble).chain(&lane).map(|said| text(said)).collect(),
        }
    }
}
