//! Figure 5: 64 clients that index at once, against one request per document.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use catchword::Direct;

use crate::cpu::Cpu;
use crate::load::closed;
use crate::raw::{Raw, documents};
use crate::report::{Goal, Report};
use crate::stats::{grouped, median};
use crate::world::Bench;

const CLIENTS: usize = 64;

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    let docs = Arc::new(documents(&world.pool, usize::MAX >> 1).await?);
    let raw = Arc::new(Raw::new(&bench.elasticsearch, &world.prefix)?);
    let calls = bench.scale.pick(20_000, 4_000, 100);
    let (mut rates, mut limits) = (vec![], vec![]);
    let (mut cpu, mut cpu_limit) = (Cpu::default(), Cpu::default());
    for round in 0..=bench.scale.pick(5, 2, 1) {
        let index = world.raw.create_index("raw").await?;
        let before = bench.cpu();
        let (docs_then, raw, to) = (docs.clone(), raw.clone(), index.clone());
        let (_, limit) = closed(CLIENTS, calls, move |n| {
            let (docs, raw, to) = (docs_then.clone(), raw.clone(), to.clone());
            async move { raw.put(&to, &docs[n % docs.len()], 2 + n as i64).await }
        })
        .await?;
        let used_raw = bench.cpu().since(before);
        world.raw.drop_index(&index).await?;

        world.empty_index().await?;
        let (docs, catchword, indexed) = (docs.clone(), world.catchword.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = indexed.clone();
        let before = bench.cpu();
        let (_, took) = closed(CLIENTS, calls, move |n| {
            let (docs, catchword, counted) = (docs.clone(), catchword.clone(), counted.clone());
            async move {
                let direct = catchword.index_now("annotation", [&docs[n % docs.len()].key]).await;
                counted.fetch_add(usize::from(direct == Direct::Indexed), Ordering::Relaxed);
                Ok(())
            }
        })
        .await?;
        if round > 0 {
            cpu.add(bench.cpu().since(before));
            cpu_limit.add(used_raw);
            limits.push(calls as f64 / limit.as_secs_f64());
            rates.push(indexed.load(Ordering::Relaxed) as f64 / took.as_secs_f64());
        }
    }
    let ratio = median(&rates.iter().zip(&limits).map(|(rate, limit)| rate / limit).collect::<Vec<_>>());
    let mut report = Report::default();
    report.line(
        format!("direct writes of {CLIENTS} clients at once"),
        format!("{}/s", grouped(median(&rates))),
        format!("{}/s, a raw `PUT` each", grouped(median(&limits))),
        ratio,
        Goal::AtLeast(3.0),
    );
    let count = (calls * limits.len()) as f64;
    report.note(format!("direct writes: processor time per document {}; a raw `PUT` {}", cpu.per(count), cpu_limit.per(count)));
    world.close().await?;
    Ok(report)
}
