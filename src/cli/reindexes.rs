//! `catchword reindex list | show | cancel | pause | resume | rate`, and waiting for the end of one

use std::time::Duration;

use anyhow::bail;

use super::args::{Rate, ReindexAct, ReindexList, ReindexOne, ReindexRate, ReindexShow};
use super::progress::Progress as Bar;
use super::reindex::on_interrupt;
use super::{End, print_json, say, who};
use crate::heartbeat::workers;
use crate::printable::printable;
use crate::reindex::{self, Progress, State};
use crate::{Catchword, Error};

/// How often it is asked how far a reindex is: each time its open jobs are counted.
const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn act(catchword: &Catchword, what: &ReindexAct) -> anyhow::Result<End> {
    match what {
        ReindexAct::List(options) => list(catchword, options).await,
        ReindexAct::Show(options) => show(catchword, options).await,
        ReindexAct::Cancel(options) => cancel(catchword, options).await,
        ReindexAct::Pause(options) => pause(catchword, options).await,
        ReindexAct::Resume(options) => resume(catchword, options).await,
        ReindexAct::Rate(options) => rate(catchword, options).await,
    }
}

async fn list(catchword: &Catchword, options: &ReindexList) -> anyhow::Result<End> {
    let mut connection = catchword.context.pool.acquire().await.map_err(Error::from)?;
    let found = reindex::list(&mut connection, options.collection.as_deref(), options.limit).await?;
    if options.json {
        print_json(&found)?;
        return Ok(End::Done);
    }
    for reindex in &found {
        say(format_args!("{reindex}\n"))?;
    }
    if found.is_empty() {
        say("there are no reindexes yet\n")?;
    }
    Ok(End::Done)
}

async fn show(catchword: &Catchword, options: &ReindexShow) -> anyhow::Result<End> {
    if options.wait {
        return wait(catchword, options.id, options.json).await;
    }
    let Some(reindex) = read(catchword, options.id).await? else { return Ok(is_none(options.id)) };
    if options.json {
        print_json(&reindex)?;
    } else {
        say(in_full(&reindex))?;
    }
    Ok(End::Done)
}

async fn cancel(catchword: &Catchword, options: &ReindexOne) -> anyhow::Result<End> {
    let id = options.id;
    let done = {
        let mut connection = catchword.context.pool.acquire().await.map_err(Error::from)?;
        reindex::cancel(&mut connection, id, &who()).await?
    };
    let Some(now) = read(catchword, id).await? else { return Ok(is_none(id)) };
    let said = match (done, now.rewrite, now.open) {
        (false, ..) => format!("reindex {id} was over already"),
        (true, true, 0) => format!("reindex {id} is cancelled"),
        (true, true, open) => {
            format!("reindex {id} is cancelled; its {open} open jobs stay, because their rows have new numbers, which the index must get")
        }
        (true, false, 0) => format!("reindex {id} is cancelled; {} jobs were deleted", now.taken_off),
        (true, false, open) => {
            format!(
                "reindex {id} is cancelled; {} jobs were deleted, and {open} stay: they are worked on now, or the index needs them",
                now.taken_off
            )
        }
    };
    tell(&said, &now, options.json, done)
}

async fn pause(catchword: &Catchword, options: &ReindexOne) -> anyhow::Result<End> {
    let id = options.id;
    let done = {
        let mut connection = catchword.context.pool.acquire().await.map_err(Error::from)?;
        reindex::pause(&mut connection, id, &who()).await?
    };
    let Some(now) = read(catchword, id).await? else { return Ok(is_none(id)) };
    let said = match (done, now.state) {
        (true, _) => {
            format!("reindex {id} is paused; its {} open jobs are still worked on; resume it with: catchword reindex resume {id}", now.open)
        }
        (false, State::Paused) => format!("reindex {id} was paused already"),
        (false, State::Running) => format!("all of reindex {id} is scheduled, so there is nothing to pause; {} jobs are open", now.open),
        (false, _) => format!("reindex {id} is over"),
    };
    tell(&said, &now, options.json, done)
}

async fn resume(catchword: &Catchword, options: &ReindexOne) -> anyhow::Result<End> {
    let id = options.id;
    let done = {
        let mut connection = catchword.context.pool.acquire().await.map_err(Error::from)?;
        reindex::resume(&mut connection, id, &who()).await?
    };
    let Some(now) = read(catchword, id).await? else { return Ok(is_none(id)) };
    let said = match done {
        true => format!("reindex {id} goes on within seconds, if a worker runs; watch it: catchword reindex show {id}"),
        false => format!("reindex {id} was not paused"),
    };
    tell(&said, &now, options.json, done)
}

