//! `catchword rebuild`

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::args::{Args, Rebuild as Options};
use super::reindex::on_interrupt;
use super::{End, confirmed, print_json, say, who};
use crate::printable::printable;
use crate::rebuild::{Progress, Rebuild, Request, Stage};
use crate::{Catchword, Error};

pub(super) async fn run(args: &Args, options: &Options) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let name = catchword.config().collection(options.collection.as_deref())?.name.clone();
    if options.back {
        return back(&catchword, &name, options).await;
    }
    if options.abort || options.drop {
        return end(&catchword, &name, options).await;
    }
    let request = Request { mapping: mapping(options)?, keep: options.keep, who: who(), collection: name };
    if options.dry_run {
        return dry_run(&catchword, &request, options).await;
    }
    if request.keep.is_zero()
        && !confirmed(&format!("drop the old index of {} as soon as the new one is swapped in?", request.collection), options.yes)?
    {
        say("nothing was done\n")?;
        return Ok(End::Not);
    }
    rebuild(&catchword, &request, options).await
}

async fn rebuild(catchword: &Catchword, request: &Request, options: &Options) -> anyhow::Result<End> {
    let name = &request.collection;
    if let Some(found) = catchword.unfinished_rebuild(name).await?.filter(|found| found.stage != Stage::Keep) {
        eprintln!("going on with the rebuild of {name} that {} began, at its stage {}", printable(&found.started_by), found.stage);
    }
    let (shown, stop) = (Shown::default(), on_interrupt()?);
    let ended = catchword.rebuild(request, &|progress| shown.at(progress), &stop).await;
    shown.clear();
    let go_on = format!("go on with: catchword rebuild {name}, or undo it: catchword rebuild {name} --abort");
    let rebuilt = match ended {
        Ok(rebuilt) => rebuilt,
        Err(Error::Stopped) => bail!("interrupted, nothing is lost; {go_on}"),
        // one that is not written down changed nothing
        Err(error) => match catchword.unfinished_rebuild(name).await {
            Ok(Some(left)) if !matches!(left.stage, Stage::Keep) && !error.to_string().contains("catchword rebuild") => {
                bail!("{error}; {go_on}")
            }
            _ => return Err(error.into()),
        },
    };
    report(&rebuilt, options)?;
    remind_of_the_file(catchword, request, options)?;
    Ok(End::Done)
}

/// The configured file must follow the index, or it looks as if the file had changed.
fn remind_of_the_file(catchword: &Catchword, request: &Request, options: &Options) -> anyhow::Result<()> {
    let config = catchword.config().collection(Some(&request.collection))?;
    if let (Some(path), Some(given)) = (&options.mapping, &request.mapping)
        && config.mapping_json().ok().as_ref() != Some(given)
    {
        let (given, configured) = (path.display(), config.mapping.display());
        eprintln!("replace {configured} by {given}: until then `status` reports that the mapping file changed");
    }
    Ok(())
}

async fn back(catchword: &Catchword, name: &str, options: &Options) -> anyhow::Result<End> {
    let rebuild = catchword.rebuild_back(name, &who()).await?;
    report(&rebuild, options)?;
    Ok(End::Done)
}

/// `--abort` and `--drop`: what goes cannot be had back.
async fn end(catchword: &Catchword, name: &str, options: &Options) -> anyhow::Result<End> {
    let Some(found) = catchword.unfinished_rebuild(name).await? else {
        eprintln!("catchword: no rebuild of {name} is under way, and no old index of it is kept; nothing was done");
        return Ok(End::Not);
    };
    let goes = if options.abort { &found.new_index } else { found.kept_index() };
    if !confirmed(&format!("drop the index {goes}?"), options.yes)? {
        say("nothing was done\n")?;
        return Ok(End::Not);
    }
    let rebuild = if options.abort { catchword.rebuild_abort(name, &who()).await? } else { catchword.rebuild_drop(name, &who()).await? };
    let stays = if options.abort { &rebuild.old_index } else { &rebuild.targets[0] };
    match options.json {
        true => print_json(&json!({ "collection": name, "dropped": goes, "index": stays }))?,
        false => say(format_args!("{goes} is dropped; {name} is kept in {stays} alone\n"))?,
    }
    Ok(End::Done)
}

