//! `catchword journal`

use super::args::{Args, Journal};
use super::{End, print_json, say};
use crate::journal;
use crate::printable::printable;

pub(super) async fn run(args: &Args, options: &Journal) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let mut connection = catchword.context.pool.acquire().await?;
    let lines = journal::journal(&mut connection, options.collection.as_deref(), options.limit).await?;
    if options.json {
        print_json(&lines)?;
        return Ok(End::Done);
    }
    for line in &lines {
        let count = line.count.map_or(String::new(), |count| format!(", {count}"));
        say(format_args!(
            "{}  {:<20} {:<8} {} {}{count}\n",
            line.at.format("%Y-%m-%d %H:%M:%S UTC"),
            printable(&line.who),
            line.what,
            printable(line.collection.as_deref().unwrap_or("")),
            printable(line.detail.as_deref().unwrap_or("")),
        ))?;
    }
    if lines.is_empty() {
        say("there are no entries yet\n")?;
    }
    Ok(End::Done)
}
