//! `catchword audit`

use std::sync::OnceLock;

use anyhow::{bail, ensure};

use super::args::{Args, Audit};
use super::progress::Progress;
use super::reindex::{on_interrupt, time};
use super::{End, print_json, say};
use crate::audit::{Report, Request, unfinished};
use crate::{Catchword, Error, crash};

pub(super) async fn run(args: &Args, options: &Audit) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let mut reports = Vec::new();
    if let Some(number) = options.resume {
        let Some(id) = newest(&catchword, options, number).await? else { return Ok(End::Unknown) };
        reports.push(one(&catchword, options, Err(id)).await?);
    } else {
        for request in requests(&catchword, options)? {
            reports.push(one(&catchword, options, Ok(request)).await?);
        }
    }
    if options.json {
        print_json(&reports)?;
    } else {
        for report in &reports {
            say(report)?;
        }
    }
    let unknown: u64 = reports.iter().map(|report| report.unknown).sum();
    match reports.iter().map(Report::differ).sum::<u64>() {
        0 if unknown > 0 => bail!("{unknown} keys could not be told; repeat it when both servers are well"),
        0 => Ok(End::Done),
        _ => Ok(End::Not),
    }
}

/// One for each collection that was meant.
fn requests(catchword: &Catchword, options: &Audit) -> anyhow::Result<Vec<Request>> {
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
    Ok(collections.iter().map(|collection| request(&collection.name)).collect())
}

/// The audit to go on with, and a word about it.
async fn newest(catchword: &Catchword, options: &Audit, number: Option<i64>) -> anyhow::Result<Option<i64>> {
    let name = options.collection.as_deref();
    if name.is_some() {
        catchword.config().collection(name)?;
    }
    let mut connection = catchword.pool().acquire().await.map_err(Error::from)?;
    match unfinished(&mut connection, name, number).await?.first() {
        Some(found) => {
            eprintln!("resuming {found}");
            Ok(Some(found.id))
        }
        None => {
            let which = number.map_or(String::new(), |n| format!(" {n}")) + &name.map_or(String::new(), |name| format!(" of {name}"));
            eprintln!("catchword: there is no unfinished audit{which}; nothing was compared");
            Ok(None)
        }
    }
}

/// Begins one, or goes on with one by its number. An interrupt stops it between two pieces; it can be resumed.
async fn one(catchword: &Catchword, options: &Audit, what: Result<Request, i64>) -> anyhow::Result<Report> {
    let stop = on_interrupt()?;
    let (progress, id) = (OnceLock::new(), OnceLock::new());
    let watch = |report: &Report| {
        _ = id.set(report.audit);
        progress.get_or_init(|| Progress::start(report.expected.map(|n| n as i64), "compared")).at(report.looked as i64);
        crash::point("audit-watched");
    };
    let ended = match what {
        Ok(request) => catchword.audit_watched(&request, &watch, &stop).await,
        Err(id) => catchword.resume_audit(id, options.rate, &watch, &stop).await,
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
