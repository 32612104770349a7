//! `catchword status`

use super::args::{Args, Status};
use super::{End, print_json, say};

pub(super) async fn run(args: &Args, options: &Status) -> anyhow::Result<End> {
    let catchword = args.open()?;
    let status = catchword.status().await?;
    if options.json {
        print_json(&status)?;
    } else {
        say(&status)?;
    }
    Ok(if status.is_well() { End::Done } else { End::Not })
}
