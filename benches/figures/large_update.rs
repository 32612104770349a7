//! Figure 13: one UPDATE of many rows in plain SQL, with a worker running.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::raw::{bulks, documents};
use crate::report::{Goal, Report};
use crate::seed::Size;
use crate::stats::{grouped, median};
use crate::world::{Bench, Layout, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let rows = bench.scale.pick(50_000, 10_000, 200);
    let world = bench.world(Layout { size: Size::Small, rows, worker: "tick = \"* * * * * *\"" }).await?;
    world.sql("create table plain (like annotation including all); insert into plain select * from annotation").await?;
    world.sql("vacuum (analyze) plain").await?;
    let docs = documents(&world.pool, usize::MAX >> 1).await?;
    let (bodies, connections) = (bulks(&docs, 2), world.catchword.config().worker.in_flight);
    world.schedule_all().await?;
    world.drain().await?;

    let stop = CancellationToken::new();
    let worker = world.catchword.worker("bench", &[]);
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { worker.run(stop).await }
    });
    let (mut rates, mut limits, mut updates, mut plain) = (vec![], vec![], vec![], vec![]);
    for round in 0..=bench.scale.pick(5, 2, 1) {
        let index = world.raw.create_index("raw").await?;
        let limit = docs.len() as f64 / world.raw.bulk(&index, &bodies, connections).await?.as_secs_f64();
        world.raw.drop_index(&index).await?;

        let (mark, before) = (format!("round{round}"), written(&world).await?);
        let begun = Instant::now();
        world.sql(&format!("update plain set groupid = '{mark}'")).await?;
        let without = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        world.sql(&format!("update annotation set groupid = '{mark}'")).await?;
        let with = begun.elapsed().as_secs_f64();
        let committed = Instant::now();
        while written(&world).await? < before + docs.len() as u64 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let rate = docs.len() as f64 / committed.elapsed().as_secs_f64();
        while carrying(&world, &mark).await? < docs.len() as u64 || world.one::<i64>("select count(*) from catchword.job").await? > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        world.sql("vacuum annotation, plain").await?;
        if round > 0 {
            rates.push(rate);
            limits.push(limit);
            updates.push(with);
            plain.push(without);
        }
    }
    stop.cancel();
    running.await??;

    let ratios = |a: &[f64], b: &[f64]| median(&a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<_>>());
    let mut report = Report::default();
    let n = grouped(docs.len() as f64);
    report.line(
        format!("one UPDATE of {n} rows, from its commit until all documents carry it"),
        format!("{} docs/s", grouped(median(&rates))),
        format!("{} docs/s raw `_bulk`", grouped(median(&limits))),
        ratios(&rates, &limits),
        Goal::AtLeast(0.5),
    );
    report.line(
        format!("the UPDATE of {n} rows itself"),
        format!("{:.2} s", median(&updates)),
        format!("{:.2} s without triggers", median(&plain)),
        ratios(&updates, &plain),
        Goal::AtMost(3.0),
    );
    world.close().await?;
    Ok(report)
}

/// How many writes the index has taken: cheap to ask while it works.
async fn written(world: &World) -> anyhow::Result<u64> {
    let url = format!("{}/{}/_stats/indexing?filter_path=_all.primaries.indexing.index_total", world.raw.url, world.index());
    let answer: Value = serde_json::from_slice(&world.raw.client.get(url).send().await?.bytes().await?)?;
    Ok(answer["_all"]["primaries"]["indexing"]["index_total"].as_u64().unwrap_or(0))
}

/// How many documents carry the mark, by search.
async fn carrying(world: &World, mark: &str) -> anyhow::Result<u64> {
    world.raw.client.post(format!("{}/{}/_refresh", world.raw.url, world.index())).send().await?.error_for_status()?;
    let query = json!({ "query": { "term": { "groupid": mark } } }).to_string();
    let request = world.raw.client.post(format!("{}/{}/_count", world.raw.url, world.index()));
    let answer = request.header("content-type", "application/json").body(query).send().await?.bytes().await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    Ok(answer["count"].as_u64().unwrap_or(0))
}
