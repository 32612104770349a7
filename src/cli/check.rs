//! `catchword check`

use super::args::{Args, Check};
use super::paint::say_lines;
use super::{End, print_json};
use crate::check::Level;

pub(super) async fn run(args: &Args, options: &Check) -> anyhow::Result<End> {
    let report = args.open()?.check().await;
    if options.json {
        print_json(&report)?;
    } else if !(options.quiet && matches!(report.level, Level::Well | Level::Warning)) {
        say_lines(&report.lines())?;
    }
    Ok(match report.level {
        Level::Well | Level::Warning => End::Done,
        Level::Unwell => End::Not,
        Level::Unknown => End::Unknown,
    })
}
