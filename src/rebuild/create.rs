//! The new index, beside the one that readers see.

use super::{Rebuild, Run, Stage, row};
use crate::context::index_plan;
use crate::elastic::{self, Answer, IndexPlan};
use crate::{Error, collection, crash};

impl Run<'_> {
    /// Creates it, and makes it a target. From then on every job and every direct write goes to both.
    pub(super) async fn create(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let plan = self.index_plan(rebuild).await?;
        match self.elastic().create_beside(&plan, &rebuild.new_target(), rebuild.id).await {
            Ok(()) => {}
            // a mapping that is refused changes nothing; any other answer leaves open whether the index is there
            Err(error @ elastic::Error::Request { answer: Answer::Refused(_), .. }) => {
                row::forget(self.pool(), rebuild.id).await?;
                return Err(Error::refused_with(error.to_string(), "nothing was changed, correct the mapping and repeat this"));
            }
            Err(error) => return Err(error.into()),
        }
        crash::point("rebuild-created");
        self.step(rebuild, Stage::Fill).await
    }

    /// The index as the file of settings and mappings said when the rebuild began.
    pub(super) async fn index_plan(&self, rebuild: &Rebuild) -> Result<IndexPlan, Error> {
        let context = self.context;
        let config = context.config.collection(Some(&rebuild.collection))?;
        let installation = collection::installation(&mut *context.pool.acquire().await?).await?;
        Ok(IndexPlan { mapping: rebuild.mapping.clone(), ..index_plan(self.context, config, installation)? })
    }
}
