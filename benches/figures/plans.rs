//! Figure 14: the first claims after a million jobs came into an empty, analyzed queue; a claim beside millions of another collection.

use sqlx::postgres::PgPoolOptions;

use crate::dead_tuples::claims;
use crate::long_queue::{fill, number_rows};
use crate::report::{Goal, Report};
use crate::stats::{grouped, median, ms};
use crate::world::{Bench, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    number_rows(&world).await?;
    let jobs = bench.scale.pick(1_000_000, 100_000, 500);
    let paused = bench.scale.pick(5_000_000, 200_000, 1_000);
    let (mut fresh, mut settled, mut beside) = (vec![], vec![], vec![]);
    for _ in 0..bench.scale.pick(3, 2, 1) {
        world.sql("truncate catchword.job").await?;
        world.sql("vacuum (analyze) catchword.job").await?;
        world.sql("alter table catchword.job set (autovacuum_enabled = off)").await?;
        fill(&world, jobs, 1000).await?;
        fresh.push(first_claims(&world).await?);
        world.sql("vacuum (analyze) catchword.job").await?;
        settled.push(median(&claims(&world.pool, 8).await?));
    }
    world
        .sql(&format!(
            "insert into catchword.job (collection, key, enqueued_at, priority, tag)
             select 'another', n::text, now() + n * interval '1 microsecond', 1000, 'bench' from generate_series(1, {paused}) n"
        ))
        .await?;
    for _ in 0..3 {
        beside.push(first_claims(&world).await?);
    }
    let mut report = Report::default();
    let clean = median(&settled);
    let limit = format!("{} in a settled queue", ms(clean));
    let what = format!("first claims on fresh connections after {} jobs came into an empty queue", grouped(jobs as f64));
    report.line(what, ms(median(&fresh)), &limit, median(&fresh) / clean, Goal::AtMost(2.0));
    let what = format!("the same beside {} jobs of a paused collection", grouped(f64::from(paused)));
    report.line(what, ms(median(&beside)), &limit, median(&beside) / clean, Goal::AtMost(2.0));
    world.close().await?;
    Ok(report)
}

/// The slowest of the first claims on a connection that has never claimed; the very first also parses, and is the pool's own.
async fn first_claims(world: &World) -> anyhow::Result<f64> {
    let mut slowest = vec![];
    for _ in 0..3 {
        let pool = PgPoolOptions::new().max_connections(1).connect(&world.database_url).await?;
        slowest.push(median(&claims(&pool, 5).await?));
        pool.close().await;
    }
    Ok(median(&slowest))
}
