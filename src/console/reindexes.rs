//! Reindexes: what runs, what ran, and the form for a new one, which is tried before it is begun.

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use chrono::{DateTime, NaiveDateTime, Utc};

use super::Console;
use super::act::{Button, button};
use super::asked::Asked;
use super::frame::{Frame, Tab, page};
use super::running::{Run, is_open, of_reindex};
use super::state::State;
use super::text::{self, link};
use super::words::{Moment, count, moment};
use crate::history::{self, Minute};
use crate::printable::shell_word;
use crate::reindex::{self, Progress};
use crate::serve::actions::{NewReindex, Span, Value};
use crate::serve::{Problem, Role, Who, actions};

/// Reindexes on the page.
const SHOWN: usize = 50;
/// Where nobody has seen how fast this installation is: what one worker does on a small machine.
const USUALLY_PER_SECOND: f64 = 2_000.0;
/// The busiest minute of this time says how fast it is.
const SPEED: Duration = Duration::from_secs(3 * 3_600);

#[derive(Template)]
#[template(path = "reindexes.html")]
struct All {
    frame: Frame,
    open: Vec<OpenRun>,
    over: Vec<OverLine>,
    new_href: Option<String>,
}

struct OpenRun {
    run: Run,
    buttons: Vec<Button>,
}

struct OverLine {
    id: i64,
    collection: String,
    what: String,
    state: State,
    word: &'static str,
    settled: String,
    dead: String,
    at: Moment,
    ended: Option<Moment>,
    by: String,
}

pub(super) async fn all(console: Console, who: Who, asked: Asked) -> Result<Response, Problem> {
    let collection = asked.get("collection");
    let found = actions::reindexes(&console.serve, &who, collection).await?;
    let now = Utc::now();
    let mut frame = Frame::of(&console.serve, &who, Tab::Reindexes, "Reindexes").command("catchword reindex list").renewed_by("/reindexes");
    frame.notice = super::act::notice(&asked);
    let new_href = console.serve.allow(&who, Role::Operator).is_ok().then(|| {
        let name = collection.map(str::to_owned).or_else(|| frame.collections.first().cloned()).unwrap_or_default();
        link("/reindexes/new", &[("collection", &name)])
    });
    page(&All {
        frame,
        open: found
            .iter()
            .filter(|run| is_open(run.state))
            .map(|run| OpenRun { run: of_reindex(run), buttons: buttons(&console, &who, run) })
            .collect(),
        over: found.iter().filter(|run| !is_open(run.state)).take(SHOWN).map(|run| OverLine::of(run, now)).collect(),
        new_href,
    })
}

impl OverLine {
    fn of(run: &Progress, now: DateTime<Utc>) -> OverLine {
        let (state, word) = match run.state {
            reindex::State::Finished if run.dead > 0 => (State::Remark, "finished"),
            reindex::State::Finished => (State::InStep, "finished"),
            reindex::State::Cancelled => (State::Paused, "cancelled"),
            reindex::State::Paused => (State::Paused, "paused"),
            reindex::State::Running => (State::InStep, "running"),
        };
        OverLine {
            id: run.id,
            collection: run.collection.clone(),
            what: text::line(&run.what),
            state,
            word,
            settled: count(run.settled),
            dead: count(run.dead),
            at: moment(run.started_at, now),
            ended: run.ended_at.map(|at| moment(at, now)),
            by: text::line(super::journal::person(&run.started_by)),
        }
    }
}

fn buttons(console: &Console, who: &Who, run: &Progress) -> Vec<Button> {
    let id = run.id.to_string();
    let acts: &[(&str, &str)] = match run.state {
        reindex::State::Running => &[("pause-reindex", "Pause…"), ("rate-reindex", "Speed…"), ("cancel-reindex", "Cancel…")],
        reindex::State::Paused => &[("resume-reindex", "Resume…"), ("rate-reindex", "Speed…"), ("cancel-reindex", "Cancel…")],
        _ => &[],
    };
    acts.iter().filter_map(|(act, label)| button(&console.serve, who, act, label, &[("id", &id)])).collect()
}

