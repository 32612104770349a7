//! `catchword detach`

use super::args::{Args, Detach};
use super::{End, confirmed};
use crate::collection;

pub(super) async fn run(args: &Args, options: &Detach) -> anyhow::Result<End> {
    let catchword = args.open()?;
    crate::migrate::check_version(&mut *catchword.pool().acquire().await.map_err(crate::Error::from)?).await?;
    let question = format!("detach {}: its triggers, open jobs and dead letters are removed;", options.name);
    if !confirmed(&question, options.yes)? {
        println!("nothing was changed");
        return Ok(End::Not);
    }
    let done = collection::detach(catchword.pool(), &options.name).await?;
    println!("{}: {done}", options.name);
    Ok(if done == "not attached" { End::Not } else { End::Done })
}
