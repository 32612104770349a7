//! A key: what both sides have of it, the verdict, its jobs and its dead letters.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};

use super::Console;
use super::act::{Button, button};
use super::asked::Asked;
use super::frame::{Frame, Tab, page, page_with};
use super::state::State;
use super::text::{self, Text, cut, text};
use super::words::{Moment, capital, moment};
use crate::compare::Verdict;
use crate::explain::{Explanation, InIndex};
use crate::printable::shell_word;
use crate::serve::{Problem, Who, actions};

#[derive(Template)]
#[template(path = "key.html")]
struct KeyPage {
    frame: Frame,
    collection: String,
    collection_href: String,
    key: Text,
    state: State,
    headline: &'static str,
    sentence: Text,
    facts: Vec<(&'static str, Text)>,
    postgres: Text,
    revision: Option<i64>,
    unbuildable: Option<Text>,
    indices: Vec<Side>,
    jobs: Vec<Job>,
    letters: Vec<Dead>,
    document: Option<String>,
    hidden: bool,
    causes: Vec<(Text, Text)>,
    buttons: Vec<Button>,
}

/// What an index has.
struct Side {
    index: String,
    state: State,
    has: Text,
    version: Option<i64>,
    word: &'static str,
    verdict: &'static str,
    differs: Vec<Text>,
}

struct Job {
    id: i64,
    tag: String,
    due: bool,
    at: Moment,
    attempts: i32,
    error: Option<Text>,
}

struct Dead {
    id: i64,
    href: String,
    reason: String,
    at: Moment,
    attempts: i32,
    error: Text,
}

/// Asks for a key, or says that it cannot be one.
#[derive(Template)]
#[template(path = "no_key.html")]
struct NoKey {
    frame: Frame,
    why: Text,
    remedy: Text,
}

pub(super) async fn key(console: Console, who: Who, asked: Asked) -> Result<Response, Problem> {
    let (Some(collection), Some(typed)) = (asked.get("collection"), asked.get("key")) else {
        let frame = Frame::of(&console.serve, &who, Tab::None, "A key").command("catchword explain NAME KEY");
        return page(&NoKey { frame, why: text("Type a key into the box above."), remedy: text("It shows what both sides have of it.") });
    };
    let known = console.serve.collection(&who, collection)?;
    let mut frame = Frame::of(&console.serve, &who, Tab::None, format!("{} · {collection}", text::line(typed)))
        .about(&known.name)
        .command(format!("catchword explain {} {}", shell_word(collection), cut(&shell_word(typed), 100).short));
    frame.typed = text::cut(typed, 2_000).short;
    frame.notice = super::act::notice(&asked);
    match actions::explain(&console.serve, &who, collection, typed).await {
        Ok(explanation) => page(&KeyPage::of(&console, &who, frame, &explanation)),
        // a typing error is answered where the next try is made
        Err(problem) if problem.status == StatusCode::BAD_REQUEST || problem.status == StatusCode::CONFLICT => {
            let (why, remedy) = (text(&format!("{}.", capital(&problem.detail))), text(&format!("{}.", capital(&problem.remedy))));
            page_with(problem.status, &NoKey { frame, why, remedy })
        }
        Err(problem) => Err(problem),
    }
}

impl KeyPage {
    fn of(console: &Console, who: &Who, frame: Frame, explanation: &Explanation) -> KeyPage {
        let Explanation { collection, key, .. } = explanation;
        let now = Utc::now();
        let (state, headline) = judged(explanation);
        let named = [("collection", collection.as_str()), ("key", key.as_str())];
        let mut buttons: Vec<Button> = button(&console.serve, who, "look-again", "Look again now…", &named).into_iter().collect();
        if let Some(letter) = explanation.dead.first() {
            let id = letter.id.to_string();
            buttons.extend(button(&console.serve, who, "replay", "Replay its dead letter…", &[("collection", collection), ("id", &id)]));
        }
        KeyPage {
            frame,
            collection_href: format!("/collections/{}", text::segment(collection)),
            collection: collection.clone(),
            key: cut(key, 120),
            state,
            headline,
            sentence: text(&capital(&explanation.in_a_sentence())),
            facts: facts(explanation),
            postgres: text(in_postgres(explanation)),
            revision: explanation.revision,
            unbuildable: explanation.unbuildable.as_deref().map(text),
            indices: explanation.indices.iter().map(|index| Side::of(index, explanation.schema.is_some())).collect(),
            jobs: explanation.jobs.iter().map(|job| Job::of(job, now)).collect(),
            letters: explanation.dead.iter().map(|dead| Dead::of(dead, now)).collect(),
            document: explanation
                .document
                .as_ref()
                .and_then(|document| serde_json::to_string_pretty(document).ok())
                .map(|document| document.lines().map(crate::printable::printable).collect::<Vec<_>>().join("\n")),
            hidden: !console.serve.options.show_documents && explanation.postgres == "present",
            causes: explanation.likely_causes.iter().map(|cause| (text(&cause.what), text(&cause.remedy))).collect(),
            buttons,
        }
    }
}

/// The word on top.
fn judged(explanation: &Explanation) -> (State, &'static str) {
    let unknown = explanation.schema.is_some() || explanation.indices.iter().any(|index| index.unknown.is_some());
    match () {
        () if explanation.is_in_step() => (State::InStep, "In step"),
        () if unknown => (State::Unknown, "Not known"),
        () if !explanation.dead.is_empty() => (State::NotWell, "Not in step, and given up"),
        () if explanation.jobs.is_empty() && !explanation.touch_is_open => (State::NotWell, "Not in step"),
        () => (State::Behind, "Not in step yet"),
    }
}

/// What is not always there.
fn facts(explanation: &Explanation) -> Vec<(&'static str, Text)> {
    let touch = explanation.touch_is_open.then(|| "a related row changed, and its document will be written again".to_owned());
    let said = [
        ("document id", &explanation.id),
        ("document id refused", &explanation.id_refused),
        ("schema", &explanation.schema),
        ("paused", &explanation.paused),
        ("open touch", &touch),
    ];
    said.into_iter().filter_map(|(name, said)| Some((name, text(said.as_ref()?)))).collect()
}

fn in_postgres(explanation: &Explanation) -> &'static str {
    match explanation.postgres {
        "present" => "has the row, and the view returns it",
        "hidden" => "has the row, but the view does not return it: it must not be found",
        "deleted" => "deleted it, and recorded that",
        "unbuildable" => "has the row, and the view fails for it",
        "unknown" => "not asked, because its schema is not served",
        _ => "never had it: no row, and no record of a delete",
    }
}

