//! What a worker does for rebuilds at each tick: drops an old index whose time is over, and ends what was cut short between two sides.

use tokio_util::sync::CancellationToken;

use super::{Rebuild, Run, Stage, lock, row};
use crate::Error;
use crate::context::Context;
use crate::health::Fault;

/// Drops what is overdue, and finishes a swap, a drop or an undoing that a killed command left half done: readers wait for the first,
/// and disks for the others. Filling is the command's own. What fails is logged once, and tried again.
pub(crate) async fn tend_rebuilds(context: &Context) -> Result<(), Error> {
    let names: Vec<&str> = context.config.collections.iter().map(|config| config.name.as_str()).collect();
    let found = row::unfinished(&mut *context.pool.acquire().await?, &names).await?;
    for rebuild in found.iter().filter(|rebuild| is_due(rebuild)) {
        let _lock = match lock::try_take(context, &rebuild.collection).await {
            Ok(Some(lock)) => lock,
            Ok(None) => continue,
            Err(held @ Error::Held(_)) => {
                context.health.faults.note(&rebuild.collection, Fault::RebuildStuck, Some(held.to_string()));
                continue;
            }
            Err(error) => return Err(error),
        };
        let stop = CancellationToken::new();
        let run = Run { context, who: "worker", watch: &|_| (), stop: &stop };
        let ended = match row::read(&context.pool, rebuild.id).await {
            Ok(now) if is_due(&now) => run.finish(now).await.map(|_| ()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        context.health.faults.note(
            &rebuild.collection,
            Fault::RebuildStuck,
            ended.err().map(|error| format!("the rebuild cannot go on: {error}")),
        );
    }
    Ok(())
}

fn is_due(rebuild: &Rebuild) -> bool {
    match rebuild.stage {
        Stage::Swap | Stage::Back | Stage::Drop | Stage::Abort => true,
        Stage::Keep => !rebuild.is_kept(),
        _ => false,
    }
}
