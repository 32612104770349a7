//! `catchword status`

use super::args::{Args, Status};
use super::{End, print_json};

pub(super) async fn run(args: &Args, options: &Status) -> anyhow::Result<End> {
    let catchword = args.open()?;
    crate::migrate::check_version(&mut *catchword.pool().acquire().await.map_err(crate::Error::from)?).await?;
    let status = catchword.status().await?;
    if options.json {
        print_json(&status)?;
    } else {
        print!("{status}");
    }
    let well = status
        .collections
        .iter()
        .all(|c| c.blocked.is_none() && c.census.dead == 0 && c.census.expired == 0);
    Ok(if well { End::Done } else { End::Not })
}
