//! Clears away what has nothing to say any more: old results of audits, old counts, and dead letters whose keys are in step.

use std::time::Duration;

use super::Upkeep;
use crate::collection::Collection;
use crate::elastic::Has;
use crate::sync::compare;
use crate::{Error, database, job};

/// Dead letters that are looked at in one go; another time others.
const LETTERS: i64 = 500;
/// The limit of one look.
const LIMIT: Duration = Duration::from_secs(10);

impl Upkeep {
    /// Once an hour.
    pub(super) async fn clear_away(&self) -> Result<(), Error> {
        let pool = &self.catchword.inner.pool;
        sqlx::query("select catchword.clear_audits()").execute(pool).await?;
        sqlx::query(include_str!("clear_freshness.sql")).execute(pool).await?;
        for collection in self.workable().await {
            self.clear_letters(&collection).await?;
        }
        Ok(())
    }

    /// A dead letter goes only when a look at every index sees its key in step. One whose key cannot be one stays: only a person can say
    /// who scheduled it.
    async fn clear_letters(&self, collection: &Collection) -> Result<(), Error> {
        let inner = &self.catchword.inner;
        let age = inner.config.worker.sweep_after;
        let mut connection = inner.pool.acquire().await?;
        let old = job::old_letters(&mut connection, &collection.name, age, LETTERS).await?;
        drop(connection);
        let keys: Vec<&str> = old.iter().map(String::as_str).filter(|key| collection.key_type.fault(key).is_none()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let mut seen: Vec<Vec<Has>> = Vec::new();
        for target in &collection.targets {
            // an index that does not answer says nothing: another time
            let Ok(has) = inner.elastic.look(target, &keys, LIMIT).await else { return Ok(()) };
            seen.push(has);
        }
        let mut transaction = database::begin(&inner.pool).await?;
        let (wants, _) = collection.wants(&mut transaction, &keys).await?;
        let in_step = |n: usize, key: &str| {
            let agrees =
                |has: &Vec<Has>| matches!((wants.get(key), has.get(n)), (Some(want), Some(has)) if compare(*want, has).is_satisfied());
            !seen.is_empty() && seen.iter().all(agrees)
        };
        let settled: Vec<&str> = keys.iter().enumerate().filter(|(n, key)| in_step(*n, key)).map(|(_, key)| *key).collect();
        job::clear_letters(&mut transaction, &collection.name, &settled, age).await?;
        transaction.commit().await?;
        Ok(())
    }
}
