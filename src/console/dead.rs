//! Dead letters: grouped by error, opened to keys.

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use chrono::{DateTime, Utc};
use tokio::time::timeout;

use super::Console;
use super::act::{Button, button};
use super::asked::Asked;
use super::frame::{Frame, Tab, page};
use super::text::{self, Text, cut, text};
use super::words::{Moment, count, moment, of};
use crate::job::{self, Group, Letter, Which};
use crate::printable::shell_word;
use crate::serve::actions::{self, Chosen};
use crate::serve::{Problem, Who};

/// Letters of a group that are listed.
const LETTERS: i64 = 100;
/// Grouping reads every letter. Where there are too many for this, one collection is asked for at a time.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Template)]
#[template(path = "dead.html")]
struct Groups {
    frame: Frame,
    collection: Option<String>,
    total: String,
    groups: Vec<GroupLine>,
    buttons: Vec<Button>,
}

/// Letters of one error.
struct GroupLine {
    href: String,
    collection: String,
    collection_href: String,
    reason: String,
    means: &'static str,
    error: Text,
    count: String,
    first: Moment,
    last: Moment,
    replay: Option<Button>,
}

/// One letter.
pub(super) struct LetterLine {
    pub id: i64,
    pub href: String,
    pub key: Text,
    pub key_href: String,
    pub tag: String,
    pub attempts: i32,
    pub at: Moment,
}

pub(super) async fn groups(console: Console, who: Who, asked: Asked) -> Result<Response, Problem> {
    let collection = asked.get("collection");
    let found = timeout(PATIENCE, actions::dead_groups(&console.serve, &who, collection, &Chosen::default())).await;
    let found = found.map_err(|_| Problem::unavailable("the dead letters could not be read in time"))??;
    let now = Utc::now();
    let total: i64 = found.iter().map(|group| group.count).sum();
    let buttons = match collection.filter(|_| total > 0) {
        None => Vec::new(),
        Some(name) => ["replay", "discard"]
            .into_iter()
            .zip(["Replay all of them…", "Discard all of them…"])
            .filter_map(|(act, label)| button(&console.serve, &who, act, label, &[("collection", name)]))
            .collect(),
    };
    let flag = collection.map_or(String::new(), |name| format!(" --collection {}", shell_word(name)));
    let mut frame = Frame::of(&console.serve, &who, Tab::Dead, "Dead letters").command(format!("catchword dead list{flag}"));
    frame.notice = super::act::notice(&asked);
    frame.chosen = collection.map(str::to_owned);
    page(&Groups {
        frame,
        collection: collection.map(str::to_owned),
        total: of(total, "dead letter"),
        groups: found.iter().map(|group| GroupLine::of(&console, &who, group, now)).collect(),
        buttons,
    })
}

impl GroupLine {
    fn of(console: &Console, who: &Who, group: &Group, now: DateTime<Utc>) -> GroupLine {
        let example = group.example.to_string();
        GroupLine {
            href: format!("/dead/group/{example}"),
            collection: text::line(&group.collection),
            collection_href: format!("/collections/{}", text::segment(&group.collection)),
            means: meaning(&group.reason),
            reason: text::line(&group.reason),
            error: text(group.last_error.as_deref().unwrap_or("no error was recorded")),
            count: count(group.count),
            first: moment(group.first, now),
            last: moment(group.last, now),
            replay: button(&console.serve, who, "replay", "Replay…", &[("collection", &group.collection), ("example", &example)]),
        }
    }
}

#[derive(Template)]
#[template(path = "dead_group.html")]
struct GroupPage {
    frame: Frame,
    collection: String,
    collection_href: String,
    dead_href: String,
    reason: String,
    means: &'static str,
    error: Text,
    letters: Vec<LetterLine>,
    full: bool,
    buttons: Vec<Button>,
}

