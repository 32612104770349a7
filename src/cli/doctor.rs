//! `catchword doctor`

use super::args::{Args, Doctor};
use super::{End, print_json, say};
use crate::doctor::Level;

pub(super) async fn run(args: &Args, options: &Doctor) -> anyhow::Result<End> {
    let report = args.open()?.doctor(&args.environment()?).await;
    if options.json {
        print_json(&report)?;
    } else {
        say(&report)?;
    }
    Ok(match report.count(Level::Fail) {
        _ if !report.unseen.is_empty() => End::Unknown,
        0 => End::Done,
        _ => End::Not,
    })
}
