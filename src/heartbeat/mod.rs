//! A worker as it last showed itself, for `status`, `check` and the metrics.

use serde::Serialize;
use serde_json::Value;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::Error;

/// A worker that was not seen for this long is gone, or frozen: well above the time in which it shows itself, and told within two minutes.
pub(crate) const ABSENT_SECONDS: f64 = 115.0;

/// A tick saw due jobs, and nothing of them has moved for this long: work does not move. It was due for a tick before that, so that this is
/// told within two minutes. A batch that is slow and succeeds is through by then.
pub(crate) const STILL_SECONDS: f64 = 60.0;

/// A worker as it last showed itself.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct WorkerRow {
    pub id: Uuid,
    pub host: String,
    pub version: String,
    pub collections: Vec<String>,
    pub blocked: Value,
    pub breaker: String,
    /// What its last tick failed of.
    pub trouble: Option<String>,
    /// Why it cannot keep the quick lane. Meanwhile writes wait for its tick.
    pub lane: Option<String>,
    pub seen_seconds_ago: f64,
    /// Since its last successful pass, or since its start if there was none.
    pub passed_seconds_ago: f64,
}

impl WorkerRow {
    /// Has it shown itself lately?
    pub fn is_alive(&self) -> bool {
        self.seen_seconds_ago < ABSENT_SECONDS
    }

    /// Takes off what is about other collections than these. What its last tick failed of may name any.
    pub(crate) fn only(&mut self, seen: &[String]) {
        if self.collections.iter().any(|name| !seen.contains(name)) {
            self.trouble = self.trouble.take().map(|_| "its last tick failed".into());
        }
        self.collections.retain(|name| seen.contains(name));
        if let Some(blocked) = self.blocked.as_object_mut() {
            blocked.retain(|name, _| seen.contains(name));
        }
    }
}

/// The workers seen in the last day, the newest first.
pub async fn workers(connection: &mut PgConnection) -> Result<Vec<WorkerRow>, Error> {
    Ok(sqlx::query_as(include_str!("workers.sql")).fetch_all(connection).await?)
}