impl Side {
    fn of(index: &InIndex, not_served: bool) -> Side {
        let has = match (&index.unknown, index.version) {
            (Some(why), _) => format!("could not say: {why}"),
            (None, None) => "has nothing".into(),
            (None, Some(_)) if index.tombstone => "has a tombstone: deleted, and search does not find it".into(),
            (None, Some(_)) => "has a document".into(),
        };
        let other = index.same_document == Some(false);
        let (state, word) = match index.verdict {
            _ if other => (State::NotWell, "content"),
            Some(verdict) if verdict == Verdict::Current.name() || verdict == Verdict::Gone.name() => (State::InStep, verdict),
            Some(verdict) if verdict == Verdict::Unknown.name() => (State::Unknown, verdict),
            Some(verdict) => (State::Behind, verdict),
            None => (State::Unknown, "none"),
        };
        let verdict = match index.verdict {
            _ if other => "the numbers agree, and the document is another than the view builds",
            Some(verdict) => crate::explain::meaning(verdict).split_once(": ").map_or("", |(_, means)| means),
            None if not_served => "its schema is not served",
            None => "the row must be fixed first",
        };
        let differs = if other { index.fields.lines().iter().map(|line| text(line)).collect() } else { Vec::new() };
        Side { index: text::line(&index.index), state, has: text(&has), version: index.version, word, verdict, differs }
    }
}

impl Job {
    fn of(job: &crate::job::Open, now: DateTime<Utc>) -> Job {
        Job {
            id: job.id,
            tag: text::line(&job.tag),
            due: job.due,
            at: moment(job.scheduled_at, now),
            attempts: job.attempts,
            error: job.last_error.as_deref().map(text),
        }
    }
}

impl Dead {
    fn of(dead: &crate::job::Dead, now: DateTime<Utc>) -> Dead {
        Dead {
            id: dead.id,
            href: format!("/dead/letter/{}", dead.id),
            reason: text::line(&dead.reason),
            at: moment(dead.died_at, now),
            attempts: dead.attempts,
            error: text(dead.last_error.as_deref().unwrap_or("no error was recorded")),
        }
    }
}
