//! `catchword dead list | show | replay | bury | discard`

use serde_json::json;

use super::args::{self, Args, Dead, DeadAct, DeadBury, DeadList, DeadShow};
use super::paint::{Paint, say_lines};
use super::{End, confirmed, print_json, say, who};
use crate::Catchword;
use crate::job::{self, Letter, Which};
use crate::printable::{Tone, printable, shell_word};

/// Groups and letters that are listed at most: more is no reading for a person.
const LIMIT: i64 = 1_000;

pub(super) async fn run(args: &Args, options: &Dead) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    match options {
        Dead::List(options) => list(&catchword, options).await,
        Dead::Show(options) => show(&catchword, options).await,
        Dead::Replay(options) => replay(&catchword, options).await,
        Dead::Bury(options) => bury(&catchword, options).await,
        Dead::Discard(options) => discard(&catchword, options).await,
    }
}

async fn list(catchword: &Catchword, options: &DeadList) -> anyhow::Result<End> {
    let which = which(catchword, &options.which, &[])?;
    let mut connection = catchword.context.pool.acquire().await?;
    let none = if options.each {
        let letters = job::dead_letters(&mut connection, &which, LIMIT).await?;
        if options.json {
            print_json(&letters)?;
        } else {
            let paint = Paint::of_stdout();
            for letter in &letters {
                let (id, rest) = (letter.id.to_string(), one_line(letter));
                say(format_args!("{}{}\n", paint.text(Tone::Wrong, &id), &rest[id.len()..]))?;
            }
        }
        letters.is_empty()
    } else {
        let groups = job::dead_groups(&mut connection, &which, LIMIT).await?;
        if options.json {
            print_json(&groups)?;
        } else {
            for group in &groups {
                let error = printable(group.last_error.as_deref().unwrap_or("no error was recorded"));
                let since = group.first.format("%Y-%m-%d %H:%M UTC");
                say_lines(&[
                    (Tone::Wrong, format!("{:>8}  {} {}: {error}", group.count, printable(&group.collection), group.reason)),
                    (Tone::Plain, format!("          since {since}, for example: catchword dead show {}", group.example)),
                ])?;
            }
        }
        groups.is_empty()
    };
    if none && !options.json {
        say_lines(&[(Tone::Well, "no dead letters".into())])?;
    }
    Ok(if none { End::Done } else { End::Not })
}

async fn show(catchword: &Catchword, options: &DeadShow) -> anyhow::Result<End> {
    let which = Which { ids: Some(vec![options.id]), ..Which::default() };
    let mut connection = catchword.context.pool.acquire().await?;
    let Some(letter) = job::dead_letters(&mut connection, &which, 1).await?.into_iter().next() else {
        eprintln!("catchword: there is no dead letter {}; list them: catchword dead list --each", options.id);
        return Ok(End::Not);
    };
    if options.json {
        print_json(&letter)?;
        return Ok(End::Done);
    }
    let collection = shell_word(&letter.collection);
    let next = match letter.name.as_str() {
        "index" => format!("  look closer: catchword explain {collection} {}\n", shell_word(&letter.key)),
        _ => String::new(),
    };
    say(format_args!(
        "{}\n  asked for by {}, first at {}\n{next}  try again:   catchword dead replay {}\n",
        one_line(&letter),
        printable(&letter.tag),
        letter.enqueued_at.format("%Y-%m-%d %H:%M:%S UTC"),
        letter.id
    ))?;
    Ok(End::Done)
}

async fn replay(catchword: &Catchword, options: &DeadAct) -> anyhow::Result<End> {
    let which = chosen(catchword, options)?;
    let mut connection = catchword.context.pool.acquire().await?;
    let count = job::replay(&mut connection, &which, &who(), &words(options)).await?;
    report("scheduled again", count, options)
}

