//! `catchword doctor`

use super::args::{Args, Doctor};
use super::paint::say_lines;
use super::{End, print_json};
use crate::doctor::{Level, Shown};

pub(super) async fn run(args: &Args, options: &Doctor) -> anyhow::Result<End> {
    let report = args.open()?.doctor(&args.environment()?).await;
    if options.json {
        print_json(&report)?;
    } else {
        say_lines(&report.shown(if options.all { Shown::All } else { Shown::NotOk }))?;
    }
    Ok(match report.count(Level::Fail) {
        _ if !report.unseen.is_empty() => End::Unknown,
        0 => End::Done,
        _ => End::Not,
    })
}