async fn rate(catchword: &Catchword, options: &ReindexRate) -> anyhow::Result<End> {
    let (id, Rate(rate)) = (options.id, options.rate);
    let done = {
        let mut connection = catchword.context.pool.acquire().await.map_err(Error::from)?;
        reindex::set_rate(&mut connection, id, rate, &who()).await?
    };
    let Some(now) = read(catchword, id).await? else { return Ok(is_none(id)) };
    let said = match (done, rate) {
        (true, Some(rate)) => format!("reindex {id} schedules at most {rate} keys a second"),
        (true, None) => format!("reindex {id} has no limit any more"),
        (false, _) => format!("all of reindex {id} is scheduled already"),
    };
    tell(&said, &now, options.json, done)
}

/// Follows a reindex to its end. An interrupt ends the waiting only.
pub(super) async fn wait(catchword: &Catchword, id: i64, json: bool) -> anyhow::Result<End> {
    let stop = on_interrupt()?;
    let Some(mut now) = read(catchword, id).await? else { return Ok(is_none(id)) };
    if !now.state.is_over() && !is_served(catchword, &now.collection).await? {
        eprintln!("no worker runs; catchword sync {} --drain works on it", now.collection);
    }
    let bar = Bar::start(now.total(), "settled");
    while !now.state.is_over() {
        bar.at(now.through() as i64);
        tokio::select! {
            () = stop.cancelled() => {
                bar.finish();
                bail!("not waited for the end: reindex {id} goes on; watch it: catchword reindex show {id}, end it: catchword reindex cancel {id}");
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        let Some(next) = read(catchword, id).await? else {
            bar.finish();
            bail!("reindex {id} is gone: its collection was detached");
        };
        now = next;
    }
    bar.finish();
    if json {
        print_json(&now)?;
    } else {
        say(format_args!("reindex {now}{}\n", remedy(&now)))?;
    }
    Ok(if now.dead > 0 || now.state == State::Cancelled { End::Not } else { End::Done })
}

/// Does a living worker serve the collection?
pub(super) async fn is_served(catchword: &Catchword, collection: &str) -> anyhow::Result<bool> {
    let mut connection = catchword.context.pool.acquire().await.map_err(Error::from)?;
    let workers = workers(&mut connection).await?;
    Ok(workers.iter().any(|worker| worker.is_alive() && worker.collections.iter().any(|served| served == collection)))
}

async fn read(catchword: &Catchword, id: i64) -> anyhow::Result<Option<Progress>> {
    let mut connection = catchword.context.pool.acquire().await.map_err(Error::from)?;
    Ok(reindex::show(&mut connection, id).await?)
}

fn is_none(id: i64) -> End {
    eprintln!("catchword: there is no reindex {id}; list them: catchword reindex list");
    End::Not
}

fn tell(said: &str, now: &Progress, json: bool, done: bool) -> anyhow::Result<End> {
    if json {
        print_json(now)?;
    } else {
        say(format_args!("{said}\n"))?;
    }
    Ok(if done { End::Done } else { End::Not })
}

fn remedy(now: &Progress) -> String {
    match now.dead {
        0 => String::new(),
        _ => format!("; see why: catchword dead list --collection {}", now.collection),
    }
}

fn in_full(now: &Progress) -> String {
    let time = |at: chrono::DateTime<chrono::Utc>| at.format("%Y-%m-%d %H:%M:%S UTC").to_string();
    let mut lines = vec![format!("reindex {} of {}: {}", now.id, printable(&now.collection), printable(&now.what))];
    let mut line = |name: &str, says: String| lines.push(format!("  {name:<10}{says}"));
    line("state", now.state.to_string());
    let total = now.total().map_or("an uncounted number".to_owned(), |total| total.to_string());
    line("scheduled", format!("{} of {total}{}", now.scheduled, if now.rewrite { ", to be written again" } else { "" }));
    line("settled", now.settled.to_string());
    line("open", now.open.to_string());
    line("dead", format!("{}{}", now.dead, remedy(now)));
    if now.taken_off > 0 {
        line("taken off", format!("{} jobs, when it was cancelled", now.taken_off));
    }
    let lately = now.per_second.map_or("not measured".to_owned(), |speed| format!("{speed:.0} a second lately"));
    line("rate", now.rate.map_or(lately.clone(), |rate| format!("{lately}, at most {rate} are scheduled")));
    if let Some(left) = now.seconds_left {
        line("left", format!("about {}", humantime::format_duration(Duration::from_secs(left.max(1.0) as u64))));
    }
    line("tag", printable(&now.tag));
    line("started", format!("{} by {}", time(now.started_at), printable(&now.started_by)));
    if let Some(at) = now.ended_at {
        line("ended", time(at));
    }
    if let Some(trouble) = now.trouble.as_ref().filter(|_| !now.state.is_over()) {
        line("trouble", format!("it cannot go on, and is tried again: {}", printable(trouble)));
    }
    lines.join("\n") + "\n"
}
