//! `catchword explain`

use super::args::{Args, Explain};
use super::{End, print_json};

pub(super) async fn run(args: &Args, options: &Explain) -> anyhow::Result<End> {
    let catchword = args.open()?;
    crate::migrate::check_version(&mut *catchword.pool().acquire().await.map_err(crate::Error::from)?).await?;
    let (name, key) = match options.words.as_slice() {
        [name, key] => (Some(name.as_str()), key),
        [key] => (None, key),
        _ => anyhow::bail!("write: catchword explain [COLLECTION] KEY"),
    };
    let explanation = catchword.explain(catchword.config().collection(name)?, key).await?;
    if options.json {
        print_json(&explanation)?;
    } else {
        print!("{explanation}");
    }
    Ok(if explanation.is_in_step() { End::Done } else { End::Not })
}
