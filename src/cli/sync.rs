//! `catchword sync`

use super::args::{Args, Sync};
use super::{End, print_json, say};
use crate::printable::printable;
use crate::sync;

pub(super) async fn run(args: &Args, options: &Sync) -> anyhow::Result<End> {
    // a collection that is refused is named in the outcome, and the others go on
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let names: Vec<&str> = options.collections.iter().map(String::as_str).collect();
    for name in &names {
        catchword.config().collection(Some(name))?;
    }
    let outcome = if options.drain { catchword.drain("sync", &names).await? } else { catchword.sync("sync", &names).await? };
    if options.drain && outcome.written > 0 {
        sync::show(&catchword.context, &names).await;
    }
    if options.json {
        print_json(&outcome)?;
    } else {
        say(format_args!("{}\n", printable(&outcome.to_string())))?;
    }
    Ok(if outcome.is_well() { End::Done } else { End::Not })
}
