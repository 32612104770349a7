//! Figure 5: 64 clients that index at once, against one request per document: with the row read first, as a callback of an application
//! would do it, and a bare `PUT` of a document that was read before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use catchword::Direct;
use sqlx::PgPool;

use crate::cpu::Cpu;
use crate::load::closed;
use crate::raw::{Doc, Raw, documents};
use crate::report::{Goal, Report};
use crate::stats::{grouped, median};
use crate::world::{Bench, World};

const CLIENTS: usize = 64;

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    let docs = Arc::new(documents(&world.pool, usize::MAX >> 1).await?);
    let raw = Arc::new(Raw::new(&bench.elasticsearch, &world.prefix)?);
    let calls = bench.scale.pick(20_000, 4_000, 100);
    let (mut rates, mut callbacks, mut puts) = (vec![], vec![], vec![]);
    let (mut cpu, mut cpu_callback, mut cpu_put) = (Cpu::default(), Cpu::default(), Cpu::default());
    for round in 0..=bench.scale.pick(5, 2, 1) {
        let before = bench.cpu();
        let put = one_by_one(&world, &raw, &docs, calls, false).await?;
        let used_put = bench.cpu().since(before);
        let before = bench.cpu();
        let callback = one_by_one(&world, &raw, &docs, calls, true).await?;
        let used_callback = bench.cpu().since(before);
        world.empty_index().await?;
        let before = bench.cpu();
        let (indexed, took) = gathered(&world, &docs, calls).await?;
        if round > 0 {
            cpu.add(bench.cpu().since(before));
            cpu_callback.add(used_callback);
            cpu_put.add(used_put);
            puts.push(calls as f64 / put.as_secs_f64());
            callbacks.push(calls as f64 / callback.as_secs_f64());
            rates.push(indexed as f64 / took.as_secs_f64());
        }
    }
    let mut report = Report::default();
    let what = format!("direct writes of {CLIENTS} clients at once");
    for (limits, limit) in [(&callbacks, "a read and a `PUT` each"), (&puts, "a bare `PUT` each, nothing read")] {
        let ratio = median(&rates.iter().zip(limits).map(|(rate, limit)| rate / limit).collect::<Vec<_>>());
        let limit = format!("{}/s, {limit}", grouped(median(limits)));
        report.line(&what, format!("{}/s", grouped(median(&rates))), limit, ratio, Goal::AtLeast(3.0));
    }
    let count = (calls * puts.len()) as f64;
    report.note(format!(
        "direct writes: processor time per document {}; a read and a `PUT` {}; a bare `PUT` {}",
        cpu.per(count),
        cpu_callback.per(count),
        cpu_put.per(count)
    ));
    world.close().await?;
    Ok(report)
}

async fn gathered(world: &World, docs: &Arc<Vec<Doc>>, calls: usize) -> anyhow::Result<(usize, Duration)> {
    let (docs, catchword, indexed) = (docs.clone(), world.catchword.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = indexed.clone();
    let (_, took) = closed(CLIENTS, calls, move |n| {
        let (docs, catchword, counted) = (docs.clone(), catchword.clone(), counted.clone());
        async move {
            let direct = catchword.index_now("annotation", [&docs[n % docs.len()].key]).await;
            counted.fetch_add(usize::from(direct == Direct::Indexed), Ordering::Relaxed);
            Ok(())
        }
    })
    .await?;
    Ok((indexed.load(Ordering::Relaxed), took))
}

async fn one_by_one(world: &World, raw: &Arc<Raw>, docs: &Arc<Vec<Doc>>, calls: usize, read: bool) -> anyhow::Result<Duration> {
    let index = world.raw.create_index("raw").await?;
    let (docs, raw, pool, to) = (docs.clone(), raw.clone(), world.pool.clone(), index.clone());
    let (_, took) = closed(CLIENTS, calls, move |n| {
        let (docs, raw, pool, to) = (docs.clone(), raw.clone(), pool.clone(), to.clone());
        async move {
            let doc = &docs[n % docs.len()];
            match read {
                true => raw.put(&to, &read_one(&pool, &doc.key).await?, 2 + n as i64).await,
                false => raw.put(&to, doc, 2 + n as i64).await,
            }
        }
    })
    .await?;
    world.raw.drop_index(&index).await?;
    Ok(took)
}

async fn read_one(pool: &PgPool, key: &str) -> anyhow::Result<Doc> {
    let body = sqlx::query_scalar("select body::text from annotation_document where key = $1::uuid").bind(key).fetch_one(pool).await?;
    Ok(Doc { key: key.to_owned(), body })
}
