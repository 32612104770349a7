//! A collection: how it is, its six graphs, what doctor says of it, what is due, and the buttons.

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use chrono::Utc;
use tokio::time::timeout;

use super::Console;
use super::act::{Button, button};
use super::asked::Asked;
use super::doctor::DoctorLine;
use super::down::{Down, downs};
use super::first::{Row, row};
use super::frame::{Frame, Tab, page};
use super::graph::{Graph, Shape, last_minute, places};
use super::verdict::{Cause, cause};
use super::words::{Moment, exactly};
use crate::check::Level;
use crate::doctor;
use crate::history::{self, Minute};
use crate::rebuild::Stage;
use crate::serve::{Problem, Role, Who};
use crate::status::CollectionStatus;

/// The longer of the two spans of the graphs.
const THREE_HOURS: Duration = Duration::from_secs(3 * 3_600);
/// The page does not wait for doctor longer: it has a page of its own.
const DOCTOR: Duration = Duration::from_secs(4);

#[derive(Template)]
#[template(path = "collection.html")]
struct Page {
    frame: Frame,
    downs: Vec<Down>,
    old: bool,
    row: Row,
    alias: String,
    causes: Vec<Cause>,
    spans: Vec<Span>,
    /// None: doctor takes its time.
    examined: Option<Moment>,
    wrong: Vec<DoctorLine>,
    fine: Vec<DoctorLine>,
    buttons: Vec<Button>,
    table: String,
    view: String,
}

/// The graphs of one span.
struct Span {
    title: &'static str,
    pictures: Vec<Picture>,
}

struct Picture {
    title: &'static str,
    caption: String,
    svg: String,
}

pub(super) async fn collection(console: Console, who: Who, Path(name): Path<String>, asked: Asked) -> Result<Response, Problem> {
    let config = console.serve.collection(&who, &name)?;
    let known = console.known().await?;
    let glance = known.last.as_ref().unwrap_or(&known.now);
    let status = glance.status.as_deref().ok().and_then(|status| status.collections.iter().find(|c| c.name == config.name));
    let status = status.ok_or_else(|| Problem::unavailable("Postgres has not told anything of this collection yet"))?;
    let now = Utc::now();
    // a graph is worth no error: without Postgres it is a gap
    let minutes = minutes(&console, &config.name).await.unwrap_or_default();
    let hour = &minutes[minutes.partition_point(|minute| minute.at < now - chrono::Duration::minutes(61))..];
    let checks = known.now.report.checks.iter().filter(|check| check.collection.as_deref() == Some(&config.name));
    let examination = timeout(DOCTOR, console.examined()).await.ok();
    let lines = || {
        let ours = |line: &&doctor::Line| line.group.strip_prefix(&*config.name).is_some_and(|rest| rest.starts_with(' '));
        examination.iter().flat_map(|examination| &examination.report.lines).filter(ours)
    };
    let mut frame = Frame::of(&console.serve, &who, Tab::None, &*config.name).about(&config.name).command("catchword status");
    frame.notice = super::act::notice(&asked);
    frame = frame.renewed_by(format!("/collections/{}", super::text::segment(&config.name)));
    page(&Page {
        downs: downs(&known),
        old: known.now.told().is_none(),
        row: row(status, hour, &known.now.report, now),
        alias: status.alias.clone(),
        causes: checks.filter(|check| check.level != Level::Well).map(cause).collect(),
        spans: vec![span("Last 30 minutes", &minutes, 30), span("Last 3 hours", &minutes, 180)],
        examined: examination.as_ref().map(|examination| exactly(examination.at)),
        wrong: lines().filter(|line| line.level != doctor::Level::Ok).map(DoctorLine::of).collect(),
        fine: lines().filter(|line| line.level == doctor::Level::Ok).map(DoctorLine::of).collect(),
        buttons: if known.now.told().is_some() { buttons(&console, &who, status) } else { Vec::new() },
        table: config.table.to_string(),
        view: config.view.to_string(),
        frame,
    })
}

async fn minutes(console: &Console, name: &str) -> Option<Vec<Minute>> {
    let read = async {
        let mut connection = console.connection().await.ok()?;
        history::read(&mut connection, name, THREE_HOURS).await.ok()
    };
    timeout(Duration::from_secs(3), read).await.ok()?
}

/// Three graphs of a span: how long the queue was, what was completed, what was written.
fn span(title: &'static str, minutes: &[Minute], length: usize) -> Span {
    let end = last_minute(minutes, Utc::now());
    let places = places(minutes, end, length);
    let picture = |title: &'static str, unit, shape, number: fn(&Minute) -> i64| {
        let values = places.iter().map(|place| place.map(|minute| number(minute) as f64)).collect();
        let graph = Graph { title, unit, shape, values, end };
        Picture { title, caption: graph.caption(), svg: graph.svg() }
    };
    Span {
        title,
        pictures: vec![
            picture("Queue length", "jobs", Shape::Level, |minute| minute.due + minute.waiting),
            picture("Jobs completed", "jobs", Shape::Work, |minute| minute.settled),
            picture("Documents re-indexed", "documents", Shape::Work, |minute| minute.written),
        ],
    }
}

/// What can be done now, as far as this one may.
fn buttons(console: &Console, who: &Who, status: &CollectionStatus) -> Vec<Button> {
    let name = status.name.as_str();
    let mut buttons = Vec::new();
    let mut add = |act, label: &str| buttons.extend(button(&console.serve, who, act, label, &[("collection", name)]));
    if status.paused.is_some() {
        add("resume", "Resume")
    } else {
        add("pause", "Pause…")
    }
    if status.census.as_ref().is_some_and(|census| census.dead > 0) {
        add("replay", "Replay dead letters…");
    }
    match status.audit.as_ref().filter(|audit| audit.repairable() > 0 && audit.scheduled == 0) {
        Some(_) => add("repair", "Repair…"),
        None => add("audit", "Audit…"),
    }
    match &status.rebuild {
        None => add("rebuild", "Rebuild…"),
        Some(under_way) if under_way.rebuild.stage == Stage::Keep => add("back", "Go back to the old index…"),
        Some(under_way) if under_way.rebuild.is_before_the_swap() => {
            if !under_way.rebuild.driven {
                add("rebuild", "Go on with the rebuild…");
            }
            add("abort", "Abort the rebuild…");
        }
        Some(_) => {}
    }
    if console.serve.allow(who, Role::Operator).is_ok() {
        let href = super::text::link("/reindexes/new", &[("collection", name)]);
        buttons.insert(1, Button { label: "Reindex…".into(), href, class: "" });
    }
    buttons
}