async fn dry_run(catchword: &Catchword, request: &Request, options: &Options) -> anyhow::Result<End> {
    if let Some(found) = catchword.unfinished_rebuild(&request.collection).await? {
        bail!("a rebuild of {} is at its stage {}; see: catchword status", request.collection, found.stage);
    }
    let plan = catchword.plan_rebuild(request).await?;
    if options.json {
        print_json(&plan)?;
        return Ok(End::Done);
    }
    let keys = plan.keys.map_or("more keys than can be counted".to_owned(), |keys| format!("{keys} keys"));
    let rewrite = if plan.rewrite { ", written again to both, because the view changed" } else { "" };
    say(format_args!(
        "would create {} next to {}, fill it with {keys}{rewrite}, compare it, and move the alias {} to it\n",
        plan.new_index, plan.old_index, plan.alias
    ))?;
    match plan.room {
        Some(room) => say(format_args!(
            "it takes about {} MB of disk, and {} MB are free; nothing was done\n",
            room.needed / 1_000_000,
            room.free / 1_000_000
        ))?,
        None => say("the server does not tell how full its disks are: see that there is room for a second copy; nothing was done\n")?,
    }
    Ok(End::Done)
}

fn report(rebuild: &Rebuild, options: &Options) -> anyhow::Result<()> {
    if options.json {
        return print_json(rebuild);
    }
    let (name, seen) = (&rebuild.collection, rebuild.targets.first().map_or("", String::as_str));
    match rebuild.drop_at {
        Some(at) if rebuild.stage == Stage::Keep => say(format_args!(
            "readers of {name} see {seen}; {} is kept in step until {}, then a worker drops it; go back with: catchword rebuild {name} --back\n",
            rebuild.kept_index(),
            at.format("%Y-%m-%d %H:%M UTC")
        )),
        _ => say(format_args!("readers of {name} see {seen}; {} is dropped\n", rebuild.kept_index())),
    }
}

fn mapping(options: &Options) -> anyhow::Result<Option<Value>> {
    let Some(path) = &options.mapping else { return Ok(None) };
    let text = std::fs::read_to_string(path).with_context(|| format!("--mapping {} cannot be read", path.display()))?;
    let file: Value = serde_json::from_str(&text).with_context(|| format!("--mapping {} is not JSON", path.display()))?;
    Ok(Some(file))
}

/// A line per stage, and a bar where there is something to count.
#[derive(Default)]
struct Shown(Mutex<Last>);

#[derive(Default)]
struct Last {
    stage: Option<Stage>,
    waits_for: Option<String>,
    bar: Option<ProgressBar>,
    tenth: u64,
}

impl Shown {
    fn at(&self, progress: &Progress) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.stage != Some(progress.stage) {
            last.bar.take().inspect(ProgressBar::finish_and_clear);
            eprintln!("{:<7} {}", progress.stage.name(), does(progress.stage));
            *last = Last { stage: Some(progress.stage), ..Last::default() };
        }
        if let Some(why) = progress.waits_for.as_ref().filter(|why| last.waits_for.as_ref() != Some(*why)) {
            eprintln!("        waits: {}", printable(why));
        }
        last.waits_for.clone_from(&progress.waits_for);
        let Some((done, total)) = progress.done.filter(|(_, total)| *total > 0) else { return };
        if std::io::stderr().is_terminal() {
            last.bar.get_or_insert_with(|| bar(total)).set_position(done);
        } else if done * 10 / total > last.tenth && done < total {
            last.tenth = done * 10 / total;
            eprintln!("        {done} of {total}");
        }
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bar.take().inspect(ProgressBar::finish_and_clear);
    }
}

fn bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    bar.enable_steady_tick(Duration::from_secs(1));
    let style = ProgressStyle::with_template("        {bar:40} {human_pos} of {human_len}, {per_sec}{left}");
    style.map_or(bar.clone(), |style| bar.with_style(style.with_key("left", super::progress::to_go)))
}

fn does(stage: Stage) -> &'static str {
    match stage {
        Stage::Create => "creates the new index",
        Stage::Fill => "both are targets now; schedules every key",
        Stage::Drain => "works on the jobs, together with the workers that run",
        Stage::Verify => "puts refresh and replicas back, and compares it, key by key",
        Stage::Swap | Stage::Back => "moves the readers' alias",
        Stage::Keep => "the readers' alias has moved; both indices are kept in step",
        Stage::Drop => "drops the index that readers no longer see",
        Stage::Abort => "drops the new index",
        Stage::Done => "the index that readers no longer see is dropped",
        Stage::Aborted => "the new index is dropped",
    }
}
