//! The index that nobody needs any more leaves the list of targets, and then goes.

use super::{Rebuild, Run, Stage, row};
use crate::elastic::Target;
use crate::{Error, collection, crash};

impl Run<'_> {
    /// Drops the index that was kept.
    pub(super) async fn drop_kept(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let kept = Target::new(rebuild.kept_index());
        self.check_unread(rebuild, &kept).await?;
        if rebuild.stage == Stage::Keep {
            self.step(rebuild, Stage::Drop).await?;
        }
        self.elastic().drop_index(kept.index()).await?;
        crash::point("rebuild-dropped");
        self.step(&Rebuild { stage: Stage::Drop, ..rebuild.clone() }, Stage::Done).await
    }

    /// Undoes what is not swapped in. Jobs of the filling that are still open are looked at like any others, and settle.
    pub(super) async fn abort(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let new = rebuild.new_target();
        match rebuild.stage {
            Stage::Abort => {}
            Stage::Create | Stage::Fill | Stage::Drain | Stage::Verify | Stage::Swap => {
                self.check_unread(rebuild, &new).await?;
                self.set_free(rebuild.id, &rebuild.old_target()).await?;
                self.step(rebuild, Stage::Abort).await?;
                if rebuild.stage == Stage::Create {
                    self.await_creation(rebuild).await;
                }
            }
            stage => return Err(stage.cannot("be undone", &rebuild.collection)),
        }
        self.elastic().drop_index(new.index()).await?;
        crash::point("rebuild-dropped");
        row::step(self.pool(), rebuild.id, Stage::Abort, Stage::Aborted, self.who).await?;
        Ok(())
    }

    /// Whoever was killed may have asked for the index a moment ago: Elasticsearch would make it behind the drop. It makes indices in
    /// turn, so one that is asked for once more, and is there, is not made later. If it is refused, the other was refused too.
    async fn await_creation(&self, rebuild: &Rebuild) {
        let created = match self.index_plan(rebuild).await {
            Ok(plan) => self.elastic().create_beside(&plan, &rebuild.new_target(), rebuild.id).await.map_err(Error::from),
            Err(error) => Err(error),
        };
        if let Err(error) = created {
            tracing::debug!("the index to be dropped could not be made: {error}");
        }
    }

    /// What readers see is never dropped, and nothing that is another's.
    async fn check_unread(&self, rebuild: &Rebuild, index: &Target) -> Result<(), Error> {
        let installation = collection::installation(&mut *self.pool().acquire().await?).await?;
        Ok(self.elastic().may_be_dropped(index, &self.alias(rebuild)?, installation).await?)
    }
}
