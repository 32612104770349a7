//! Figure 15: two and four workers against one.

use std::time::Instant;

use catchword::Catchword;

use crate::report::{Goal, Report};
use crate::stats::{grouped, median};
use crate::world::{Bench, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    let counts = [1, 2, 4];
    let (mut rates, mut shares) = (vec![vec![]; 3], vec![vec![]; 3]);
    for round in 0..=bench.scale.pick(2, 1, 1) {
        for (n, workers) in counts.into_iter().enumerate() {
            world.empty_index().await?;
            let jobs = world.schedule_all().await?;
            let (seconds, share) = drain(&world, workers).await?;
            if round > 0 {
                rates[n].push(jobs as f64 / seconds);
                shares[n].push(share);
            }
        }
    }
    let mut report = Report::default();
    let one = median(&rates[0]);
    for n in [1, 2] {
        let ratio = median(&rates[n].iter().zip(&rates[0]).map(|(many, one)| many / one).collect::<Vec<_>>());
        let (many, limit) = (format!("{} jobs/s", grouped(median(&rates[n]))), format!("{} jobs/s with one", grouped(one)));
        report.line(format!("{} workers", counts[n]), many, limit, ratio, Goal::AtLeast(1.0));
    }
    for (n, workers) in counts.into_iter().enumerate() {
        let share = median(&shares[n]) * 100.0;
        report.line(
            format!("share of the claims in the time of {workers} workers, %"),
            format!("{share:.1} %"),
            "10 %",
            share,
            Goal::AtMost(10.0),
        );
    }
    world.close().await?;
    Ok(report)
}

/// So many workers at once, each with a pool and breakers of its own: seconds until nothing is left, and the claims' share.
async fn drain(world: &World, workers: usize) -> anyhow::Result<(f64, f64)> {
    let mut all = vec![];
    for _ in 0..workers {
        all.push(Catchword::connect(world.catchword.config().clone(), &world.environment).await?);
    }
    let begun = Instant::now();
    let running: Vec<_> = all.iter().cloned().map(|catchword| tokio::spawn(async move { catchword.drain("bench", &[]).await })).collect();
    let (mut claiming, mut working) = (0.0, 0.0);
    for one in running {
        let outcome = one.await??;
        claiming += outcome.claiming.as_secs_f64();
        working += outcome.took.as_secs_f64() * world.catchword.config().worker.in_flight as f64;
    }
    // a worker that found everything locked has gone home; what it left is the others', and at the end nobody's
    world.drain().await?;
    let seconds = begun.elapsed().as_secs_f64();
    for catchword in all {
        catchword.pool().close().await;
    }
    Ok((seconds, claiming / working))
}
