//! Figure 21: passes beside an API that is asked 200 times a second, against the same passes alone, in turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::load;
use crate::process::binary;
use crate::report::{Goal, Report};
use crate::stats::{grouped, median, ms, percentile};
use crate::world::{Bench, World};

/// Requests a second.
const RATE: f64 = 200.0;

/// Jobs of a pass: one batch.
const BATCH: usize = 2_500;
/// Between two passes, as a worker that keeps up has it.
const REST: Duration = Duration::from_millis(500);

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    let jobs = world.schedule_all().await?;
    world.drain().await?;
    let keys: Vec<String> = world.all("select id::text from annotation order by id limit 100").await?;
    let (mut server, url, key) = serve(&world).await?;
    let mut report = Report::default();
    let (mut alone, mut beside, mut took, mut failed) = (vec![], vec![], vec![], 0);
    // short turns, so that whatever else the machine does falls on both sides
    let rounds = bench.scale.pick(12, 2, 1);
    let calls = bench.scale.pick(1_000, 600, 20);
    for round in 0..=rounds {
        let span = Duration::from_secs_f64(calls as f64 / RATE);
        let quiet = batches(&world, span).await?;
        let asking = tokio::spawn(ask(url.clone(), key.clone(), keys.clone(), calls));
        let busy = batches(&world, span).await?;
        let (answered, wrong) = asking.await??;
        if round > 0 {
            alone.extend(quiet);
            beside.extend(busy);
            took.extend(answered);
            failed += wrong;
        }
    }
    let ratio = median(&beside) / median(&alone);
    report.line(
        format!("a pass of {} jobs beside {RATE} API requests a second", grouped(BATCH as f64)),
        ms(median(&beside)),
        format!("{} alone", ms(median(&alone))),
        ratio,
        Goal::AtMost(1.1),
    );
    report.line("API requests that failed", failed.to_string(), "0", f64::from(failed), Goal::AtMost(0.0));
    report.note(format!(
        "{} API requests (status, check, collections, dead letters, explain): p50 {}, p99 {}",
        grouped(took.len() as f64),
        ms(percentile(&took, 0.5)),
        ms(percentile(&took, 0.99))
    ));
    let quiet = drain(&world).await?;
    let asking = tokio::spawn(ask(url.clone(), key.clone(), keys.clone(), bench.scale.pick(3_000, 600, 20)));
    let busy = drain(&world).await?;
    asking.await??;
    report.line(
        format!("a drain of {} current documents, which takes all cores alone, beside them", grouped(jobs as f64)),
        ms(busy),
        format!("{} alone", ms(quiet)),
        busy / quiet,
        Goal::AtMost(1.1),
    );
    server.start_kill()?;
    server.wait().await?;
    world.close().await?;
    Ok(report)
}

/// Batches for this long: what each pass took, in seconds.
async fn batches(world: &World, span: Duration) -> anyhow::Result<Vec<f64>> {
    let (started, mut all) = (Instant::now(), vec![]);
    while all.is_empty() || started.elapsed() < span {
        let due = format!("select catchword.schedule('annotation', array(select id::text from annotation order by id limit {BATCH}))");
        world.sql(&due).await?;
        all.push(world.drain().await?.took.as_secs_f64());
        tokio::time::sleep(REST).await;
    }
    Ok(all)
}

/// What a drain of everything takes, in seconds.
async fn drain(world: &World) -> anyhow::Result<f64> {
    world.schedule_all().await?;
    Ok(world.drain().await?.took.as_secs_f64())
}

/// Asks at the rate, one thing after the other: how long each took, and how many were not answered with 200.
async fn ask(url: String, key: String, keys: Vec<String>, calls: usize) -> anyhow::Result<(Vec<Duration>, u32)> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let failed = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = failed.clone();
    let took = load::open(RATE, calls, move |n| {
        let path = match n % 10 {
            0..=3 => "status".to_owned(),
            4..=5 => "check".to_owned(),
            6..=7 => "collections/annotation".to_owned(),
            8 => "collections/annotation/dead-letters".to_owned(),
            _ => format!("collections/annotation/keys/{}", keys[n % keys.len()]),
        };
        let request = client.get(format!("{url}/api/v1/{path}")).header("authorization", format!("Bearer {key}"));
        let failed = counted.clone();
        async move {
            let begun = Instant::now();
            let status = match request.send().await {
                Ok(answer) => {
                    let status = answer.status();
                    answer.bytes().await?;
                    status.as_u16()
                }
                Err(_) => 0,
            };
            if status != 200 {
                failed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            anyhow::Ok(begun.elapsed())
        }
    })
    .await?;
    Ok((took, failed.load(std::sync::atomic::Ordering::Relaxed)))
}

/// A server of this world, where it listens, and a key.
async fn serve(world: &World) -> anyhow::Result<(tokio::process::Child, String, String)> {
    let made = binary(world, None)
        .args(["key", "create", "bench", "--role", "reader", "--rate", "10000/s"])
        .stdout(std::process::Stdio::piped())
        .output()
        .await?;
    let key = String::from_utf8(made.stdout)?.trim().to_owned();
    let mut server =
        binary(world, None).args(["serve", "--listen", "127.0.0.1:0", "--log", "json"]).stderr(std::process::Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(server.stderr.take().context("no standard error")?).lines();
    let url = loop {
        let line = lines.next_line().await?.context("the server ended")?;
        let said: serde_json::Value = serde_json::from_str(&line)?;
        if let Some(address) = said["listen"].as_str() {
            break format!("http://{address}");
        }
    };
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok((server, url, key))
}
