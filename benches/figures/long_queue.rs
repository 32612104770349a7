//! Figure 7: what a job costs when so many are in the queue.

use crate::report::{Goal, Report};
use crate::stats::{grouped, median};
use crate::world::{Bench, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    world.schedule_all().await?;
    world.drain().await?;
    number_rows(&world).await?;
    let lengths: &[i64] = bench.scale.pick(&[10_000, 100_000, 1_000_000, 5_000_000], &[10_000, 50_000, 200_000], &[100, 500]);
    let mut rates = vec![vec![]; lengths.len()];
    for _ in 0..bench.scale.pick(2, 1, 1) {
        for (n, length) in lengths.iter().enumerate() {
            rates[n].push(rate(&world, *length, bench.scale.pick(100_000, 20_000, 100)).await?);
        }
    }
    let rates: Vec<f64> = rates.iter().map(|rates| median(rates)).collect();
    let (most, least) = (rates.iter().copied().fold(0.0, f64::max), rates.iter().copied().fold(f64::INFINITY, f64::min));
    let mut report = Report::default();
    let shown = |length: Option<&i64>| grouped(length.copied().unwrap_or(0) as f64);
    report.line(
        format!("cost per job with {} to {} jobs in the queue", shown(lengths.first()), shown(lengths.last())),
        format!("{:.1} µs at most", 1e6 / least),
        format!("{:.1} µs at least", 1e6 / most),
        most / least,
        Goal::AtMost(1.25),
    );
    report.curve("current documents", lengths.iter().map(|length| *length as f64).zip(rates).collect());
    world.close().await?;
    Ok(report)
}

pub async fn number_rows(world: &World) -> anyhow::Result<()> {
    world
        .sql("create table numbered as select row_number() over (order by id) - 1 as n, id::text as key from annotation; analyze numbered")
        .await
}

/// So many jobs, in the order of the walk, over and over the same rows.
pub async fn fill(world: &World, jobs: i64, priority: i32) -> anyhow::Result<()> {
    let insert = format!(
        "insert into catchword.job (collection, key, enqueued_at, priority, tag)
         select 'annotation', r.key, now() + i * interval '1 microsecond', {priority}, 'bench'
           from generate_series(1, {jobs}) i join numbered r on r.n = i % (select count(*) from numbered)"
    );
    world.sql(&insert).await
}

/// Passes over a queue of this length, until so many jobs were worked: jobs per second.
async fn rate(world: &World, length: i64, least: u64) -> anyhow::Result<f64> {
    let (mut worked, mut seconds) = (0, 0.0);
    while worked < least {
        world.sql("truncate catchword.job").await?;
        fill(world, length, 1000).await?;
        world.sql("vacuum (analyze) catchword.job").await?;
        let outcome = world.catchword.sync("bench", &[]).await?;
        anyhow::ensure!(outcome.settled == outcome.claimed && outcome.claimed > 0, "{outcome}");
        worked += outcome.claimed;
        seconds += outcome.took.as_secs_f64();
    }
    world.sql("truncate catchword.job").await?;
    Ok(worked as f64 / seconds)
}
