//! `catchword explain`

use super::args::{Args, Explain};
use super::{End, print_json, say};

pub(super) async fn run(args: &Args, options: &Explain) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    let (name, key) = match options.words.as_slice() {
        [name, key] => (Some(name.as_str()), key),
        [key] => (None, key),
        _ => anyhow::bail!("write: catchword explain [COLLECTION] KEY"),
    };
    let explanation = catchword.explain(catchword.config().collection(name)?, key).await?;
    if options.json {
        print_json(&explanation)?;
    } else {
        say(&explanation)?;
    }
    Ok(if explanation.is_in_step() { End::Done } else { End::Not })
}