/// The letters of a group, which is named by one of them: an error may be longer than an address.
pub(super) async fn group(console: Console, who: Who, Path(example): Path<i64>) -> Result<Response, Problem> {
    let letter = find(&console, &who, example).await?;
    let chosen = chosen_like(&letter);
    let letters = actions::dead_letters(&console.serve, &who, &letter.collection, &chosen, LETTERS).await?;
    let (now, id) = (Utc::now(), example.to_string());
    let buttons = ["replay", "discard"].into_iter().zip(["Replay these…", "Discard these…"]);
    let named = [("collection", letter.collection.as_str()), ("example", id.as_str())];
    let buttons = buttons.filter_map(|(act, label)| button(&console.serve, &who, act, label, &named)).collect();
    let collection = shell_word(&letter.collection);
    let command = format!("catchword dead list --collection {collection} --reason {} --each", shell_word(&letter.reason));
    page(&GroupPage {
        frame: Frame::of(&console.serve, &who, Tab::Dead, "Dead letters").about(&letter.collection).command(command),
        collection_href: format!("/collections/{}", text::segment(&letter.collection)),
        dead_href: text::link("/dead", &[("collection", &letter.collection)]),
        collection: letter.collection.clone(),
        means: meaning(&letter.reason),
        reason: text::line(&letter.reason),
        error: text(letter.last_error.as_deref().unwrap_or("no error was recorded")),
        full: letters.len() as i64 == LETTERS,
        letters: letters.iter().map(|letter| LetterLine::of(letter, now)).collect(),
        buttons,
    })
}

/// The letters that died of the same thing.
pub(super) fn chosen_like(letter: &Letter) -> Chosen {
    let error = Some(letter.last_error.clone().unwrap_or_default());
    Chosen { reason: Some(letter.reason.clone()), error, ..Chosen::default() }
}

impl LetterLine {
    pub fn of(letter: &Letter, now: DateTime<Utc>) -> LetterLine {
        LetterLine {
            id: letter.id,
            href: format!("/dead/letter/{}", letter.id),
            key: cut(&letter.key, 80),
            key_href: text::link("/key", &[("collection", &letter.collection), ("key", &letter.key)]),
            tag: text::line(&letter.tag),
            attempts: letter.attempts,
            at: moment(letter.died_at, now),
        }
    }
}

#[derive(Template)]
#[template(path = "dead_letter.html")]
struct LetterPage {
    frame: Frame,
    line: LetterLine,
    collection: String,
    collection_href: String,
    group_href: String,
    reason: String,
    means: &'static str,
    error: Text,
    is_index: bool,
    first: Moment,
    buttons: Vec<Button>,
}

pub(super) async fn letter(console: Console, who: Who, Path(id): Path<i64>) -> Result<Response, Problem> {
    let letter = find(&console, &who, id).await?;
    let (now, number) = (Utc::now(), id.to_string());
    let named = [("collection", letter.collection.as_str()), ("id", number.as_str())];
    let buttons = ["replay", "discard"].into_iter().zip(["Replay it…", "Discard it…"]);
    let buttons = buttons.filter_map(|(act, label)| button(&console.serve, &who, act, label, &named)).collect();
    page(&LetterPage {
        frame: Frame::of(&console.serve, &who, Tab::Dead, format!("Dead letter {id}"))
            .about(&letter.collection)
            .command(format!("catchword dead show {id}")),
        line: LetterLine::of(&letter, now),
        collection_href: format!("/collections/{}", text::segment(&letter.collection)),
        collection: letter.collection.clone(),
        group_href: format!("/dead/group/{id}"),
        means: meaning(&letter.reason),
        reason: text::line(&letter.reason),
        error: text(letter.last_error.as_deref().unwrap_or("no error was recorded")),
        is_index: letter.name == "index",
        first: moment(letter.enqueued_at, now),
        buttons,
    })
}

/// A letter that exists for whoever asks.
pub(super) async fn find(console: &Console, who: &Who, id: i64) -> Result<Letter, Problem> {
    let which = Which { ids: Some(vec![id]), ..Which::default() };
    let found = job::dead_letters(&mut *console.connection().await?, &which, 1).await?.into_iter().next();
    found.filter(|letter| who.sees(&letter.collection)).ok_or_else(|| {
        Problem::not_found(
            format!("there is no dead letter {id} any more"),
            "its key may be in step again; see the dead letters that are left",
        )
    })
}

/// What a reason means, and what helps.
fn meaning(reason: &str) -> &'static str {
    match reason {
        "refused" => "Elasticsearch refused the document five times. Fix the row, the view or the mapping, then replay.",
        "unbuildable" => "The view raised an error for the row five times. Fix the row or the view, then replay.",
        "too_large" => "The document is too large. Make it smaller in the view, then replay.",
        "bad_key" => "The key is empty, too long, reserved, or not of the key's type. Fix whatever scheduled it.",
        "expired" => "Refused before, and older than 30 days. Fix the row, the view or the mapping, then replay.",
        "ahead" => "The index is ahead of Postgres. Find who writes to the index, then replay.",
        "unanswered" => "Every request with this document in it got no answer. Look at the logs of Elasticsearch and of any proxy.",
        "by_hand" => "An operator gave it up. The text says why.",
        _ => "",
    }
}
