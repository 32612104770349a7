//! The journal: who did what.

use askama::Template;
use axum::response::Response;
use chrono::{DateTime, Utc};

use super::Console;
use super::asked::Asked;
use super::frame::{Frame, Tab, page};
use super::text::{self, Text, text};
use super::words::{Moment, count, moment};
use crate::journal::Line;
use crate::printable::shell_word;
use crate::serve::{Problem, Who, actions};

/// Lines on the page.
const LINES: i64 = 200;

/// A line.
pub(super) struct JournalLine {
    pub at: Moment,
    pub who: String,
    pub what: String,
    pub collection: Option<String>,
    pub href: String,
    pub count: String,
    pub detail: Option<Text>,
}

impl JournalLine {
    pub fn of(line: &Line, now: DateTime<Utc>) -> JournalLine {
        JournalLine {
            at: moment(line.at, now),
            who: text::line(&line.who),
            what: text::line(&line.what),
            href: line.collection.as_ref().map_or(String::new(), |name| format!("/collections/{}", text::segment(name))),
            collection: line.collection.as_deref().map(text::line),
            count: line.count.map_or(String::new(), count),
            detail: line.detail.as_deref().map(text),
        }
    }
}

#[derive(Template)]
#[template(path = "journal.html")]
struct Journal {
    frame: Frame,
    collection: Option<String>,
    journal: Vec<JournalLine>,
    full: bool,
}

pub(super) async fn journal(console: Console, who: Who, asked: Asked) -> Result<Response, Problem> {
    let collection = asked.get("collection");
    let found = actions::journal(&console.serve, &who, collection, LINES).await?;
    let (now, full) = (Utc::now(), found.len() as i64 == LINES);
    let command = collection.map_or("catchword journal".into(), |name| format!("catchword journal {}", shell_word(name)));
    let mut frame = Frame::of(&console.serve, &who, Tab::Journal, "Journal").command(command);
    frame.chosen = collection.map(str::to_owned);
    let journal = found.iter().map(|line| JournalLine::of(line, now)).collect();
    page(&Journal { frame, journal, collection: collection.map(str::to_owned), full })
}
