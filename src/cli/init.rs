//! `catchword init`

use serde_json::json;

use super::args::{Args, Init};
use super::{End, print_json, say};
use crate::config::{Environment, Tls};
use crate::database;
use crate::init::{Draft, Files, Wanted, Wrote, init};
use crate::printable::{printable, shell_word};

pub(super) async fn run(args: &Args, options: &Init) -> anyhow::Result<End> {
    let tls = if args.insecure { Tls::Insecure } else { Tls::Verified };
    let mut connection = database::connection(&Environment::database_from_process(tls)?).await?;
    let wanted =
        Wanted { table: options.table.clone(), name: options.name.clone(), view: options.view.clone(), revision: options.revision.clone() };
    let draft = init(&mut connection, &wanted).await?;
    let files = Files::of(&draft, &args.config);
    let wrote = if options.write { Some(files.write()?) } else { None };
    if options.json {
        print_json(&json!({
            "collection": draft.collection,
            "table": draft.table,
            "key": draft.key(),
            "view": draft.view,
            "left_out": draft.left_out,
            "files": files,
            "written": wrote == Some(Wrote::All),
        }))?;
    } else {
        tell(&draft, &files, wrote)?;
    }
    Ok(if wrote == Some(Wrote::Nothing) { End::Not } else { End::Done })
}

fn tell(draft: &Draft, files: &Files, wrote: Option<Wrote>) -> anyhow::Result<()> {
    let [migration, mapping, config] =
        [&files.migration, &files.mapping, &files.config].map(|file| printable(&file.path.display().to_string()));
    match wrote {
        None => {
            for (path, file) in [(&migration, &files.migration), (&mapping, &files.mapping), (&config, &files.config)] {
                say(format_args!("──── {path}\n{}\n", file.text))?;
            }
            return say("nothing was written; add --write to write these files\n");
        }
        Some(Wrote::Nothing) => say(format_args!("{migration}, {mapping} and {config} have all of it already; nothing was written\n"))?,
        Some(Wrote::All) => say(format_args!("wrote       {migration}, {mapping}; added to {config}\n"))?,
    }
    for left_out in &draft.left_out {
        say(format_args!("left out    {}: {}\n", printable(&left_out.what), printable(&left_out.why)))?;
    }
    say(format_args!(
        "next        read them; psql -1 -v ON_ERROR_STOP=1 \"$DATABASE_URL\" -f {}; catchword migrate; catchword doctor; {}\n",
        shell_word(&files.migration.path.display().to_string()),
        draft.fill_command()
    ))
}
