//! What readers find and the new index does not have, at the moment when the alias is to move.
//!
//! The new index is written first, but a write that it does not answer in time is left to the loop, and readers get theirs. Its job is
//! open until both agree. So what the new index lacks is among the keys of open jobs.

use std::time::Duration;

use super::{Rebuild, Run};
use crate::elastic::{Answer, Has, Target};
use crate::{Error, collection, job, look, sync};

/// So many open jobs are looked at: some tenths of a second, in which readers see nothing new.
const MOST: i64 = 20_000;
/// Keys looked at together.
const PAGE: usize = 2_500;
/// So often the alias is tried before the command gives up; a worker tries again at its next tick.
const ATTEMPTS: u32 = 20;

impl Run<'_> {
    /// Keys of which readers could find more than the other index has: a document that it lacks, a newer one, or a delete.
    pub(super) async fn lacks(&self, rebuild: &Rebuild, from: &Target, to: &Target) -> Result<Vec<String>, Error> {
        let context = self.context;
        let config = context.config.collection(Some(&rebuild.collection))?;
        let mut connection = context.pool.acquire().await?;
        let collection = collection::load(&mut connection, config, &context.prefix).await?;
        let mut open = job::open_keys(&mut connection, &rebuild.collection, MOST).await?;
        drop(connection);
        open.retain(|key| collection.key_type.fault(key).is_none() && collection::no_id(key).is_none());
        open.sort_unstable();
        open.dedup();
        let mut lacking = Vec::new();
        for page in open.chunks(PAGE) {
            let keys: Vec<&str> = page.iter().map(String::as_str).collect();
            let ids = collection.ids(&context.pool, &keys).await?;
            let named: Vec<_> = keys.iter().map(|key| ids.of(key)).collect();
            let named: Vec<&str> = named.iter().map(AsRef::as_ref).collect();
            // in this order: what is written meanwhile is in the new index first
            let shown = self.elastic().look(from, &named, look::LIMIT).await.map_err(|answer| unseen(from, &answer))?;
            let has = self.elastic().look(to, &named, look::LIMIT).await.map_err(|answer| unseen(to, &answer))?;
            let pairs = keys.iter().zip(shown.iter().zip(&has));
            lacking.extend(pairs.filter(|(_, (shown, has))| is_behind(shown, has)).map(|(key, _)| (*key).to_owned()));
        }
        Ok(lacking)
    }

    /// Lets the loop write these keys, or waits a moment for whoever has them.
    pub(super) async fn bring(&self, rebuild: &Rebuild, to: &Target, lacking: &[String], attempt: u32) -> Result<(), Error> {
        let name = &rebuild.collection;
        if attempt == ATTEMPTS {
            return Err(Error::refused_with(
                format!(
                    "the alias is not moved yet: readers find {} documents that {to} does not have, such as {:?}",
                    lacking.len(),
                    lacking[0]
                ),
                format!("look: catchword explain {name} {}; then go on: catchword rebuild {name}", lacking[0]),
            ));
        }
        self.say(rebuild.stage, None, Some(format!("{} documents are not in {to} yet", lacking.len())));
        let keys: Vec<&str> = lacking.iter().map(String::as_str).collect();
        job::schedule_now(&mut *self.pool().acquire().await?, name, &keys).await?;
        let outcome = sync::sync(self.context, "rebuild", &[name]).await?;
        if !outcome.moved() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }
}

fn is_behind(shown: &Has, has: &Has) -> bool {
    match (shown, has) {
        (Has::Present(shown), Has::Present(has)) => shown > has,
        (Has::Present(_), Has::Absent) => true,
        _ => false,
    }
}

fn unseen(target: &Target, answer: &Answer) -> Error {
    Error::refused(format!("index {target} cannot be looked at: {answer}"))
}
