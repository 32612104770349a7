//! Every key is scheduled, at bulk priority: the new index is told everything that the old one was told.

use super::{Rebuild, Run, Stage};
use crate::{Error, collection, reindex};

impl Run<'_> {
    /// Begins to schedule every key, the hidden and the deleted too: a late write must meet their tombstones in the new index as in the old
    /// one. What is written from now on brings its own job, which both indices must satisfy. It is a reindex like any other: while the
    /// queue is worked on, the rest is scheduled.
    pub(super) async fn fill(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let id = match rebuild.reindex {
            Some(id) => id,
            None => self.start_filling(rebuild).await?,
        };
        self.feed(rebuild, id).await?;
        self.step(rebuild, Stage::Drain).await
    }

    /// Schedules what there is room for.
    pub(super) async fn feed(&self, rebuild: &Rebuild, id: i64) -> Result<(), Error> {
        loop {
            if self.stop.is_cancelled() {
                return Err(Error::Stopped);
            }
            let fed = reindex::feed_one(self.pool(), &rebuild.collection, id).await?;
            if fed.scheduled == 0 {
                return Ok(());
            }
        }
    }

    /// Where the view changed since the old index was filled, equal numbers would be two documents: then everything is written again, to
    /// both.
    async fn start_filling(&self, rebuild: &Rebuild) -> Result<i64, Error> {
        let context = self.context;
        let config = context.config.collection(Some(&rebuild.collection))?;
        let mut connection = context.pool.acquire().await?;
        let collection = collection::load(&mut connection, config, &context.prefix).await?;
        let rewrite = collection.view_changed;
        drop(connection);
        let whole = reindex::Request {
            collection: rebuild.collection.clone(),
            hidden: true,
            rewrite,
            tag: Some(rebuild.tag()),
            who: Some(self.who.to_owned()),
            ..reindex::Request::default()
        };
        let expected = reindex::count(self.pool(), &whole).await?;
        reindex::start(self.pool(), &reindex::Request { expected, ..whole }).await
    }
}