#[derive(Template)]
#[template(path = "reindex.html")]
struct One {
    frame: Frame,
    line: OverLine,
    run: Run,
    is_open: bool,
    tag: String,
    numbers: Vec<(&'static str, String)>,
    buttons: Vec<Button>,
}

pub(super) async fn one(console: Console, who: Who, Path(id): Path<i64>, asked: Asked) -> Result<Response, Problem> {
    let found = find(&console, &who, id).await?;
    let mut frame = Frame::of(&console.serve, &who, Tab::Reindexes, format!("Reindex {id}"))
        .about(&found.collection)
        .command(format!("catchword reindex show {id}"))
        .renewed_by(format!("/reindexes/{id}"));
    frame.notice = super::act::notice(&asked);
    let or = |n: Option<i64>, other: &str| n.map_or(other.to_owned(), count);
    let numbers = vec![
        ("keys", or(found.expected, "not counted")),
        ("scheduled", count(found.scheduled)),
        ("open", count(found.open)),
        ("settled", count(found.settled)),
        ("dead", count(found.dead)),
        ("per second", or(found.per_second.map(|n| n.round() as i64), "–")),
        ("limit", or(found.rate.map(i64::from), "none")),
    ];
    page(&One {
        line: OverLine::of(&found, Utc::now()),
        run: of_reindex(&found),
        is_open: is_open(found.state),
        tag: text::line(&found.tag),
        numbers,
        buttons: buttons(&console, &who, &found),
        frame,
    })
}

#[derive(Template)]
#[template(path = "reindex_new.html")]
struct New {
    frame: Frame,
    collection: String,
    scopes: Vec<String>,
    has_period: bool,
}

/// The form. It leads to a dry run, which changes nothing.
pub(super) async fn new(console: Console, who: Who, asked: Asked) -> Result<Response, Problem> {
    console.serve.allow(&who, Role::Operator)?;
    let config = console.serve.collection(&who, asked.must("collection")?)?;
    let frame = Frame::of(&console.serve, &who, Tab::Reindexes, format!("Reindex {}", config.name))
        .about(&config.name)
        .command(format!("catchword reindex {} --dry-run …", shell_word(&config.name)));
    page(&New {
        collection: config.name.clone(),
        scopes: config.flags().into_iter().map(str::to_owned).collect(),
        has_period: config.period.is_some(),
        frame,
    })
}

/// What a reindex would be.
pub(super) struct Trial {
    pub collection: String,
    pub what: String,
    /// None: more than could be counted.
    pub keys: Option<i64>,
    pub seconds: Option<f64>,
    /// What the time is made from.
    pub how: String,
    pub rewrite: bool,
    pub hidden: bool,
    /// The form once more, for the button.
    pub fields: Vec<(&'static str, String)>,
    pub command: String,
}

/// The form as it was filled in.
const FIELDS: [&str; 10] = ["collection", "by", "scope", "value", "from", "to", "keys", "rewrite", "hidden", "rate"];

/// Counts, and changes nothing.
pub(super) async fn trial(console: &Console, who: &Who, asked: &Asked) -> Result<Trial, Problem> {
    let (collection, new) = (asked.must("collection")?, new_reindex(asked)?);
    let counted = actions::reindex_count(&console.serve, who, collection, &new).await?;
    let minutes = history::read(&mut *console.connection().await?, &counted.collection, SPEED).await?;
    let (per_second, how) = speed(&minutes, new.rate);
    Ok(Trial {
        what: what(&new),
        keys: counted.would_schedule,
        seconds: counted.would_schedule.map(|keys| keys as f64 / per_second),
        how,
        rewrite: new.rewrite,
        hidden: new.hidden,
        fields: FIELDS.into_iter().filter_map(|name| Some((name, asked.get(name)?.to_owned()))).collect(),
        command: format!("catchword reindex {}{} --dry-run", shell_word(&counted.collection), flags(&new)),
        collection: counted.collection,
    })
}

/// Begins it: its number.
pub(super) async fn start(console: &Console, who: &Who, form: &Asked) -> Result<i64, Problem> {
    Ok(actions::reindex_start(&console.serve, who, form.must("collection")?, &new_reindex(form)?).await?.id)
}

/// A reindex that exists for whoever asks.
pub(super) async fn find(console: &Console, who: &Who, id: i64) -> Result<Progress, Problem> {
    let found = reindex::show(&mut *console.connection().await?, id).await?;
    found
        .filter(|found| who.sees(&found.collection))
        .ok_or_else(|| Problem::not_found(format!("there is no reindex {id}"), "see all reindexes"))
}

/// How fast it will be, and from what that is known.
fn speed(minutes: &[Minute], limit: Option<i32>) -> (f64, String) {
    let busiest = minutes.iter().map(|minute| minute.settled).max().unwrap_or(0) as f64 / 60.0;
    let (fast, how) = match busiest {
        seen if seen * 60.0 >= 10_000.0 => {
            (seen, format!("at {} keys a second, as in the busiest minute of the last 3 hours", count(seen.round() as i64)))
        }
        _ => (USUALLY_PER_SECOND, format!("if the workers do {} keys a second", count(USUALLY_PER_SECOND as i64))),
    };
    match limit.map(f64::from).filter(|limit| *limit < fast && *limit > 0.0) {
        Some(limit) => (limit, format!("at {} keys a second, the limit", count(limit as i64))),
        None => (fast, how),
    }
}

/// What was filled in.
fn new_reindex(asked: &Asked) -> Result<NewReindex, Problem> {
    let mut new =
        NewReindex { rewrite: asked.is_on("rewrite"), hidden: asked.is_on("hidden"), rate: asked.number("rate")?, ..NewReindex::default() };
    match asked.must("by")? {
        "scope" => new.scope = Some(Value { name: asked.must("scope")?.to_owned(), value: asked.must("value")?.to_owned() }),
        "period" => new.between = Some(Span { from: time(asked, "from")?, to: time(asked, "to")? }),
        "keys" => {
            let keys = asked.must("keys")?.lines().map(str::trim).filter(|key| !key.is_empty());
            new.keys = Some(keys.map(str::to_owned).collect());
        }
        "all" => new.all = true,
        _ => return Err(Problem::bad("by", "nothing says which keys are meant", "choose one of the four")),
    }
    Ok(new)
}

/// A time as the form sends it, or as the command takes it. UTC.
fn time(asked: &Asked, name: &'static str) -> Result<DateTime<Utc>, Problem> {
    let typed = asked.must(name)?;
    let forms = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"];
    let found = forms.into_iter().find_map(|form| NaiveDateTime::parse_from_str(typed, form).ok());
    let day = || typed.parse::<chrono::NaiveDate>().ok().and_then(|day| day.and_hms_opt(0, 0, 0));
    match found.or_else(day) {
        Some(at) => Ok(at.and_utc()),
        None => Err(Problem::bad(name, format!("{name} is no time: {}", text::line(typed)), "write it like 2026-11-17T04:10")),
    }
}

fn what(new: &NewReindex) -> String {
    match (&new.scope, &new.between, &new.keys) {
        (Some(scope), _, _) => format!("{} {}", scope.name, scope.value),
        (_, Some(span), _) => format!("{} to {} UTC", span.from.format("%Y-%m-%d %H:%M"), span.to.format("%Y-%m-%d %H:%M")),
        (_, _, Some(keys)) => super::words::of(keys.len() as i64, "key"),
        _ => "everything".into(),
    }
}

fn flags(new: &NewReindex) -> String {
    let which = match (&new.scope, &new.between, &new.keys) {
        (Some(scope), _, _) => format!(" --{} {}", scope.name, shell_word(&scope.value)),
        (_, Some(span), _) => format!(" --between {} {}", span.from.format("%Y-%m-%dT%H:%MZ"), span.to.format("%Y-%m-%dT%H:%MZ")),
        (_, _, Some(keys)) => format!(" --ids {}", text::cut(&shell_word(&keys.join(",")), 80).short),
        _ => " --all".into(),
    };
    let rewrite = if new.rewrite { " --rewrite" } else { "" };
    let hidden = if new.hidden { " --hidden" } else { "" };
    let rate = new.rate.map_or(String::new(), |rate| format!(" --rate {rate}/s"));
    format!("{which}{rewrite}{hidden}{rate}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(settled: i64) -> Minute {
        Minute {
            at: Utc::now(),
            scheduled: 0,
            settled,
            written: 0,
            pushed_back: 0,
            buried: 0,
            due: 0,
            waiting: 0,
            oldest_seconds: None,
            fresh_p50: None,
            fresh_p99: None,
        }
    }

    #[test]
    fn the_time_is_told_from_what_was_seen_or_what_is_usual_and_never_above_the_limit() {
        assert_eq!(speed(&[minute(60), minute(30_000)], None).0, 500.0);
        assert_eq!(speed(&[minute(60)], None).0, USUALLY_PER_SECOND);
        assert_eq!(speed(&[minute(30_000)], Some(50)).0, 50.0);
        assert_eq!(speed(&[minute(30_000)], Some(5_000)).0, 500.0);
    }
}
