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
    /// The same with the role of the database before it.
    pub as_whom: String,
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
            who: text::line(person(&line.who)),
            as_whom: text::line(&line.who),
            what: text::line(&line.what),
            href: line.collection.as_ref().map_or(String::new(), |name| format!("/collections/{}", text::segment(name))),
            collection: line.collection.as_deref().map(text::line),
            count: line.count.map_or(String::new(), count),
            detail: line.detail.as_deref().map(text),
        }
    }
}

/// Who it was, of `role(person)`: everybody comes by the same role of the database here.
pub(super) fn person(who: &str) -> &str {
    who.strip_suffix(')').and_then(|who| who.split_once('(')).map_or(who, |(_, person)| person)
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

#[cfg(test)]
mod tests {
    use super::person;

    #[test]
    fn a_person_is_told_without_the_role_of_the_database() {
        assert_eq!((person("postgres(mina)"), person("otto"), person("a)"), person("")), ("mina", "otto", "a)", ""));
    }
}
