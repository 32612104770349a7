//! `catchword reindex`

use anyhow::bail;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Utc};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::{Args, Reindex};
use super::reindexes::{act, is_served, wait};
use super::{End, confirmed, print_json, say, who};
use crate::collection::{self, KeyType};
use crate::printable::printable;
use crate::reindex::{self, Progress, Request, State};
use crate::{Catchword, config};

pub(super) async fn run(args: &Args, options: &Reindex) -> anyhow::Result<End> {
    // Postgres alone is needed, and of the collections only this one: nothing is indexed here
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    if let Some(what) = &options.act {
        return act(&catchword, what).await;
    }
    let config = catchword.config().collection(options.collection.as_deref())?;
    let request = request(config, options, key_type(&catchword, config).await?)?;
    let total = reindex::count(&catchword.context.pool, &request).await?;
    let what = describe(&request);
    if total == Some(0) {
        if options.json {
            print_json(&json!({ "collection": request.collection, "reindex": null, "scheduled": 0 }))?;
        }
        eprintln!("catchword: nothing matches {what}; nothing was scheduled{}", hint(&request));
        return Ok(End::Not);
    }
    if options.dry_run {
        match total {
            None => bail!("{what} is more than can be counted within 30 s; nothing was scheduled"),
            _ if options.json => print_json(&json!({ "collection": request.collection, "would_schedule": total }))?,
            Some(total) => say(format_args!("{total} keys match {what}; nothing was scheduled\n"))?,
        }
        return Ok(End::Done);
    }
    let many = total.map_or("an uncounted number of".into(), |total| format!("all {total}"));
    if request.is_whole() && !confirmed(&format!("schedule {many} keys of {}?", request.collection), options.yes)? {
        say("nothing was scheduled\n")?;
        return Ok(End::Not);
    }
    begin(&catchword, &Request { expected: total, ..request }, options).await
}

/// Writes it down, and schedules the first piece: a small one needs no worker for that.
async fn begin(catchword: &Catchword, request: &Request, options: &Reindex) -> anyhow::Result<End> {
    let pool = &catchword.context.pool;
    let id = reindex::start(pool, request).await?;
    let started = match reindex::feed_one(pool, &request.collection, id).await {
        Ok(_) => progress(catchword, id).await,
        Err(error) => Err(error.into()),
    };
    let started = match started {
        Ok(started) => started,
        Err(error) => bail!("{error:#}; reindex {id} is written down, and a worker schedules it; watch it: catchword reindex show {id}"),
    };
    mention_the_same(catchword, &started).await?;
    if options.wait {
        return wait(catchword, id, options.json).await;
    }
    if options.json {
        print_json(
            &json!({ "collection": started.collection, "reindex": id, "scheduled": started.scheduled, "expected": started.expected }),
        )?;
    } else {
        say(format_args!("{}\n", what_was_done(catchword, &started).await?))?;
    }
    Ok(End::Done)
}

async fn progress(catchword: &Catchword, id: i64) -> anyhow::Result<Progress> {
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    reindex::show(&mut connection, id).await?.ok_or_else(|| anyhow::anyhow!("reindex {id} is gone: its collection was detached"))
}

async fn what_was_done(catchword: &Catchword, started: &Progress) -> anyhow::Result<String> {
    let Progress { id, collection, scheduled, .. } = started;
    let served = is_served(catchword, collection).await?;
    if let Some(trouble) = &started.trouble {
        let trouble = printable(trouble);
        return Ok(format!("reindex {id} of {collection} is written down, and its first piece is tried again soon, because: {trouble}"));
    }
    if started.all_scheduled {
        let jobs = if *scheduled == 1 { "job" } else { "jobs" };
        let next = match served {
            true => "a worker takes them within seconds".to_owned(),
            false => format!("no worker runs, so start one, or: catchword sync {collection} --drain"),
        };
        return Ok(format!("scheduled {scheduled} {jobs} for {collection}; {next}; watch it: catchword reindex show {id}"));
    }
    let total = started.total().map_or("an uncounted number of".to_owned(), |total| total.to_string());
    let next = match served {
        true => "workers schedule the rest".to_owned(),
        false => format!("no worker runs to schedule the rest, so start one, or: catchword sync {collection} --drain"),
    };
    Ok(format!(
        "started reindex {id} of {collection}: {scheduled} of {total} keys are scheduled; {next}; watch it: catchword reindex show {id}"
    ))
}

