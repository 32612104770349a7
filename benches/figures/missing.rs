//! Figure 1: draining jobs whose documents are missing, against raw `_bulk` of the same bytes.

use crate::cpu::Cpu;
use crate::raw::{bulks, documents};
use crate::report::{Goal, Report};
use crate::stats::{grouped, median};
use crate::world::{Bench, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let rounds = bench.scale.pick(3, 2, 1);
    measure(bench, bench.small().await?, rounds, "0.5 KB", &mut report).await?;
    measure(bench, bench.large().await?, rounds, "10 KB", &mut report).await?;
    Ok(report)
}

async fn measure(bench: &Bench, world: World, rounds: usize, size: &str, report: &mut Report) -> anyhow::Result<()> {
    let docs = documents(&world.pool, usize::MAX >> 1).await?;
    let (bodies, connections) = (bulks(&docs, 2), world.catchword.config().worker.in_flight);
    let (mut limits, mut drains) = (vec![], vec![]);
    let (mut cpu, mut cpu_limit) = (Cpu::default(), Cpu::default());
    // the first round warms the servers up and does not count
    for round in 0..=rounds {
        let index = world.raw.create_index("raw").await?;
        let before = bench.cpu();
        let limit = docs.len() as f64 / world.raw.bulk(&index, &bodies, connections).await?.as_secs_f64();
        let used_raw = bench.cpu().since(before);
        world.raw.drop_index(&index).await?;

        world.empty_index().await?;
        let jobs = world.schedule_all().await?;
        let before = bench.cpu();
        let outcome = world.drain().await?;
        let used = bench.cpu().since(before);
        anyhow::ensure!(outcome.settled == jobs && outcome.written >= jobs, "{outcome}");
        if round > 0 {
            cpu.add(used);
            cpu_limit.add(used_raw);
            limits.push(limit);
            drains.push(jobs as f64 / outcome.took.as_secs_f64());
        }
    }
    let (drained, limit) = (median(&drains), median(&limits));
    let ratio = median(&drains.iter().zip(&limits).map(|(drain, limit)| drain / limit).collect::<Vec<_>>());
    let count = (docs.len() * rounds) as f64;
    let what = format!("drain {} missing documents of {size}", grouped(docs.len() as f64));
    report.line(what, format!("{} jobs/s", grouped(drained)), format!("{} docs/s raw `_bulk`", grouped(limit)), ratio, Goal::AtLeast(0.6));
    report.note(format!("drain of {size}: processor time per document {}; raw `_bulk` {}", cpu.per(count), cpu_limit.per(count)));
    world.close().await
}
