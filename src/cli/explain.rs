//! `catchword explain`

use super::args::{Args, Explain};
use super::{End, print_json, say};

pub(super) async fn run(args: &Args, options: &Explain) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let collection = catchword.config().collection(options.collection.as_deref())?;
    let explanation = catchword.explain(collection, &options.key).await?;
    if options.json {
        print_json(&explanation)?;
    } else {
        say(&explanation)?;
    }
    Ok(if explanation.is_in_step() { End::Done } else { End::Not })
}
