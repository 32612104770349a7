//! Figure 18: from the commit of a plain insert until the document is indexed, by a worker beside it; what the quick lane's question costs,
//! and what writers feel of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use catchword::job;
use sqlx::{Connection, PgConnection, PgPool};
use uuid::Uuid;

use crate::load::{closed, open};
use crate::process::Process;
use crate::raw::{Doc, Raw, documents};
use crate::report::{Goal, Report};
use crate::seed::Size;
use crate::stats::{grouped, median, ms, percentile};
use crate::world::{Bench, Layout, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let usual = world(bench, "canary = false").await?;
    let worker = Process::worker(&usual, None)?;
    settle(&usual).await?;
    let saturated = saturate(&usual, bench.scale.pick(4_000, 1_000, 20)).await?;
    commit_to_indexed(bench, &usual, 25.0, 50.0, "50/s", &mut report).await?;
    let half = saturated / 2.0;
    commit_to_indexed(bench, &usual, 25.0, half, &format!("{}/s, half of what saturates", grouped(half)), &mut report).await?;
    worker.stop().await?;
    usual.close().await?;

    let often = world(bench, "canary = false\nquick = \"5ms\"").await?;
    let worker = Process::worker(&often, None)?;
    settle(&often).await?;
    commit_to_indexed(bench, &often, 5.0, 50.0, "50/s", &mut report).await?;
    worker.stop().await?;
    often.close().await?;

    question(bench, &mut report).await?;
    writers(bench, &mut report).await?;
    Ok(report)
}

async fn world(bench: &Bench, worker: &'static str) -> anyhow::Result<World> {
    bench.world(Layout { size: Size::Small, rows: bench.scale.pick(20_000, 5_000, 300), worker }).await
}

/// The first documents start everything up: the worker, its connections, the index.
async fn settle(world: &World) -> anyhow::Result<()> {
    for _ in 0..20 {
        insert(&world.pool).await?;
    }
    empty(world).await
}

