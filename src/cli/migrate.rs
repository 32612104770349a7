//! `catchword migrate`

use super::End;
use super::args::{Args, Migrate};
use crate::collection::{self, Attached};
use crate::elastic::Done;
use crate::{Catchword, database, migrate};

pub(super) async fn run(args: &Args, options: &Migrate) -> anyhow::Result<End> {
    let catchword = args.open()?;
    if options.dry_run {
        dry_run(&catchword).await?
    } else {
        real_run(&catchword).await?
    }
    Ok(End::Done)
}

async fn real_run(catchword: &Catchword) -> anyhow::Result<()> {
    let (applied, collections) = catchword.migrate().await?;
    for name in applied {
        println!("schema      applied {name}");
    }
    for done in collections {
        let table = match &done.attached {
            Attached::Unchanged => "unchanged",
            Attached::Changed => "triggers replaced",
            Attached::Stale(how) => how,
        };
        let index = match &done.index.done {
            Done::Created => "created".to_owned(),
            Done::Existing => "unchanged".to_owned(),
            Done::PutBack(aliases) => format!("alias {} put back", aliases.join(", ")),
        };
        println!(
            "{:<11} table {table}; alias {} -> index {} {index}",
            done.collection,
            done.alias,
            done.index.target.index()
        );
        if matches!(done.attached, Attached::Stale(_)) || done.index.done == Done::Created {
            println!(
                "{:<11} rows that were there before are not indexed yet: catchword reindex {} --all",
                "", done.collection
            );
        }
    }
    Ok(())
}

/// The migrations are applied in a transaction that is undone, so that the statements can be asked for.
async fn dry_run(catchword: &Catchword) -> anyhow::Result<()> {
    let mut transaction = database::begin(catchword.pool()).await?;
    collection::refuse_standby(&mut transaction).await?;
    let pending = migrate::pending(&mut transaction).await?;
    migrate::apply_for_a_look(&mut transaction, &pending).await?;
    for (name, sql) in &pending {
        println!("-- migration {name}\n{}\n", sql.trim_end());
    }
    for config in &catchword.config().collections {
        println!("-- collection {}, table {}", config.name, config.table);
        for statement in collection::attach_statements(&mut transaction, config).await? {
            println!("{statement};\n");
        }
        let plan = catchword.index_plan(config, uuid::Uuid::nil())?;
        println!("-- PUT /{}", plan.target().index());
        for line in serde_json::to_string_pretty(&plan.create_request()?)?.lines() {
            println!("--   {line}");
        }
    }
    transaction.rollback().await?;
    eprintln!("nothing was changed; triggers that are in place already are replaced only if they differ");
    Ok(())
}
