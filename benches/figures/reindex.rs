//! Figure 8: `reindex --all` of many rows, and what live writes feel of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sqlx::PgPool;

use crate::report::{Goal, Report};
use crate::seed::Size;
use crate::stats::{grouped, median, ms, percentile};
use crate::world::{Bench, Layout, World};

/// Keys in a chunk, as the command takes them.
const CHUNK: i32 = 10_000;

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let rows = bench.scale.pick(1_000_000, 50_000, 300);
    let world = bench.world(Layout { size: Size::Small, rows, worker: "" }).await?;
    let (mut rates, mut longest, mut alone, mut beside) = (vec![], 0.0_f64, vec![], vec![]);
    for round in 0..=bench.scale.pick(3, 2, 1) {
        world.sql("truncate catchword.job").await?;
        let quiet = writes(&world.pool, bench.scale.pick(5.0, 1.0, 0.05), Arc::default()).await?;
        let stop = Arc::new(AtomicBool::new(false));
        let writer = tokio::spawn({
            let (pool, stop) = (world.pool.clone(), stop.clone());
            async move { writes(&pool, 600.0, stop).await }
        });
        let (scheduled, took, slowest) = schedule(&world).await?;
        stop.store(true, Ordering::Relaxed);
        let busy = writer.await??;
        if round > 0 {
            rates.push(scheduled as f64 / took.as_secs_f64());
            longest = longest.max(slowest.as_secs_f64());
            alone.push(percentile(&quiet, 0.99));
            beside.push(percentile(&busy, 0.99));
        }
    }
    let mut report = Report::default();
    let n = grouped(rows as f64);
    let rate = median(&rates);
    report.line(format!("`reindex --all` of {n} rows, jobs per second"), grouped(rate), "100,000", rate / 1e5, Goal::AtLeast(1.0));
    report.line("its longest transaction, seconds", format!("{longest:.2} s"), "5 s", longest, Goal::AtMost(5.0));
    let ratio = median(&beside.iter().zip(&alone).map(|(a, b)| a / b).collect::<Vec<_>>());
    report.line("live writes beside it, p99", ms(median(&beside)), format!("{} alone", ms(median(&alone))), ratio, Goal::AtMost(1.5));
    world.close().await?;
    Ok(report)
}

/// Chunk by chunk, each its own transaction, as the command does it: how many, how long, the longest chunk.
async fn schedule(world: &World) -> anyhow::Result<(i64, Duration, Duration)> {
    let begun = Instant::now();
    let id: i64 = world.one("select catchword.reindex_start('annotation')").await?;
    let (mut total, mut slowest) = (0, Duration::ZERO);
    loop {
        let chunk = Instant::now();
        let scheduled: i64 = world.one(&format!("select catchword.reindex_chunk({id}, {CHUNK})")).await?;
        slowest = slowest.max(chunk.elapsed());
        total += scheduled;
        if scheduled < i64::from(CHUNK) {
            return Ok((total, begun.elapsed(), slowest));
        }
    }
}

/// An application that writes a row every 5 ms: how long each write took.
async fn writes(pool: &PgPool, seconds: f64, stop: Arc<AtomicBool>) -> anyhow::Result<Vec<Duration>> {
    let (started, mut took) = (Instant::now(), vec![]);
    let mut clock = tokio::time::interval(Duration::from_millis(5));
    while started.elapsed().as_secs_f64() < seconds && !stop.load(Ordering::Relaxed) {
        clock.tick().await;
        let begun = Instant::now();
        sqlx::query(
            "insert into annotation (userid, text, target_uri, target_uri_normalized) values ('acct:mina@example.org', 'live', 'u', 'u')",
        )
        .execute(pool)
        .await?;
        took.push(begun.elapsed());
    }
    Ok(took)
}
