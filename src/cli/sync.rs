//! `catchword sync`

use super::args::{Args, Sync};
use super::{End, print_json};

pub(super) async fn run(args: &Args, options: &Sync) -> anyhow::Result<End> {
    let catchword = args.connect().await?;
    let names: Vec<&str> = options.collections.iter().map(String::as_str).collect();
    for name in &names {
        catchword.config().collection(Some(name))?;
    }
    let outcome = if options.drain {
        catchword.drain("sync", &names).await?
    } else {
        catchword.sync("sync", &names).await?
    };
    if options.json {
        print_json(&outcome)?;
    } else {
        println!("{outcome}");
    }
    Ok(if outcome.is_well() { End::Done } else { End::Not })
}