async fn bury(catchword: &Catchword, options: &DeadBury) -> anyhow::Result<End> {
    let collection = &catchword.config().collection(options.collection.as_deref())?.name;
    let mut connection = catchword.context.pool.acquire().await?;
    let mut key = options.key.clone();
    let mut open = job::open_to_bury(&mut connection, collection, &key).await?;
    if open == 0
        && let Ok(uuid) = uuid::Uuid::parse_str(&key)
    {
        key = uuid.to_string();
        open = job::open_to_bury(&mut connection, collection, &key).await?;
    }
    let name = format!("{} {}", printable(collection), printable(&key));
    if open > 0 && !options.dry_run {
        if !confirmed(&format!("the jobs of {name} are moved to the dead letters;"), options.yes)? {
            say("nothing was buried\n")?;
            return Ok(End::Not);
        }
        let waiting = || eprintln!("catchword: another session holds a job of {name}, perhaps a worker; waiting for it, at most a minute");
        open = job::bury_by_hand(&mut connection, [collection, &key], [&options.why, &who()], waiting).await?;
    }
    if options.json {
        print_json(&json!({ "count": open, "dry_run": options.dry_run }))?;
    } else if open == 0 {
        eprintln!("catchword: {name} has no job; see: catchword explain {} {}", shell_word(collection), shell_word(&key));
    } else if options.dry_run {
        say(format_args!("would be buried: {open} of {name}; nothing was changed\n"))?;
    } else {
        say(format_args!("buried: {open} of {name}; schedule it again: catchword dead replay --reason by_hand\n"))?;
    }
    Ok(if open == 0 { End::Not } else { End::Done })
}

async fn discard(catchword: &Catchword, options: &DeadAct) -> anyhow::Result<End> {
    let which = chosen(catchword, options)?;
    if !confirmed("these dead letters are deleted for good;", options.yes)? {
        say("nothing was deleted\n")?;
        return Ok(End::Not);
    }
    let mut connection = catchword.context.pool.acquire().await?;
    let count = job::discard(&mut connection, &which, &who(), &words(options)).await?;
    report("deleted", count, options)
}

fn report(done: &str, count: i64, options: &DeadAct) -> anyhow::Result<End> {
    if options.json {
        print_json(&json!({ "count": count }))?;
    } else if count == 0 {
        eprintln!("catchword: no dead letter matches; list them: catchword dead list");
    } else {
        say(format_args!("{done}: {count}\n"))?;
    }
    Ok(if count == 0 { End::Not } else { End::Done })
}

/// Something must be named: an empty command line does not mean everything.
fn chosen(catchword: &Catchword, options: &DeadAct) -> anyhow::Result<Which> {
    let narrowed = options.which.collection.is_some()
        || options.which.reason.is_some()
        || options.which.tag.is_some()
        || options.which.since.is_some();
    if options.ids.is_empty() && !options.all && !narrowed {
        anyhow::bail!("say which: ID…, --reason REASON, --collection NAME, --tag TEXT, --since TIME, or --all");
    }
    which(catchword, &options.which, &options.ids)
}

fn which(catchword: &Catchword, options: &args::Which, ids: &[i64]) -> anyhow::Result<Which> {
    if let Some(name) = &options.collection {
        catchword.config().collection(Some(name))?;
    }
    Ok(Which {
        ids: (!ids.is_empty()).then(|| ids.to_vec()),
        collection: options.collection.clone(),
        reason: options.reason.clone(),
        tag: options.tag.clone(),
        since: options.since.as_deref().map(super::reindex::time).transpose()?,
        error: None,
    })
}

/// What was typed, for the journal.
fn words(options: &DeadAct) -> String {
    let mut words: Vec<String> = options.ids.iter().take(20).map(i64::to_string).collect();
    let given = [("--reason", &options.which.reason), ("--tag", &options.which.tag), ("--since", &options.which.since)];
    words.extend(given.into_iter().filter_map(|(flag, value)| Some(format!("{flag} {}", value.as_ref()?))));
    if options.all {
        words.push("--all".into());
    }
    words.join(" ")
}

fn one_line(letter: &Letter) -> String {
    format!(
        "{} {} {} {} {} after {} tries: {}",
        letter.id,
        letter.died_at.format("%Y-%m-%d %H:%M:%S UTC"),
        printable(&letter.collection),
        printable(&letter.key),
        letter.reason,
        letter.attempts,
        printable(letter.last_error.as_deref().unwrap_or("no error was recorded"))
    )
}
