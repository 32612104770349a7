//! `catchword migrate`

use super::args::{Args, Migrate};
use super::{End, say};
use crate::collection::{self, Attached, OfACopy};
use crate::config::CANARY;
use crate::context::index_plan;
use crate::elastic::Done;
use crate::printable::printable;
use crate::{Catchword, database, migrate};

pub(super) async fn run(args: &Args, options: &Migrate) -> anyhow::Result<End> {
    let catchword = args.open()?;
    if options.dry_run {
        return dry_run(&catchword).await;
    }
    let copy = match (options.new_installation, options.take_over) {
        (true, _) => OfACopy::NewInstallation,
        (_, true) => OfACopy::TakesOver,
        _ => OfACopy::Refused,
    };
    real_run(&catchword, copy).await?;
    Ok(End::Done)
}

async fn real_run(catchword: &Catchword, copy: OfACopy) -> anyhow::Result<()> {
    let (applied, collections) = catchword.migrate_copy(copy).await?;
    let mut refused = Vec::new();
    for name in applied {
        say(format_args!("schema      applied {name}\n"))?;
    }
    for done in collections {
        refused.extend(done.refused.iter().map(|why| format!("collection {}: {why}", done.collection)));
        let table = match &done.attached {
            Attached::Unchanged => "unchanged",
            Attached::Changed => "triggers replaced",
            Attached::Stale(how) => how,
            Attached::Schemas { .. } => "in other schemas",
        };
        let index = match &done.index.done {
            Done::Created => "created".to_owned(),
            Done::Existing => "unchanged".to_owned(),
            Done::PutBack(aliases) => format!("alias {} put back", aliases.join(", ")),
        };
        say(format_args!("{:<11} table {table}; alias {} -> index {} {index}\n", done.collection, done.alias, done.index.target.index()))?;
        if let Some(alias) = &done.shown.added {
            say(format_args!("{:<11} found under the search alias {alias}\n", ""))?;
        }
        for (alias, index) in &done.shown.removed {
            say(format_args!("{:<11} search alias {alias} taken off index {index}\n", ""))?;
        }
        if done.collection == CANARY {
            continue;
        }
        if !done.added.is_empty() {
            say(format_args!("{:<11} added to the mapping: {}\n", "", done.added.join(", ")))?;
            say(format_args!("{:<11} once the view returns them: catchword reindex {} --all --rewrite\n", "", done.collection))?;
        }
        for setting in &done.settings {
            say(format_args!("{:<11} {setting}\n", ""))?;
        }
        if let Some(due) = done.due.filter(|_| !matches!(done.attached, Attached::Stale(_))) {
            say(format_args!("{:<11} {due}\n", ""))?;
        }
        for (says, fix) in done.doubts.sentences() {
            say(format_args!("{:<11} warning: {says}; {fix}\n", ""))?;
        }
        for lost in &done.lost {
            say(format_args!("{:<11} warning: {}; {}\n", "", lost.says, lost.fix))?;
        }
        if let Attached::Schemas { added, gone } = &done.attached {
            for (schemas, what) in [(added, "taken in"), (gone, "let go")] {
                if !schemas.is_empty() {
                    say(format_args!("{:<11} {what}: {}; a worker's audit follows with the documents\n", "", schemas.join(", ")))?;
                }
            }
        }
        if matches!(done.attached, Attached::Stale(_)) || done.index.done == Done::Created {
            say(format_args!("{:<11} rows that were there before are not indexed yet: catchword reindex {} --all\n", "", done.collection))?;
        }
        if matches!(&done.attached, Attached::Stale(how) if how == "repaired") && done.index.done != Done::Created {
            say(format_args!(
                "{:<11} rows that were deleted without the triggers are still found: catchword reindex {} --ids KEY --hidden\n",
                "", done.collection
            ))?;
        }
    }
    refused.iter().for_each(|why| eprintln!("catchword: {}", printable(why)));
    match refused.len() {
        0 => Ok(()),
        n => Err(anyhow::anyhow!(
            "{} not attached, and all else is; correct that, then run catchword migrate again",
            if n == 1 { "1 schema is".into() } else { format!("{n} schemas are") }
        )),
    }
}

/// The migrations are applied in a transaction that is undone, so that the statements can be asked for.
async fn dry_run(catchword: &Catchword) -> anyhow::Result<End> {
    catchword.context.reach_postgres().await?;
    let mut transaction = database::begin(&catchword.context.pool).await?;
    collection::refuse_standby(&mut transaction).await?;
    migrate::refuse_encoding(&mut transaction).await?;
    let pending = migrate::pending(&mut transaction).await?;
    migrate::apply_for_a_look(&mut transaction, &pending).await?;
    for (name, sql) in &pending {
        say(format_args!("-- migration {name}\n{}\n\n", sql.trim_end()))?;
    }
    for config in catchword.config().served() {
        say(format_args!("-- collection {}, table {}\n", config.name, config.table))?;
        for statement in collection::attach_statements(&mut transaction, config).await? {
            say(format_args!("{statement};\n\n"))?;
        }
        let plan = index_plan(&catchword.context, config, uuid::Uuid::nil())?;
        say(format_args!("-- PUT /{}\n", plan.target().index()))?;
        for line in serde_json::to_string_pretty(&plan.create_request()?)?.lines() {
            say(format_args!("--   {line}\n"))?;
        }
    }
    let installation = collection::installation(&mut transaction).await?;
    transaction.rollback().await?;
    eprintln!("nothing was changed; triggers that are in place already are replaced only if they differ");
    // whether it takes the mapping is known when the index is made, which comes before any table is attached
    if let Err(error) = migrate::check_indices(&catchword.context, installation).await {
        eprintln!("catchword migrate would fail: {error}");
        return Ok(End::Not);
    }
    Ok(End::Done)
}