/// Whoever types the same again may not know that it runs.
async fn mention_the_same(catchword: &Catchword, started: &Progress) -> anyhow::Result<()> {
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    let same = |other: &Progress| {
        other.id != started.id && other.what == started.what && other.rewrite == started.rewrite && other.state == State::Running
    };
    if let Some(other) = reindex::list(&mut connection, Some(&started.collection), 20).await?.into_iter().find(same) {
        eprintln!("note: the same reindex runs already: {other}; to end that one: catchword reindex cancel {}", other.id);
    }
    Ok(())
}

/// The type of the collection's keys. A collection that nobody would serve is refused: its jobs would only lie there.
async fn key_type(catchword: &Catchword, config: &config::Collection) -> anyhow::Result<KeyType> {
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    let collection = collection::load(&mut connection, config, catchword.prefix()).await?;
    match collection.problems.first() {
        Some(problem) => bail!("collection {}: {problem}; run: catchword migrate", config.name),
        None => Ok(collection.key_type),
    }
}

pub(super) fn on_interrupt() -> std::io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn({
        let stop = stop.clone();
        async move {
            loop {
                tokio::select! { _ = interrupt.recv() => {} _ = terminate.recv() => {} }
                if stop.is_cancelled() {
                    std::process::exit(130);
                }
                stop.cancel();
            }
        }
    });
    Ok(stop)
}

/// How many scopes were given; it must be one.
fn given(options: &Reindex) -> usize {
    let one = [options.between.is_some(), options.ids.is_some(), options.all, options.condition.is_some()];
    options.scopes.len() + one.into_iter().map(usize::from).sum::<usize>()
}

fn request(collection: &config::Collection, options: &Reindex, key_type: KeyType) -> anyhow::Result<Request> {
    let known = || {
        let scopes = collection.flags().into_iter().map(|scope| format!("--{scope} X"));
        let others = ["--between A B", "--ids …", "--all", "--where SQL"].map(String::from);
        scopes.chain(others).collect::<Vec<_>>().join(" | ")
    };
    match given(options) {
        0 => bail!("say what to reindex, one of: {}", known()),
        1 => {}
        _ => bail!("one scope at a time, one of: {}", known()),
    }
    if let Some((scope, _)) = options.scopes.first()
        && !collection.flags().contains(&scope.as_str())
    {
        bail!("collection {} has no scope {scope}; it has: {}", collection.name, known());
    }
    if options.between.is_some() && collection.period.is_none() {
        bail!("collection {} has no period; name the column in the configuration: period = \"updated\"", collection.name);
    }
    let between = match options.between.as_deref() {
        None => None,
        Some([from, to]) => Some((time(from)?, time(to)?)),
        Some(_) => bail!("--between takes two times"),
    };
    if let Some((from, to)) = between
        && from >= to
    {
        bail!("--between takes the earlier time first, and the end is excluded");
    }
    let keys = options.ids.as_ref().map(|ids| split(ids, &key_type));
    if keys.as_ref().is_some_and(Vec::is_empty) {
        bail!("--ids names no key; write --ids KEY,KEY or --ids KEY KEY");
    }
    Ok(Request {
        collection: collection.name.clone(),
        scope: options.scopes.first().cloned(),
        between,
        keys,
        hidden: options.hidden,
        rewrite: options.rewrite,
        tag: options.tag.clone(),
        condition: options.condition.clone(),
        rate: options.rate,
        expected: None,
        who: Some(who()),
    })
}

