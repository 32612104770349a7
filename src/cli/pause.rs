//! `catchword pause` and `catchword resume`

use super::args::{Args, Pause, Resume};
use super::{End, say, who};
use crate::pause;

pub(super) async fn pause(args: &Args, options: &Pause) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let name = &catchword.config().collection(options.collection.as_deref())?.name;
    if options.reason.trim().is_empty() {
        anyhow::bail!("a pause needs a reason: --reason \"the mapping is being changed\"");
    }
    let mut connection = catchword.context.pool.acquire().await?;
    if pause::pause(&mut connection, name, &who(), &options.reason).await? {
        say(format_args!("{name} is paused; writes still schedule jobs; resume it with: catchword resume {name}\n"))?;
        return Ok(End::Done);
    }
    say(format_args!("{name} was paused already; see: catchword status\n"))?;
    Ok(End::Not)
}

pub(super) async fn resume(args: &Args, options: &Resume) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let name = &catchword.config().collection(options.collection.as_deref())?.name;
    let mut connection = catchword.context.pool.acquire().await?;
    if pause::resume(&mut connection, name, &who()).await? {
        let when = match catchword.config().worker.quick {
            Some(_) => "resumes: new writes at once, what waited at the next tick at the latest",
            None => "resumes at the next tick",
        };
        say(format_args!("{name} {when}; watch it: catchword status\n"))?;
        return Ok(End::Done);
    }
    say(format_args!("{name} was not paused\n"))?;
    Ok(End::Not)
}
