//! `catchword detach`

use super::args::{Args, Detach};
use super::{End, confirmed, say};
use crate::migrate;
use crate::printable::printable;

pub(super) async fn run(args: &Args, options: &Detach) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let name = printable(&options.name);
    let question = format!("detach {name}: its triggers, open jobs and dead letters are removed;");
    if !confirmed(&question, options.yes)? {
        say("nothing was changed\n")?;
        return Ok(End::Not);
    }
    let done = migrate::detach(&catchword.context, &options.name).await?;
    say(format_args!("{name}: {done}\n"))?;
    Ok(if done == "not attached" { End::Not } else { End::Done })
}