/// Numbers and uuids may be separated by commas too; in a text a comma may be part of the key.
fn split(ids: &[String], key_type: &KeyType) -> Vec<String> {
    let words = ids.iter().flat_map(|word| match (key_type.has_text(), key_type.has_date()) {
        (true, _) => vec![word.as_str()],
        // 0044-03-15 BC
        (false, true) => word.split([',', '\n', '\t']).collect(),
        (false, false) => word.split([',', ' ', '\n', '\t']).collect(),
    });
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A date, a time without a zone (UTC), or a time with one.
pub(super) fn time(text: &str) -> anyhow::Result<DateTime<Utc>> {
    let zone = text.replacen(' ', "T", 1).replace('Z', "+00:00");
    let with_zone = ["%Y-%m-%dT%H:%M:%S%.f%:z", "%Y-%m-%dT%H:%M%:z"]
        .iter()
        .find_map(|format| DateTime::parse_from_str(&zone, format).ok())
        .map(|time| time.to_utc());
    let without = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|date| date.and_hms_opt(0, 0, 0));
    match with_zone.or_else(|| without.or(date).map(|time| time.and_utc())) {
        // Postgres' calendar ends before chrono's does
        Some(time) if (1..=9999).contains(&time.year()) => Ok(time),
        _ => bail!("{text:?} is not a time; write 2026-11-16, 2026-11-16T12:30 or 2026-11-16T12:30:00Z"),
    }
}

fn describe(request: &Request) -> String {
    if let Some(condition) = &request.condition {
        return format!("--where {condition:?} in {}", request.collection);
    }
    match (&request.scope, &request.between, &request.keys) {
        (Some((scope, value)), ..) => format!("--{scope} {value:?} in {}", request.collection),
        (_, Some((from, to)), _) => format!("--between {} {} in {}", from.to_rfc3339(), to.to_rfc3339(), request.collection),
        (.., Some(keys)) => format!("--ids with {} in {}", counted(keys.len()), request.collection),
        _ => format!("--all of {}", request.collection),
    }
}

fn counted(keys: usize) -> String {
    if keys == 1 { "1 key".into() } else { format!("{keys} keys") }
}

fn hint(request: &Request) -> &'static str {
    match (request.hidden, &request.keys) {
        (true, _) => "",
        (false, Some(_)) => "; keys that the view does not return, or that have no row, are taken with --hidden",
        (false, None) => "; rows that the view does not return are taken with --hidden",
    }
}

#[cfg(test)]
mod tests {
    use super::{split, time};
    use crate::collection::KeyType;

    #[test]
    fn times_are_read_as_people_write_them() -> anyhow::Result<()> {
        for (text, same) in [
            ("2026-11-16", "2026-11-16T00:00:00Z"),
            ("2026-11-16T12:30", "2026-11-16T12:30:00Z"),
            ("2026-11-16 12:30:05", "2026-11-16T12:30:05Z"),
            ("2026-11-16T12:30:00+02:00", "2026-11-16T10:30:00Z"),
            ("2026-11-16 12:30:00Z", "2026-11-16T12:30:00Z"),
            ("2026-11-16T12:30Z", "2026-11-16T12:30:00Z"),
            ("2026-11-16 14:30+02:00", "2026-11-16T12:30:00.000Z"),
        ] {
            assert_eq!(time(text)?, time(same)?, "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "16.11.2026", "2026-11-16T25:00", "+262142-01-01", "0000-01-01"] {
            assert!(time(text).is_err(), "{text}");
        }
        Ok(())
    }

    #[test]
    fn a_comma_separates_numbers_and_is_part_of_a_text() {
        let of = |name: &str| KeyType::named(&[name.to_owned()]).unwrap();
        let typed = ["1,2".to_owned(), "3 4".to_owned(), String::new(), ",".to_owned()];
        assert_eq!(split(&typed, &of("bigint")), ["1", "2", "3", "4"]);
        assert_eq!(split(&typed, &of("text")), ["1,2", "3 4", ","]);
        assert_eq!(split(&["2026-01-31,0044-03-15 BC".to_owned()], &of("date")), ["2026-01-31", "0044-03-15 BC"]);
    }
}
