//! `catchword reindex`

use std::io::IsTerminal;

use anyhow::bail;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::args::{Args, Reindex};
use super::{End, confirmed, print_json};
use crate::Catchword;
use crate::reindex::{self, Request};

/// A chunk that meets a locked row gives way and is tried again this often.
const TRIES: u32 = 10;

pub(super) async fn run(args: &Args, options: &Reindex) -> anyhow::Result<End> {
    let catchword = args.connect().await?;
    if let Some(number) = options.resume {
        return resume(&catchword, number, options).await;
    }
    let request = request(&catchword, options)?;
    let total = reindex::count(catchword.pool(), &request).await?;
    let what = describe(&request);
    if total == 0 {
        eprintln!("catchword: nothing matches {what}; nothing was scheduled");
        return Ok(End::Not);
    }
    if options.dry_run {
        if options.json {
            print_json(&json!({ "collection": request.collection, "would_schedule": total }))?;
        } else {
            println!("{total} keys match {what}; nothing was scheduled");
        }
        return Ok(End::Done);
    }
    if request.is_whole() && !confirmed(&format!("schedule all {total} keys of {}?", request.collection), options.yes)? {
        println!("nothing was scheduled");
        return Ok(End::Not);
    }
    let id = reindex::start(catchword.pool(), &request).await?;
    schedule(&catchword, id, request.chunk(), total, 0, &request.collection, options).await
}

async fn resume(catchword: &Catchword, number: Option<i64>, options: &Reindex) -> anyhow::Result<End> {
    let mut connection = catchword.pool().acquire().await?;
    let unfinished = reindex::unfinished(&mut connection).await?;
    let Some(found) = unfinished.into_iter().find(|u| number.is_none_or(|number| number == u.id)) else {
        eprintln!(
            "catchword: there is no unfinished reindex{}",
            number.map_or(String::new(), |n| format!(" {n}"))
        );
        return Ok(End::Not);
    };
    let left = reindex::remaining(&mut connection, found.id).await?;
    drop(connection);
    eprintln!(
        "resuming {} {} of {}: {} scheduled, {left} to go",
        found.tag,
        found.value.as_deref().unwrap_or(""),
        found.collection,
        found.scheduled
    );
    schedule(
        catchword,
        found.id,
        found.chunk(),
        left,
        found.scheduled,
        &found.collection,
        options,
    )
    .await
}

async fn schedule(
    catchword: &Catchword,
    id: i64,
    size: i32,
    total: i64,
    before: i64,
    collection: &str,
    options: &Reindex,
) -> anyhow::Result<End> {
    let progress = Progress::start(total);
    let mut scheduled = 0;
    loop {
        let chunk = match with_retries(catchword, id, size).await {
            Ok(chunk) => chunk,
            Err(error) => bail!("{error}; {scheduled} were scheduled, go on with: catchword reindex {collection} --resume {id}"),
        };
        scheduled += chunk;
        progress.at(scheduled);
        if chunk < i64::from(size) {
            break;
        }
    }
    progress.finish();
    if options.json {
        print_json(&json!({ "collection": collection, "reindex": id, "scheduled": before + scheduled }))?;
    } else {
        println!(
            "scheduled {} jobs for {collection}; a worker takes them from its next tick on; watch them: catchword status",
            before + scheduled
        );
    }
    Ok(End::Done)
}

async fn with_retries(catchword: &Catchword, id: i64, size: i32) -> Result<i64, crate::Error> {
    let mut tries = 0;
    loop {
        match reindex::chunk(catchword.pool(), id, size).await {
            Err(error) if tries < TRIES && matches!(error.sqlstate().as_deref(), Some("55P03" | "40P01")) => tries += 1,
            done => return done,
        }
    }
}

