//! What doctor says. It takes about a second and many questions, so it is kept for a while.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::response::Response;
use chrono::{DateTime, Utc};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Console;
use super::frame::{Frame, Tab, page};
use super::state::State;
use super::text::{Text, text};
use super::words::{Moment, exactly};
use crate::doctor::{Level, Line, Report};
use crate::serve::{Problem, Who};

/// It is asked again after this: what it looks at changes by hand.
const KEPT: Duration = Duration::from_secs(30);

/// The last report, and when it was made.
#[derive(Default)]
pub(super) struct Examined(Mutex<Option<(Instant, Arc<Examination>)>>);

/// A report.
pub(super) struct Examination {
    pub at: DateTime<Utc>,
    pub report: Report,
}

/// A line, for a page.
pub(super) struct DoctorLine {
    pub group: String,
    pub what: &'static str,
    pub state: State,
    pub word: &'static str,
    pub says: Text,
    pub fix: Text,
}

impl DoctorLine {
    pub fn of(line: &Line) -> DoctorLine {
        let (state, word) = match line.level {
            Level::Ok => (State::InStep, "ok"),
            Level::Warn => (State::Remark, "think about it"),
            Level::Fail => (State::NotWell, "fix it"),
        };
        DoctorLine { group: super::text::line(&line.group), what: line.what, state, word, says: text(&line.says), fix: text(&line.fix) }
    }
}

impl Console {
    /// What doctor says, at most half a minute old. Those who ask meanwhile wait for the same answer.
    pub(super) async fn examined(&self) -> Arc<Examination> {
        let mut last = self.shown().examined.0.lock().await;
        if let Some((read, examination)) = &*last
            && read.elapsed() < KEPT
        {
            return examination.clone();
        }
        let report = self.serve.catchword.doctor(&self.serve.environment).await;
        let examination = Arc::new(Examination { at: Utc::now(), report });
        *last = Some((Instant::now(), examination.clone()));
        examination
    }
}

/// Whose a group is, if it is a collection's: `note table`.
fn is_seen(group: &str, console: &Console, who: &Who) -> bool {
    let collections = &console.serve.catchword.config().collections;
    let whose = collections.iter().find(|collection| group.strip_prefix(&*collection.name).is_some_and(|rest| rest.starts_with(' ')));
    whose.is_none_or(|collection| who.sees(&collection.name))
}

/// Does a line about everybody name a collection that is not for this one?
fn names_another(line: &Line, console: &Console, who: &Who) -> bool {
    let mut hidden = console.serve.catchword.config().collections.iter().filter(|collection| !who.sees(&collection.name));
    hidden.any(|collection| line.says.contains(&collection.name) || line.fix.contains(&collection.name))
}

#[derive(Template)]
#[template(path = "doctor.html")]
struct Doctor {
    frame: Frame,
    at: Moment,
    wrong: Vec<DoctorLine>,
    fine: Vec<DoctorLine>,
    unseen: Vec<Text>,
}

pub(super) async fn doctor(console: Console, who: Who) -> Result<Response, Problem> {
    let examination = console.examined().await;
    let lines =
        || examination.report.lines.iter().filter(|line| is_seen(&line.group, &console, &who) && !names_another(line, &console, &who));
    let mut wrong: Vec<&Line> = lines().filter(|line| line.level != Level::Ok).collect();
    wrong.sort_by_key(|line| std::cmp::Reverse(line.level));
    let frame = Frame::of(&console.serve, &who, Tab::Doctor, "Doctor").command("catchword doctor");
    page(&Doctor {
        frame,
        at: exactly(examination.at),
        wrong: wrong.into_iter().map(DoctorLine::of).collect(),
        fine: lines().filter(|line| line.level == Level::Ok).map(DoctorLine::of).collect(),
        unseen: examination.report.unseen.iter().map(|unseen| text(unseen)).collect(),
    })
}
