//! Audits: up to when each collection was compared, what was found, what runs.

use askama::Template;
use axum::response::Response;
use chrono::{DateTime, Utc};

use super::Console;
use super::act::{Button, button};
use super::asked::Asked;
use super::frame::{Frame, Tab, page};
use super::running::{Run, of_audit};
use super::state::State;
use super::text::{self, Text, cut, text};
use super::words::{Moment, capital, count, moment, of};
use crate::audit::{Kind, Shown, Verified};
use crate::printable::shell_word;
use crate::serve::{Problem, Who, actions};
use crate::status::CollectionStatus;

/// Examples of each kind that are shown.
const EXAMPLES: usize = 5;

#[derive(Template)]
#[template(path = "audits.html")]
struct Audits {
    frame: Frame,
    collection: Option<String>,
    verified: Vec<VerifiedLine>,
    running: Vec<Running>,
    over: Vec<Over>,
}

struct VerifiedLine {
    name: String,
    href: String,
    state: State,
    word: &'static str,
    at: Option<Moment>,
    found: String,
    todo: Option<Text>,
    buttons: Vec<Button>,
}

struct Running {
    run: Run,
    stop: Option<Button>,
}

struct Over {
    id: i64,
    collection: String,
    state: State,
    word: String,
    asked: Moment,
    by: String,
    looked: String,
    kinds: Vec<KindLine>,
    scheduled: u64,
    repair: bool,
}

struct KindLine {
    name: &'static str,
    count: String,
    means: &'static str,
    examples: Vec<ExampleLine>,
}

struct ExampleLine {
    key: Text,
    href: String,
    postgres: String,
    elasticsearch: String,
}

pub(super) async fn audits(console: Console, who: Who, asked: Asked) -> Result<Response, Problem> {
    let collection = asked.get("collection");
    let names = console.serve.chosen(&who, collection)?;
    let known = console.known().await?;
    let shown = actions::audits(&console.serve, &who, collection).await?;
    let now = Utc::now();
    let glance = known.last.as_ref().unwrap_or(&known.now);
    let status = || glance.status.iter().flat_map(|status| &status.collections).filter(|status| names.contains(&status.name));
    let documents = |name: &str| status().find(|status| status.name == name).and_then(|status| status.documents);
    let is_open = |shown: &&Shown| matches!(shown.state.as_str(), "running" | "asked" | "resting");
    let stop = |shown: &Shown| {
        let id = shown.report.audit.to_string();
        button(&console.serve, &who, "stop-audit", "Stop…", &[("collection", &shown.report.collection), ("id", &id)])
    };
    let flag = collection.map_or(String::new(), |name| format!(" {}", shell_word(name)));
    let mut frame = Frame::of(&console.serve, &who, Tab::Audits, "Audits").command(format!("catchword audit{flag}"));
    frame.notice = super::act::notice(&asked);
    frame.chosen = collection.map(str::to_owned);
    frame = frame.renewed_by(collection.map_or("/audits".into(), |name| text::link("/audits", &[("collection", name)])));
    page(&Audits {
        frame,
        collection: collection.map(str::to_owned),
        verified: status().map(|status| VerifiedLine::of(&console, &who, status, now)).collect(),
        running: shown
            .iter()
            .filter(is_open)
            .map(|shown| Running { run: of_audit(shown, documents(&shown.report.collection)), stop: stop(shown) })
            .collect(),
        over: shown.iter().filter(|shown| !is_open(shown)).take(20).map(|shown| Over::of(shown, now)).collect(),
    })
}

impl VerifiedLine {
    fn of(console: &Console, who: &Who, status: &CollectionStatus, now: DateTime<Utc>) -> VerifiedLine {
        let nothing = Verified::default();
        let (name, audit) = (&status.name, status.audit.as_ref().unwrap_or(&nothing));
        let (state, word) = match audit.verified_up_to {
            _ if audit.lost.is_some() => (State::NotWell, "lost writes"),
            None => (State::Remark, "never compared"),
            Some(_) if audit.repairable() > 0 && audit.scheduled == 0 => (State::NotWell, "differs"),
            Some(_) if audit.healing => (State::Behind, "being repaired"),
            Some(_) if audit.given_up() > 0 => (State::Remark, "given up"),
            Some(_) => (State::InStep, "in step"),
        };
        let found = match (audit.verified_up_to, audit.differed(), audit.scheduled) {
            (None, _, _) => "a worker compares it once a day".into(),
            (_, 0, _) => "nothing differed".into(),
            (_, differed, 0) => format!("{}, not repaired", of(differed as i64, "difference")),
            (_, differed, scheduled) => format!("{}, {} scheduled for repair", of(differed as i64, "difference"), count(scheduled as i64)),
        };
        let todo = match () {
            () if audit.lost.is_some() => audit.lost.as_deref().map(text),
            () if audit.repairable() > 0 && audit.scheduled == 0 => Some(text(&format!("repair them: {}", audit.repair(name)))),
            () if audit.given_up() > 0 => Some(text(&audit.correct(name))),
            () => None,
        };
        let named = [("collection", name.as_str())];
        let repair = audit.repairable() > 0 && audit.scheduled == 0;
        let act = if repair { ("repair", "Repair…") } else { ("audit", "Audit now…") };
        VerifiedLine {
            name: name.clone(),
            href: format!("/collections/{}", text::segment(name)),
            state,
            word,
            at: audit.verified_up_to.map(|at| moment(at, now)),
            found,
            todo,
            buttons: button(&console.serve, who, act.0, act.1, &named).into_iter().collect(),
        }
    }
}

impl Over {
    fn of(shown: &Shown, now: DateTime<Utc>) -> Over {
        let report = &shown.report;
        let (state, word) = match shown.state.as_str() {
            "finished" if report.differ() > 0 => (State::Behind, of(report.differ() as i64, "difference")),
            "finished" if report.unknown > 0 => (State::Unknown, format!("{} could not be told", of(report.unknown as i64, "key"))),
            "finished" => (State::InStep, "in step".into()),
            other => (State::Paused, text::line(other)),
        };
        Over {
            id: report.audit,
            collection: report.collection.clone(),
            state,
            word,
            asked: moment(report.asked_at, now),
            by: format!("{} ({})", text::line(super::journal::person(&shown.asked_by)), text::line(&shown.reason)),
            looked: count(report.looked as i64),
            kinds: Kind::ALL.into_iter().filter_map(|kind| KindLine::of(shown, kind)).collect(),
            scheduled: report.scheduled,
            repair: report.repair,
        }
    }
}

impl KindLine {
    fn of(shown: &Shown, kind: Kind) -> Option<KindLine> {
        let report = &shown.report;
        let number = report.differences.get(kind.name()).copied().filter(|count| *count > 0)?;
        let examples = report.examples.iter().filter(|example| example.kind == kind).take(EXAMPLES);
        Some(KindLine {
            name: kind.name(),
            count: count(number as i64),
            means: kind.means(),
            examples: examples
                .map(|example| ExampleLine {
                    key: cut(&example.key, 60),
                    href: text::link("/key", &[("collection", &report.collection), ("key", &example.key)]),
                    postgres: capital(&text::line(&example.postgres)),
                    elasticsearch: text::line(&example.elasticsearch),
                })
                .collect(),
        })
    }
}
