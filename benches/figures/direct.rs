//! Figure 4: from the commit until the document is indexed, at half of the rate that saturates, against one raw versioned PUT.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catchword::Catchword;
use sqlx::PgPool;
use uuid::Uuid;

use crate::load::{closed, open};
use crate::raw::{Doc, Raw, documents};
use crate::report::{Goal, Report};
use crate::stats::{grouped, median, ms, percentile};
use crate::world::Bench;

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    let docs = Arc::new(documents(&world.pool, 1_000).await?);
    let raw = Arc::new(Raw::new(&bench.elasticsearch, &world.prefix)?);
    let index = world.raw.create_index("raw").await?;
    let calls = bench.scale.pick(4_000, 800, 20);

    let (pool, catchword) = (world.pool.clone(), world.catchword.clone());
    let saturate = move |_| {
        let (pool, catchword) = (pool.clone(), catchword.clone());
        async move { ours(&pool, &catchword).await.map(|_| ()) }
    };
    // the first one warms up
    closed(32, calls, saturate.clone()).await?;
    let (_, took) = closed(32, calls, saturate).await?;
    let rate = calls as f64 / took.as_secs_f64() / 2.0;

    let (mut p50, mut p99, mut all, mut all_raw) = (vec![], vec![], vec![], vec![]);
    for _ in 0..bench.scale.pick(5, 3, 1) {
        let (pool, docs, raw, index) = (world.pool.clone(), docs.clone(), raw.clone(), index.clone());
        let limit = open(rate, calls, move |n| {
            let (pool, docs, raw, index) = (pool.clone(), docs.clone(), raw.clone(), index.clone());
            async move { put(&pool, &raw, &index, &docs[n % docs.len()]).await }
        })
        .await?;
        let (pool, catchword) = (world.pool.clone(), world.catchword.clone());
        let direct = open(rate, calls, move |_| {
            let (pool, catchword) = (pool.clone(), catchword.clone());
            async move { ours(&pool, &catchword).await }
        })
        .await?;
        p50.push((percentile(&direct, 0.5), percentile(&limit, 0.5)));
        p99.push((percentile(&direct, 0.99), percentile(&limit, 0.99)));
        all.extend(direct);
        all_raw.extend(limit);
    }
    let mut report = Report::default();
    let rate = grouped(rate);
    for (name, pairs) in [("p50", p50), ("p99", p99)] {
        let (ours, limits): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let ratio = median(&pairs.iter().map(|(a, b)| a / b).collect::<Vec<_>>());
        let what = format!("commit → indexed at {rate}/s, half of what saturates, {name}");
        report.line(what, ms(median(&ours)), format!("{} raw `PUT`", ms(median(&limits))), ratio, Goal::AtMost(2.0));
    }
    report.curve("commit → indexed", histogram(&all));
    report.curve("one raw PUT", histogram(&all_raw));
    world.close().await?;
    Ok(report)
}

/// Writes a row as the application would, and returns its key.
async fn insert(pool: &PgPool) -> anyhow::Result<Uuid> {
    let sql = "insert into annotation (userid, text, target_uri, target_uri_normalized)
               values ('acct:mina@example.org', repeat('What a reader notes in the margin, ', 8), 'https://example.org/a', 'example.org/a') returning id";
    Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
}

async fn ours(pool: &PgPool, catchword: &Catchword) -> anyhow::Result<Duration> {
    let id = insert(pool).await?;
    let begun = Instant::now();
    // what is left to the loop took its second, and counts with it
    catchword.index_now("annotation", [id]).await;
    Ok(begun.elapsed())
}

/// The same insert, and then one PUT of a document of the same kind.
async fn put(pool: &PgPool, raw: &Raw, index: &str, doc: &Doc) -> anyhow::Result<Duration> {
    let key = insert(pool).await?.to_string();
    let doc = Doc { key, body: doc.body.clone() };
    let begun = Instant::now();
    raw.put(index, &doc, 2).await?;
    Ok(begun.elapsed())
}

/// Share of calls by milliseconds, in steps that double.
fn histogram(took: &[Duration]) -> Vec<(f64, f64)> {
    let bounds: Vec<f64> = (0..11).map(|n| 0.5e-3 * f64::from(1 << n)).collect();
    let share = |low: f64, high: f64| took.iter().filter(|t| (low..high).contains(&t.as_secs_f64())).count() as f64 / took.len() as f64;
    let lows = std::iter::once(0.0).chain(bounds.iter().copied());
    lows.zip(&bounds).map(|(low, high)| (high * 1e3, share(low, *high))).collect()
}
