//! What a worker does for rebuilds at each tick: drops an old index whose time is over, and ends what was cut short between two sides.

use tokio_util::sync::CancellationToken;

use super::{Rebuild, Run, Stage, lock, row};
use crate::{Catchword, Error};

impl Catchword {
    /// Drops what is overdue, and finishes a swap, a drop or an undoing that a killed command left half done: readers wait for the first,
    /// and disks for the others. Filling is the command's own. What fails is logged once, and tried again.
    pub(crate) async fn tend_rebuilds(&self) -> Result<(), Error> {
        let names: Vec<&str> = self.inner.config.collections.iter().map(|config| config.name.as_str()).collect();
        let found = row::unfinished(&mut *self.inner.pool.acquire().await?, &names).await?;
        for rebuild in found.iter().filter(|rebuild| is_due(rebuild)) {
            let _lock = match lock::try_take(self, &rebuild.collection).await {
                Ok(Some(lock)) => lock,
                Ok(None) => continue,
                Err(held @ Error::Held(_)) => {
                    self.inner.note_tending(&rebuild.collection, Some(held.to_string()));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let stop = CancellationToken::new();
            let run = Run { catchword: self, who: "worker", watch: &|_| (), stop: &stop };
            let ended = match row::read(&self.inner.pool, rebuild.id).await {
                Ok(now) if is_due(&now) => run.finish(now).await.map(|_| ()),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            self.inner.note_tending(&rebuild.collection, ended.err().map(|error| format!("the rebuild cannot go on: {error}")));
        }
        Ok(())
    }
}

fn is_due(rebuild: &Rebuild) -> bool {
    match rebuild.stage {
        Stage::Swap | Stage::Back | Stage::Drop | Stage::Abort => true,
        Stage::Keep => !rebuild.is_kept(),
        _ => false,
    }
}
