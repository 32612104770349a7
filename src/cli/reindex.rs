//! `catchword reindex`

use anyhow::bail;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Utc};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::{Args, Reindex};
use super::progress::Progress;
use super::{End, confirmed, print_json, say};
use crate::collection::{self, KeyType};
use crate::reindex::{self, Request};
use crate::{Catchword, Error, config};

/// A chunk that meets a locked row gives way and is tried again this often.
const TRIES: u32 = 10;

/// A reindex that is written down, and how much of it is left.
struct Started {
    id: i64,
    collection: String,
    chunk: i32,
    before: i64,
    left: Option<i64>,
}

pub(super) async fn run(args: &Args, options: &Reindex) -> anyhow::Result<End> {
    // Postgres alone is needed, and of the collections only this one: nothing is indexed here
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    if let Some(number) = options.resume {
        return resume(&catchword, number, options).await;
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
    mention_unfinished(&catchword, &request.collection).await?;
    let started = Started {
        id: reindex::start(&catchword.context.pool, &request).await?,
        chunk: request.chunk(),
        before: 0,
        left: total,
        collection: request.collection,
    };
    schedule(&catchword, started, options).await
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

/// Whoever was cut short and types the same again would schedule twice what is there already.
async fn mention_unfinished(catchword: &Catchword, collection: &str) -> anyhow::Result<()> {
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    for unfinished in reindex::unfinished(&mut connection, Some(collection), None).await? {
        eprintln!(
            "note: {unfinished}, is not finished: it runs elsewhere, or was interrupted; continue it with: catchword reindex --resume {}",
            unfinished.id
        );
    }
    Ok(())
}

async fn resume(catchword: &Catchword, number: Option<i64>, options: &Reindex) -> anyhow::Result<End> {
    if given(options) > 0 {
        bail!("--resume continues with the scope of the first command; leave the scope out");
    }
    let name = options.collection.as_deref();
    if name.is_some() {
        catchword.config().collection(name)?;
    }
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    let Some(found) = reindex::unfinished(&mut connection, name, number).await?.into_iter().next() else {
        let which = number.map_or(String::new(), |n| format!(" {n}")) + &name.map_or(String::new(), |name| format!(" of {name}"));
        eprintln!("catchword: there is no unfinished reindex{which}; nothing was scheduled");
        return Ok(End::Not);
    };
    let left = reindex::remaining(&mut connection, found.id).await?;
    drop(connection);
    eprintln!("resuming {found}, {} to go", left.map_or("more than could be counted".into(), |n| n.to_string()));
    let started = Started { id: found.id, chunk: found.chunk(), before: found.scheduled, left, collection: found.collection };
    schedule(catchword, started, options).await
}

/// Chunk by chunk, each its own transaction. An interrupt stops it between two, a second one at once; either way it can be resumed.
async fn schedule(catchword: &Catchword, started: Started, options: &Reindex) -> anyhow::Result<End> {
    let Started { id, collection, .. } = &started;
    let go_on = format!("go on with: catchword reindex {collection} --resume {id}");
    let stop = on_interrupt()?;
    let progress = Progress::start(started.left, "scheduled");
    let mut scheduled = 0;
    loop {
        if stop.is_cancelled() {
            progress.finish();
            bail!("interrupted; {scheduled} jobs were scheduled, {go_on}");
        }
        let (chunk, finished) = match with_retries(catchword, *id, started.chunk).await {
            Ok(done) => done,
            Err(error) => bail!("{error}; {scheduled} jobs were scheduled, {go_on}"),
        };
        scheduled += chunk;
        progress.at(scheduled);
        if finished {
            break;
        }
    }
    progress.finish();
    let in_all = started.before + scheduled;
    if options.json {
        print_json(&json!({ "collection": collection, "reindex": id, "scheduled": in_all }))?;
    } else {
        say(format_args!(
            "scheduled {in_all} jobs for {collection}; a worker takes them from its next tick on; watch them: catchword status\n"
        ))?;
    }
    Ok(End::Done)
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

async fn with_retries(catchword: &Catchword, id: i64, size: i32) -> Result<(i64, bool), crate::Error> {
    let mut tries = 0;
    loop {
        match reindex::chunk(&catchword.context.pool, id, size).await {
            Err(error)
                if tries < TRIES && matches!(error.sqlstate().as_deref(), Some(Error::LOCK_NOT_AVAILABLE | Error::DEADLOCK_DETECTED)) =>
            {
                tries += 1
            }
            done => return done,
        }
    }
}

/// How many scopes were given; it must be one.
fn given(options: &Reindex) -> usize {
    options.scopes.len() + usize::from(options.between.is_some()) + usize::from(options.ids.is_some()) + usize::from(options.all)
}

fn request(collection: &config::Collection, options: &Reindex, key_type: KeyType) -> anyhow::Result<Request> {
    let known = || {
        let scopes = collection.flags().into_iter().map(|scope| format!("--{scope} X"));
        let others = ["--between A B", "--ids …", "--all"].map(String::from);
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
