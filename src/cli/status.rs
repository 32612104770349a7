//! `catchword status`

use super::args::{Args, Status};
use super::paint::say_lines;
use super::{End, print_json, watch};

pub(super) async fn run(args: &Args, options: &Status) -> anyhow::Result<End> {
    let catchword = args.open()?;
    if options.watch {
        return watch::run(&catchword).await;
    }
    let status = catchword.status().await?;
    if options.json {
        print_json(&status)?;
    } else {
        say_lines(&status.lines())?;
    }
    Ok(if status.is_well() { End::Done } else { End::Not })
}
