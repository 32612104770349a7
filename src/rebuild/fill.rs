//! Every key is scheduled, at bulk priority: the new index is told everything that the old one was told.

use sqlx::Row;

use super::{Rebuild, Run, Stage};
use crate::{Error, collection, reindex};

impl Run<'_> {
    /// Schedules every key, the hidden and the deleted too: a late write must meet their tombstones in the new index as in the old one.
    /// What is written from now on brings its own job, which both indices must satisfy.
    pub(super) async fn fill(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let found =
            sqlx::query(include_str!("filling.sql")).bind(&rebuild.collection).bind(rebuild.tag()).fetch_optional(self.pool()).await?;
        let id = match found {
            Some(row) => row.try_get("id")?,
            None => self.start_filling(rebuild).await?,
        };
        let mut connection = self.pool().acquire().await?;
        let left = reindex::remaining(&mut connection, id).await?;
        drop(connection);
        let mut scheduled = 0;
        // one that was finished before schedules nothing more
        loop {
            if self.stop.is_cancelled() {
                return Err(Error::Stopped);
            }
            let (chunk, finished) = reindex::chunk(self.pool(), id, reindex::CHUNK).await?;
            scheduled += chunk.max(0) as u64;
            self.say(rebuild.stage, left.map(|left| (scheduled, left.max(0) as u64)), None);
            if finished {
                break;
            }
        }
        self.step(rebuild, Stage::Drain).await
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
            ..reindex::Request::default()
        };
        reindex::start(self.pool(), &whole).await
    }
}
