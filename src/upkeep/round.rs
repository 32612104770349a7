//! What a round has to know, in one question, however many collections there are.

use std::sync::Arc;

use serde::Deserialize;
use sqlx::Row;
use sqlx::types::Json;

use super::Upkeep;
use super::sentinel::Remembered;
use crate::Error;
use crate::collection::Collection;

/// What is to be done.
pub(super) struct Due {
    /// What the indices acknowledged before.
    pub sentinels: Vec<Remembered>,
    /// Collections that have tombstones that are old enough.
    pub sweepable: Vec<String>,
    /// Audits that somebody should run.
    pub audits: Vec<Asked>,
}

/// An audit that was asked for, and why.
#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    pub id: i64,
    pub reason: String,
}

impl Upkeep {
    /// Asks what is to be done for the collections that can be worked on.
    pub(super) async fn due(&self, workable: &[Arc<Collection>]) -> Result<Due, Error> {
        let worker = &self.context.config.worker;
        let targets = || workable.iter().flat_map(|collection| collection.targets.iter().map(|target| (&collection.name, target.index())));
        // one audit at a time, so none is looked for while one runs
        let audited = || if self.is_auditing() { Vec::new() } else { self.names.clone() };
        let question = || {
            sqlx::query(include_str!("round.sql"))
                .bind(targets().map(|(name, _)| name.clone()).collect::<Vec<_>>())
                .bind(targets().map(|(_, index)| index.to_owned()).collect::<Vec<_>>())
                .bind(workable.iter().map(|collection| collection.name.clone()).collect::<Vec<_>>())
                .bind(worker.sweep_after.as_secs_f64())
                .bind(audited())
                .bind(worker.audit.map(|period| period.as_secs_f64()))
        };
        let rows = self.kept.ask(&self.context.pool, question).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let Json(sentinels) = row.try_get("sentinels")?;
        let Json(audits) = row.try_get("audits")?;
        Ok(Due { sentinels, sweepable: row.try_get("sweepable")?, audits })
    }
}