fn request(catchword: &Catchword, options: &Reindex) -> anyhow::Result<Request> {
    let collection = catchword.config().collection(options.collection.as_deref())?;
    let known = || {
        collection
            .scopes
            .keys()
            .map(|s| format!("--{s} X"))
            .chain(["--between A B", "--ids …", "--all"].map(String::from))
            .collect::<Vec<_>>()
            .join(" | ")
    };
    let given =
        options.scopes.len() + usize::from(options.between.is_some()) + usize::from(options.ids.is_some()) + usize::from(options.all);
    if given != 1 {
        bail!("say what to reindex, one of: {}", known());
    }
    if let Some((scope, _)) = options.scopes.first()
        && !collection.scopes.contains_key(scope)
    {
        bail!("collection {} has no scope {scope}; it has: {}", collection.name, known());
    }
    if options.between.is_some() && collection.period.is_none() {
        bail!(
            "collection {} has no period; name the column in the configuration: period = \"updated\"",
            collection.name
        );
    }
    let between = match options.between.as_deref() {
        None => None,
        Some([from, to]) => Some((time(from)?, time(to)?)),
        Some(_) => bail!("--between takes two times"),
    };
    if let Some((from, to)) = between
        && from >= to
    {
        bail!("--between takes the earlier time first");
    }
    Ok(Request {
        collection: collection.name.clone(),
        scope: options.scopes.first().cloned(),
        between,
        keys: options
            .ids
            .as_ref()
            .map(|ids| ids.iter().filter(|id| !id.is_empty()).cloned().collect()),
        hidden: options.hidden,
        anew: options.anew,
        tag: options.tag.clone(),
    })
}

/// A date, a time without a zone (UTC), or a time with one.
fn time(text: &str) -> anyhow::Result<DateTime<Utc>> {
    let with_zone = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1))
        .map(|time| time.to_utc())
        .ok();
    let without = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .ok()
        .and_then(|date| date.and_hms_opt(0, 0, 0));
    match with_zone.or_else(|| without.or(date).map(|time| time.and_utc())) {
        Some(time) => Ok(time),
        None => bail!("{text:?} is not a time; write 2026-11-16, 2026-11-16T12:30 or 2026-11-16T12:30:00Z"),
    }
}

fn describe(request: &Request) -> String {
    match (&request.scope, &request.between, &request.keys) {
        (Some((scope, value)), ..) => format!("--{scope} {value:?} in {}", request.collection),
        (_, Some((from, to)), _) => format!("--between {from} {to} in {}", request.collection),
        (.., Some(keys)) => format!("the {} ids in {}", keys.len(), request.collection),
        _ => format!("--all of {}", request.collection),
    }
}

/// A bar on a terminal, plain lines elsewhere, about one per tenth.
struct Progress {
    bar: Option<ProgressBar>,
    total: i64,
    said: std::cell::Cell<i64>,
}

impl Progress {
    fn start(total: i64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} scheduled, {per_sec}, {eta} to go");
            let bar = ProgressBar::new(total.max(0) as u64);
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        Progress {
            bar,
            total,
            said: 0.into(),
        }
    }

    fn at(&self, scheduled: i64) {
        match &self.bar {
            Some(bar) => bar.set_position(scheduled.max(0) as u64),
            None if scheduled < self.total && (scheduled - self.said.get()) * 10 >= self.total => {
                self.said.set(scheduled);
                eprintln!("{scheduled} of {} scheduled", self.total);
            }
            None => {}
        }
    }

    fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_read_as_people_write_them() -> anyhow::Result<()> {
        for (text, same) in [
            ("2026-11-16", "2026-11-16T00:00:00Z"),
            ("2026-11-16T12:30", "2026-11-16T12:30:00Z"),
            ("2026-11-16 12:30:05", "2026-11-16T12:30:05Z"),
            ("2026-11-16T12:30:00+02:00", "2026-11-16T10:30:00Z"),
            ("2026-11-16 12:30:00Z", "2026-11-16T12:30:00Z"),
        ] {
            assert_eq!(time(text)?, time(same)?, "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "16.11.2026", "2026-11-16T25:00"] {
            assert!(time(text).is_err(), "{text}");
        }
        Ok(())
    }
}
