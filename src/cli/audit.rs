//! `catchword audit`

use std::sync::OnceLock;

use anyhow::{bail, ensure};
use tokio_util::sync::CancellationToken;

use super::args::{Args, Audit};
use super::paint::say_lines;
use super::progress::Progress;
use super::reindex::{on_interrupt, time};
use super::{End, print_json, sentence};
use crate::audit::{Report, Request, Unfinished, unfinished};
use crate::printable::printable;
use crate::{Catchword, Error, crash};

/// An audit that is to be run.
enum Asked {
    New(Request),
    /// One that was cut short.
    Again(Unfinished),
}

impl Asked {
    fn collection(&self) -> &str {
        match self {
            Asked::New(request) => &request.collection,
            Asked::Again(unfinished) => &unfinished.collection,
        }
    }
}

/// One collection after the other. One that fails keeps the others neither from being compared nor from being told.
pub(super) async fn run(args: &Args, options: &Audit) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let all = match options.resume {
        Some(number) => newest(&catchword, options, number).await?.map(Asked::Again).into_iter().collect(),
        None => requests(&catchword, options)?,
    };
    if all.is_empty() {
        return Ok(End::Unknown);
    }
    let stop = on_interrupt()?;
    let (mut reports, mut end) = (Vec::new(), End::Done);
    for asked in all {
        let told = match one(&catchword, options, &asked, &stop).await {
            Ok(report) => {
                if !options.json {
                    say_lines(&report.lines())?;
                }
                let told = judged(&report);
                reports.push(report);
                told
            }
            Err(error) => Err(error),
        };
        end = end.max(told.unwrap_or_else(|error| {
            eprintln!("catchword: {}", printable(&format!("{}: {}", asked.collection(), sentence(&error))));
            End::Unknown
        }));
    }
    if options.json {
        print_json(&reports)?;
    }
    Ok(end)
}

/// What it comes to.
fn judged(report: &Report) -> anyhow::Result<End> {
    match (report.differ(), report.untold()) {
        (0, None) => Ok(End::Done),
        (0, Some(why)) => bail!(why),
        _ => Ok(End::Not),
    }
}

/// One for each collection that was meant.
fn requests(catchword: &Catchword, options: &Audit) -> anyhow::Result<Vec<Asked>> {
    let config = catchword.config();
    let collections = match options.collection.as_deref() {
        Some(name) => vec![config.collection(Some(name))?],
        None => config.collections.iter().collect(),
    };
    let since = options.since.as_deref().map(time).transpose()?;
    let without = collections.iter().find(|collection| collection.period.is_none());
    if let (Some(_), Some(collection)) = (since, without) {
        bail!("collection {} has no period; name the column in the configuration: period = \"updated\"", collection.name);
    }
    let request = |name: &String| Request {
        collection: name.clone(),
        target: options.index.clone(),
        repair: options.repair,
        content: options.content,
        since,
        sample: options.sample,
        rate: options.rate,
        reason: "operator".into(),
    };
    ensure!(!collections.is_empty(), "no collection is configured");
    Ok(collections.iter().map(|collection| Asked::New(request(&collection.name))).collect())
}

/// The audit to go on with, and a word about it.
async fn newest(catchword: &Catchword, options: &Audit, number: Option<i64>) -> anyhow::Result<Option<Unfinished>> {
    let name = options.collection.as_deref();
    if name.is_some() {
        catchword.config().collection(name)?;
    }
    let mut connection = catchword.context.pool.acquire().await.map_err(Error::from)?;
    let found = unfinished(&mut connection, name, number).await?.into_iter().next();
    match &found {
        Some(found) => eprintln!("resuming {found}"),
        None => {
            let which = number.map_or(String::new(), |n| format!(" {n}")) + &name.map_or(String::new(), |name| format!(" of {name}"));
            eprintln!("catchword: there is no unfinished audit{which}; nothing was compared");
        }
    }
    Ok(found)
}

/// Begins one, or goes on with one. An interrupt stops it between two pieces; it can be resumed. Those after it are not begun.
async fn one(catchword: &Catchword, options: &Audit, asked: &Asked, stop: &CancellationToken) -> anyhow::Result<Report> {
    ensure!(!stop.is_cancelled(), "interrupted; it was not compared");
    let (progress, id) = (OnceLock::new(), OnceLock::new());
    let watch = |report: &Report| {
        _ = id.set(report.audit);
        progress.get_or_init(|| Progress::start(report.expected.map(|n| n as i64), "compared")).at(report.looked as i64);
        crash::point("audit-watched");
    };
    let ended = match asked {
        Asked::New(request) => catchword.audit_watched(request, &watch, stop).await,
        Asked::Again(unfinished) => catchword.resume_audit(unfinished.id, options.rate, &watch, stop).await,
    };
    if let Some(progress) = progress.get() {
        progress.finish();
    }
    match (ended, id.get()) {
        (Ok(report), _) => Ok(report),
        (Err(Error::Stopped), Some(id)) => bail!("interrupted; go on with: catchword audit --resume {id}"),
        (Err(error), Some(id)) => bail!("could not tell: {error}; go on with: catchword audit --resume {id}"),
        (Err(error), None) => Err(error.into()),
    }
}
