//! Clears away what has nothing to say any more: old results of audits, old counts, and dead letters whose keys are in step.

use super::Upkeep;
use crate::collection::Collection;
use crate::look::{self, AtElasticsearch};
use crate::{Error, database, job};

/// Dead letters that are looked at in one go; another time others.
const LETTERS: i64 = 500;

impl Upkeep {
    /// Once an hour.
    pub(super) async fn clear_away(&self) -> Result<(), Error> {
        let pool = &self.context.pool;
        sqlx::query("select catchword.clear_audits()").execute(pool).await?;
        sqlx::query(include_str!("clear_freshness.sql")).execute(pool).await?;
        sqlx::query(include_str!("clear_history.sql")).execute(pool).await?;
        for collection in self.workable().await {
            self.clear_letters(&collection).await?;
        }
        Ok(())
    }

    /// A dead letter goes only when a look at every index sees its key in step. One whose key cannot be one stays: only a person can say
    /// who scheduled it.
    async fn clear_letters(&self, collection: &Collection) -> Result<(), Error> {
        let context = &self.context;
        let age = context.config.worker.sweep_after;
        let mut connection = context.pool.acquire().await?;
        let old = job::old_letters(&mut connection, &collection.name, age, LETTERS).await?;
        drop(connection);
        let keys: Vec<&str> = old.iter().map(String::as_str).filter(|key| collection.key_type.fault(key).is_none()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let mut look = AtElasticsearch::of(collection, &context.pool, &keys).await?;
        for target in &collection.targets {
            // an index that does not answer says nothing: another time
            if look.ask(&context.elastic, target, look::LIMIT).await.is_err() {
                return Ok(());
            }
        }
        let mut transaction = database::begin(&context.pool).await?;
        let seen = look.then_postgres(collection, &mut transaction).await?;
        let settled: Vec<&str> = seen.keys.iter().enumerate().filter(|(n, _)| seen.agrees(*n)).map(|(_, key)| *key).collect();
        job::clear_letters(&mut transaction, &collection.name, &settled, age).await?;
        transaction.commit().await?;
        Ok(())
    }
}
