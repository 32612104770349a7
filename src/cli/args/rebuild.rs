//! The words of `catchword rebuild`.

use std::path::PathBuf;
use std::time::Duration;

use crate::rebuild::LONGEST_KEEP;

/// Heading of the help.
const INSTEAD: &str = "Instead of rebuilding, one of";

#[derive(Debug, clap::Args)]
pub(crate) struct Rebuild {
    /// The collection; may be left out if there is only one
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// Settings and mappings of the new index; without it, the file that the configuration names
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// How long the old index is kept in step, so that --back is possible; then a worker drops it
    ///
    /// Until then every write goes to two indices, and both take disk space. 0s drops the old index at once, and asks first.
    #[arg(long, value_name = "SPAN", default_value = "24h", value_parser = keep)]
    pub keep: Duration,
    /// Print what would be done and whether anything prevents it, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Let readers see the old index again, which is as fresh as the new one; a second --back shows the new one again
    ///
    /// The index that readers no longer see is kept in step for --keep.
    #[arg(long, help_heading = INSTEAD, conflicts_with_all = ["mapping", "dry_run", "abort", "drop"])]
    pub back: bool,
    /// Undo a rebuild before readers see the new index, which is dropped; asks first
    #[arg(long, help_heading = INSTEAD, conflicts_with_all = ["mapping", "dry_run", "drop"])]
    pub abort: bool,
    /// Drop the index that readers do not see, before --keep is over; asks first
    #[arg(long, help_heading = INSTEAD, conflicts_with_all = ["mapping", "dry_run"])]
    pub drop: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
}

fn keep(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text).map_err(|_| "write a span of time, as in 24h, 7days or 0s".to_owned())?;
    if span > LONGEST_KEEP { Err("a year is the most".to_owned()) } else { Ok(span) }
}
