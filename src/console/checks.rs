//! Everything that `check` judges, the worst first.

use askama::Template;
use axum::response::Response;

use super::Console;
use super::down::{Down, downs};
use super::frame::{Frame, Tab, page};
use super::state::State;
use super::verdict::{Cause, cause, verdict};
use crate::check::Level;
use crate::serve::{Problem, Who};

#[derive(Template)]
#[template(path = "checks.html")]
struct Checks {
    frame: Frame,
    state: State,
    headline: String,
    downs: Vec<Down>,
    wrong: Vec<Cause>,
    well: Vec<Cause>,
}

pub(super) async fn checks(console: Console, who: Who) -> Result<Response, Problem> {
    let known = console.known().await?;
    let report = &known.now.report;
    let judged = verdict(report, known.now.told(), &|name| who.sees(name));
    let seen = |cause: &Cause| cause.collection.as_ref().is_none_or(|name| who.sees(name));
    let frame = Frame::of(&console.serve, &who, Tab::Checks, "Checks").command("catchword check").renewed_by("/checks");
    page(&Checks {
        frame,
        state: judged.state,
        headline: judged.headline,
        downs: downs(&known),
        wrong: judged.causes,
        well: report.checks.iter().filter(|check| check.level == Level::Well).map(cause).filter(seen).collect(),
    })
}
