//! Figure 2: draining jobs whose documents are current, against raw `_mget` of the same ids.

use crate::cpu::Cpu;
use crate::raw::{documents, mgets};
use crate::report::{Goal, Report};
use crate::stats::{grouped, median};
use crate::world::Bench;

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    let docs = documents(&world.pool, usize::MAX >> 1).await?;
    let (bodies, connections) = (mgets(&docs), world.catchword.config().worker.in_flight);
    world.schedule_all().await?;
    world.drain().await?;
    let (mut limits, mut drains) = (vec![], vec![]);
    let (mut cpu, mut cpu_limit) = (Cpu::default(), Cpu::default());
    let rounds = bench.scale.pick(3, 2, 1);
    for round in 0..=rounds {
        let before = bench.cpu();
        let limit = docs.len() as f64 / world.raw.mget(&world.index(), &bodies, connections).await?.as_secs_f64();
        let used_raw = bench.cpu().since(before);
        let jobs = world.schedule_all().await?;
        let before = bench.cpu();
        let outcome = world.drain().await?;
        let used = bench.cpu().since(before);
        anyhow::ensure!(outcome.settled == jobs && outcome.written == 0, "{outcome}");
        if round > 0 {
            cpu.add(used);
            cpu_limit.add(used_raw);
            limits.push(limit);
            drains.push(jobs as f64 / outcome.took.as_secs_f64());
        }
    }
    let ratio = median(&drains.iter().zip(&limits).map(|(drain, limit)| drain / limit).collect::<Vec<_>>());
    let mut report = Report::default();
    report.line(
        format!("drain {} current documents", grouped(docs.len() as f64)),
        format!("{} jobs/s", grouped(median(&drains))),
        format!("{} ids/s raw `_mget`", grouped(median(&limits))),
        ratio,
        Goal::AtLeast(0.6),
    );
    let count = (docs.len() * rounds) as f64;
    report.note(format!("drain of current documents: processor time per job {}; raw `_mget` {}", cpu.per(count), cpu_limit.per(count)));
    world.close().await?;
    Ok(report)
}
