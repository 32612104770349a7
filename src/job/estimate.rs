//! About how many jobs there are, where there are too many to be counted.

use serde_json::Value;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};

use crate::Error;

/// Pages of a sample: some 10,000 jobs, and an error of seven percent or so. Of a table of no more than this it is no sample but all.
const PAGES: f64 = 200.0;

/// About so many.
pub(super) struct Estimate {
    pub jobs: i64,
    pub waiting: i64,
}

#[derive(FromRow)]
struct Statistics {
    pages: i64,
    fresh: bool,
}

#[derive(FromRow)]
struct Sample {
    jobs: i64,
    waiting: i64,
}

/// Of the queue.
pub(super) async fn estimate_jobs(connection: &mut PgConnection, collection: &str) -> Result<Estimate, Error> {
    let statistics = statistics(connection, "catchword.job").await?;
    if !statistics.fresh {
        return sample(connection, include_str!("sample_jobs.sql"), collection, &statistics).await;
    }
    let jobs = planned(connection, include_str!("estimate_jobs.sql"), collection).await?;
    let waiting = planned(connection, include_str!("estimate_waiting.sql"), collection).await?;
    Ok(Estimate { jobs, waiting })
}

/// Of the dead letters.
pub(super) async fn estimate_dead(connection: &mut PgConnection, collection: &str) -> Result<i64, Error> {
    let statistics = statistics(connection, "catchword.dead_job").await?;
    if !statistics.fresh {
        return Ok(sample(connection, include_str!("sample_dead.sql"), collection, &statistics).await?.jobs);
    }
    planned(connection, include_str!("estimate_dead.sql"), collection).await
}

async fn statistics(connection: &mut PgConnection, table: &str) -> Result<Statistics, Error> {
    Ok(sqlx::query_as(include_str!("statistics.sql")).bind(table).fetch_one(connection).await?)
}

/// How many rows the planner expects.
async fn planned(connection: &mut PgConnection, explain: &'static str, collection: &str) -> Result<i64, Error> {
    let Json(plan): Json<Value> = sqlx::query_scalar(explain).bind(collection).fetch_one(connection).await?;
    Ok(plan[0]["Plan"]["Plan Rows"].as_f64().unwrap_or(0.0) as i64)
}

async fn sample(connection: &mut PgConnection, sql: &'static str, collection: &str, statistics: &Statistics) -> Result<Estimate, Error> {
    let percent = percent(statistics.pages);
    let sample: Sample = sqlx::query_as(sql).bind(collection).bind(percent).fetch_one(connection).await?;
    let all = |n: i64| (n as f64 * 100.0 / f64::from(percent)) as i64;
    Ok(Estimate { jobs: all(sample.jobs), waiting: all(sample.waiting) })
}

fn percent(pages: i64) -> f32 {
    (100.0 * PAGES / (pages as f64).max(PAGES)) as f32
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_sample_is_of_some_pages_and_a_small_table_is_read_whole() {
        for (pages, share) in [(0, 100.0), (1, 100.0), (200, 100.0), (400, 50.0), (100_000, 0.2)] {
            assert_eq!(percent(pages), share, "{pages}");
        }
    }
}