async fn empty(world: &World) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(120);
    while world.one::<i64>("select count(*) from catchword.job").await? > 0 {
        anyhow::ensure!(Instant::now() < end, "the queue is not empty after two minutes");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Plain inserts by eight clients as fast as they can: so many a second are indexed and settled.
async fn saturate(world: &World, calls: usize) -> anyhow::Result<f64> {
    let pool = world.pool.clone();
    let begun = Instant::now();
    closed(8, calls, move |_| {
        let pool = pool.clone();
        async move { insert(&pool).await.map(|_| ()) }
    })
    .await?;
    empty(world).await?;
    Ok(calls as f64 / begun.elapsed().as_secs_f64())
}

async fn commit_to_indexed(bench: &Bench, world: &World, quick: f64, rate: f64, at: &str, report: &mut Report) -> anyhow::Result<()> {
    let docs = Arc::new(documents(&world.pool, 1_000).await?);
    let raw = Arc::new(Raw::new(&bench.elasticsearch, &world.prefix)?);
    let name = format!("raw{}", Uuid::new_v4().simple());
    let index = world.raw.create_index(&name).await?;
    let seconds = bench.scale.pick(20.0, 8.0, 0.2);
    let calls = (rate * seconds).ceil() as usize;
    let (mut p50, mut p99, mut raw_p99) = (vec![], vec![], vec![]);
    for _ in 0..bench.scale.pick(3, 2, 1) {
        let (docs, raw, index) = (docs.clone(), raw.clone(), index.clone());
        let limit = open(rate, calls, move |n| {
            let (docs, raw, index) = (docs.clone(), raw.clone(), index.clone());
            async move { put(&raw, &index, &docs[n % docs.len()]).await }
        })
        .await?;
        let watch = Watch::start(world)?;
        let (pool, watched) = (world.pool.clone(), watch.clone());
        let ours = open(rate, calls, move |_| {
            let (pool, watched) = (pool.clone(), watched.clone());
            async move {
                let key = insert(&pool).await?.to_string();
                watched.until_indexed(key).await
            }
        })
        .await?;
        empty(world).await?;
        let one = percentile(&limit, 0.5);
        p50.push((percentile(&ours, 0.5), one));
        p99.push((percentile(&ours, 0.99), one));
        raw_p99.push(percentile(&limit, 0.99));
    }
    report.note(format!("quick = {quick} ms, {at}: the slowest of a hundred raw `PUT`s took {}", ms(median(&raw_p99))));
    for (name, pairs, waits, puts) in [("p50", p50, 1.0, 2.0), ("p99", p99, 2.0, 4.0)] {
        let allowed = |put: f64| waits * quick / 1e3 + puts * put;
        let ratio = median(&pairs.iter().map(|(ours, put)| ours / allowed(*put)).collect::<Vec<_>>());
        let (ours, put): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let (ours, put) = (median(&ours), median(&put));
        let what = format!("plain insert, commit → indexed, quick = {quick} ms, {at}, {name}");
        let limit = format!("{}: {waits} × quick + {puts} × {} raw `PUT`", ms(allowed(put)), ms(put));
        report.line(what, ms(ours), limit, ratio, Goal::AtMost(1.0));
        if quick < 10.0 && put > 0.005 {
            report.note(format!("a raw `PUT` took {}, so {name} is not held to its absolute limit", ms(put)));
        } else if quick < 10.0 {
            let most = if name == "p50" { 0.010 } else { 0.024 };
            let what = format!("the same, {name}, where a raw `PUT` takes 5 ms at most");
            report.line(what, ms(ours), ms(most), ours / most, Goal::AtMost(1.0));
        }
    }
    Ok(())
}

/// Asks Elasticsearch for all documents that are waited for, again and again, in one request each time.
struct Watch {
    client: reqwest::Client,
    url: String,
    waited_for: Mutex<HashMap<String, tokio::sync::oneshot::Sender<Instant>>>,
}

impl Watch {
    fn start(world: &World) -> anyhow::Result<Arc<Watch>> {
        let url = format!("{}/{}/_mget?_source=false&realtime=true&filter_path=docs._id,docs.found", world.raw.url, world.index());
        let watch = Arc::new(Watch { client: reqwest::Client::builder().no_proxy().build()?, url, waited_for: Mutex::default() });
        let asks = Arc::downgrade(&watch);
        tokio::spawn(async move {
            while let Some(watch) = asks.upgrade() {
                // an answer that did not come is asked for again
                _ = watch.ask().await;
                drop(watch);
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
        });
        Ok(watch)
    }

    async fn ask(&self) -> anyhow::Result<()> {
        let keys: Vec<String> = self.waited_for.lock().map_err(|_| anyhow::anyhow!("a caller panicked"))?.keys().cloned().collect();
        if keys.is_empty() {
            return Ok(());
        }
        let body = serde_json::json!({ "ids": keys }).to_string();
        let asked = self.client.post(&self.url).header("content-type", "application/json").body(body).send().await?;
        let answer: serde_json::Value = serde_json::from_slice(&asked.bytes().await?)?;
        let now = Instant::now();
        let found = answer["docs"].as_array().context("no documents in the answer")?.iter().filter(|doc| doc["found"] == true);
        let mut waited_for = self.waited_for.lock().map_err(|_| anyhow::anyhow!("a caller panicked"))?;
        for key in found.filter_map(|doc| doc["_id"].as_str()) {
            if let Some(waiting) = waited_for.remove(key) {
                _ = waiting.send(now);
            }
        }
        Ok(())
    }

    async fn until_indexed(&self, key: String) -> anyhow::Result<Duration> {
        let committed = Instant::now();
        let (sender, found) = tokio::sync::oneshot::channel();
        self.waited_for.lock().map_err(|_| anyhow::anyhow!("a caller panicked"))?.insert(key, sender);
        let found = tokio::time::timeout(Duration::from_secs(90), found).await.context("not indexed within 90 s")??;
        Ok(found.saturating_duration_since(committed))
    }
}

/// What the question costs at each of the queues that could make it dear.
async fn question(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let waiting = bench.scale.pick(30_000, 30_000, 100);
    let bulk = bench.scale.pick(5_000_000, 200_000, 1_000);
    let dead = bench.scale.pick(1_000_000, 100_000, 1_000);
    let add = |jobs: i32, enqueued: &str, scheduled: &str, priority: i32| {
        format!(
            "insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag)
             select 'annotation', n::text, {enqueued}, {scheduled}, {priority}, 'bench' from generate_series(1, {jobs}) n"
        )
    };
    let queues = [
        ("an empty queue".to_owned(), String::new()),
        (format!("{} jobs that wait for their direct write", grouped(waiting.into())), add(waiting, "now()", "now() + interval '60 s'", 1)),
        (format!("{} jobs of a bulk", grouped(bulk.into())), add(bulk, "now() + n * interval '1 us'", "now()", 1000)),
        (
            format!("{} dead tuples of 1,000 s behind a held snapshot", grouped(dead.into())),
            format!(
                "{}; delete from catchword.job where priority = 0",
                add(dead, &format!("now() - n * interval '{} us'", 1_000_000_000 / i64::from(dead)), "now()", 0)
            ),
        ),
    ];
    let world = world(bench, "canary = false").await?;
    for (queue, sql) in queues {
        let mut holder = PgConnection::connect(&world.database_url).await?;
        sqlx::raw_sql("begin isolation level repeatable read; select count(*) from catchword.job").execute(&mut holder).await?;
        world.sql(&sql).await?;
        let mut asks = PgConnection::connect(&world.database_url).await?;
        sqlx::query(include_str!("../../src/worker/keeper_session.sql")).execute(&mut asks).await?;
        let (mut near, mut far) = (vec![], vec![]);
        let names = [("annotation".to_owned(), job::Cursor::TOP)];
        for n in 0..200 {
            let (took, within) = if n % 2 == 0 { (&mut near, Duration::from_secs(2)) } else { (&mut far, Duration::from_secs(60)) };
            let begun = Instant::now();
            let found = job::quick_due(&mut asks, &names, within).await?;
            took.push(begun.elapsed().as_secs_f64());
            anyhow::ensure!(found.due.is_empty(), "nothing quick is due");
        }
        let took = median(&near) * 1e3;
        report.line(format!("the quick lane's question, {queue}, ms"), format!("{took:.2} ms"), "0.3 ms", took, Goal::AtMost(0.3));
        report.note(format!("{queue}: looking back for a minute, once a second, takes {:.2} ms", median(&far) * 1e3));
        holder.close().await?;
    }
    world.close().await
}

/// Inserts by eight clients beside a worker that keeps the lane, and beside one that does not.
async fn writers(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let (on, off) = (world(bench, "canary = false").await?, world(bench, "canary = false\nquick = \"off\"").await?);
    let (mut p50, mut p99) = (vec![], vec![]);
    // the lane asks and finds nothing: what it works on is work that the loop would have too
    let delayed = "set catchword.delay = '3600'";
    let pools = [clients(&on, delayed).await?, clients(&off, delayed).await?];
    let workers = [Process::worker(&on, None)?, Process::worker(&off, None)?];
    for _ in 0..bench.scale.pick(7, 3, 1) {
        let (mut with, mut without) = (vec![], vec![]);
        // just before: a lane that found nothing for a minute asks more rarely
        insert(&on.pool).await?;
        empty_of_quick(&on).await?;
        // in short turns, so that whatever else the machine does falls on both alike
        for turn in 0..bench.scale.pick(60, 12, 2) {
            let lane = turn % 2 == 0;
            let pool = pools[usize::from(!lane)].clone();
            let (took, _) = closed(1, bench.scale.pick(100, 100, 10), move |_| {
                let pool = pool.clone();
                async move { insert(&pool).await.map(|_| ()) }
            })
            .await?;
            if lane { with.extend(took) } else { without.extend(took) }
        }
        p50.push((percentile(&with, 0.5), percentile(&without, 0.5)));
        p99.push((percentile(&with, 0.99), percentile(&without, 0.99)));
    }
    for (name, pairs) in [("p50", p50), ("p99", p99)] {
        let ratio = median(&pairs.iter().map(|(on, off)| on / off).collect::<Vec<_>>());
        let (with, without): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let limit = format!("{} without the lane", ms(median(&without)));
        report.line(format!("an insert while the lane asks, {name}"), ms(median(&with)), limit, ratio, Goal::AtMost(1.02));
    }
    for worker in workers {
        worker.stop().await?;
    }
    for pool in pools {
        pool.close().await;
    }
    on.close().await?;
    off.close().await
}

async fn empty_of_quick(world: &World) -> anyhow::Result<()> {
    while world.one::<i64>("select count(*) from catchword.job where priority = 0").await? > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

async fn clients(world: &World, setting: &'static str) -> anyhow::Result<PgPool> {
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(8).after_connect(move |connection, _| {
        Box::pin(async move {
            sqlx::raw_sql(setting).execute(connection).await?;
            Ok(())
        })
    });
    Ok(pool.connect(&world.database_url).await?)
}

/// Writes a row as an application in any language would, and returns its key.
async fn insert(pool: &PgPool) -> anyhow::Result<Uuid> {
    let sql = "insert into annotation (userid, text, target_uri, target_uri_normalized)
               values ('acct:mina@example.org', repeat('What a reader notes in the margin, ', 8), 'https://example.org/a', 'example.org/a') returning id";
    Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
}

/// One PUT of a document of the same kind, and nothing else: the lane would work on an insert beside it.
async fn put(raw: &Raw, index: &str, doc: &Doc) -> anyhow::Result<Duration> {
    let doc = Doc { key: Uuid::new_v4().to_string(), body: doc.body.clone() };
    let begun = Instant::now();
    raw.put(index, &doc, 2).await?;
    Ok(begun.elapsed())
}
