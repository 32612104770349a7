//! Schedules the next pieces of reindexes: what a worker, `sync --drain` and a rebuild do.

use std::time::Duration;

use sqlx::{FromRow, PgPool};

use crate::{Error, crash};

/// What a call of [`feed`] came to.
#[derive(Clone, Debug, FromRow)]
pub struct Fed {
    /// The collections that got jobs by the last call.
    #[sqlx(rename = "fed")]
    pub collections: Vec<String>,
    /// How many jobs.
    pub scheduled: i64,
    next_seconds: Option<f64>,
    /// Nothing could be scheduled now only because a rate does not allow it yet.
    pub limited: bool,
}

impl Fed {
    /// When it is worth asking again; none: no reindex is open.
    pub fn next(&self) -> Option<Duration> {
        self.next_seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
    }
}

/// Schedules the next piece of one reindex of these collections, or of a few small ones, in one short transaction. Those that are paused,
/// that have 100,000 jobs open, or that another process has in hand are left out.
pub async fn feed(pool: &PgPool, collections: &[&str]) -> Result<Fed, Error> {
    call(pool, collections, None).await
}

/// Schedules all that there is room for now.
pub async fn feed_all(pool: &PgPool, collections: &[&str]) -> Result<Fed, Error> {
    let mut all = feed(pool, collections).await?;
    let mut last = all.scheduled;
    while last > 0 {
        let fed = feed(pool, collections).await?;
        last = fed.scheduled;
        all = Fed { scheduled: all.scheduled + last, ..fed };
    }
    Ok(all)
}

/// The same as [`feed`], of one reindex alone.
pub async fn feed_one(pool: &PgPool, collection: &str, id: i64) -> Result<Fed, Error> {
    call(pool, &[collection], Some(id)).await
}

async fn call(pool: &PgPool, collections: &[&str], id: Option<i64>) -> Result<Fed, Error> {
    let fed: Fed = sqlx::query_as(include_str!("feed.sql")).bind(collections).bind(id).fetch_one(pool).await?;
    if fed.scheduled > 0 {
        crash::point("chunk-committed");
    }
    Ok(fed)
}
