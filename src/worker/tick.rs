//! The beginning of a tick: one question, however many collections there are, that also is the worker's heartbeat.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use sqlx::Row;
use sqlx::types::Json;
use uuid::Uuid;

use crate::collection::{self, Found};
use crate::context::{Context, load_collections};
use crate::database::{Kept, Question};
use crate::host::host;
use crate::sync::log_switched;
use crate::{Error, drift, rebuild};

/// What a worker shows of itself, for `status` and the alarms.
#[derive(Clone, Debug)]
pub(super) struct Sign {
    pub id: Uuid,
    pub collections: Vec<String>,
    /// What keeps collections from being worked on.
    pub troubles: Value,
    pub breaker: String,
    /// A pass has succeeded since the last sign.
    pub passed: bool,
    /// What the last tick failed of.
    pub trouble: Option<String>,
    /// Why it cannot keep the quick lane.
    pub lane: Option<String>,
    /// Collections of which jobs moved since the last sign.
    pub moved: Vec<String>,
    /// Collections of which jobs were claimed since the last sign and none moved, and why.
    pub stood: Value,
}

/// What a tick found.
pub(super) struct Ticked {
    /// Some collection may have jobs that are due; false: none has, and that was the pass.
    pub due: bool,
    /// Collections with due jobs of which none has moved for a while.
    pub standing_still: BTreeMap<String, Standstill>,
}

/// For how long nothing has moved, and why if somebody knows.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Standstill {
    pub seconds: f64,
    pub why: Option<String>,
}

/// Begins a tick: notes which server this is, reads the collections again, tends rebuilds and looks for drift, and sends a heartbeat.
pub(super) async fn begin_tick(context: &Context, kept: &Kept, sign: &Sign) -> Result<Ticked, Error> {
    let question = || collection::bind(sign.bind(sqlx::query(include_str!("tick.sql"))), context.config.served());
    let rows = kept.ask(&context.pool, question).await?;
    let first = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    if first.try_get("standby")? {
        kept.close().await;
        return Err(collection::standby());
    }
    if first.try_get("switched")? {
        log_switched();
    }
    let found = Found::read(&rows, context.config.served(), &context.prefix)?;
    let rebuilding = found.rebuilding;
    for (name, broken) in &found.broken {
        sqlx::query(include_str!("note_broken.sql")).bind(name).bind(broken).execute(&context.pool).await?;
    }
    note_partitions(context, &found.repartitioned).await;
    load_collections(context, found).await;
    for name in first.try_get::<Vec<String>, _>("quiet")? {
        context.health.is_quiet(&name);
    }
    if rebuilding {
        rebuild::tend_rebuilds(context).await?;
    }
    drift::note_drift(context).await;
    match first.try_get("brought_back")? {
        0_i64 => {}
        jobs => tracing::warn!(jobs, "{jobs} jobs were dated in the future, because Postgres' clock was ahead; they are due now"),
    }
    let standing_still = first.try_get::<Option<Json<_>>, _>("standing_still")?.map(|Json(still)| still).unwrap_or_default();
    Ok(Ticked { due: !first.try_get::<Vec<String>, _>("due")?.is_empty(), standing_still })
}

/// New partitions get their triggers, and an audit looks for rows that came or went with one. One that is busy is met again at the next
/// tick; nothing else waits for it.
async fn note_partitions(context: &Context, collections: &[String]) {
    for name in collections {
        let noted = sqlx::query_scalar(include_str!("note_partitions.sql")).bind(name).fetch_one(&context.pool).await;
        match noted {
            Ok(Some::<String>(what)) => tracing::info!(collection = name, "partitions of {name}: {what}"),
            Ok(None) => tracing::info!(collection = name, "partitions of {name} changed and are busy; the next tick looks again"),
            Err(error) => tracing::warn!(collection = name, "partitions of {name} could not be looked at: {error}"),
        }
    }
}

/// A sign of life and nothing else.
pub(super) async fn renew(context: &Context, kept: &Kept, sign: &Sign) -> Result<(), Error> {
    kept.ask(&context.pool, || sign.bind(sqlx::query(include_str!("renew_worker.sql")))).await?;
    Ok(())
}

impl Sign {
    /// Does it say the same of how the worker is? What happened since the last one is left out.
    pub fn is_as(&self, other: &Sign) -> bool {
        let how =
            |sign: &Sign| (sign.collections.clone(), sign.troubles.clone(), sign.breaker.clone(), sign.trouble.clone(), sign.lane.clone());
        how(self) == how(other)
    }

    fn bind(&self, question: Question) -> Question {
        question
            .bind(self.id)
            .bind(host())
            .bind(env!("CARGO_PKG_VERSION"))
            .bind(self.collections.clone())
            .bind(self.troubles.clone())
            .bind(self.breaker.clone())
            .bind(self.passed)
            .bind(self.trouble.clone())
            .bind(self.lane.clone())
            .bind(self.moved.clone())
            .bind(self.stood.clone())
    }
}
