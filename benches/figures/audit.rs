//! Figure 16: an audit of documents that are in step, against raw `_mget` of the same ids.
//!
//! Each document is audited both ways: its key is taken from Postgres and looked at in the index, and it is met once more on the walk over
//! the index and looked for in Postgres. A document counts once, so the ratio is what both ways together cost against one raw look.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::io::AsyncReadExt;

use crate::cpu::{self, Cpu};
use crate::process::{binary, resident};
use crate::raw::{Doc, mgets};
use crate::report::{Goal, Report};
use crate::seed::Size;
use crate::stats::{grouped, median};
use crate::world::{Bench, Layout, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let rows = bench.scale.pick(1_000_000, 20_000, 300);
    let world = bench.world(Layout { size: Size::Small, rows, worker: "" }).await?;
    world.schedule_all().await?;
    world.drain().await?;
    let keys: Vec<String> = world.all("select key::text from annotation_document order by key").await?;
    let docs: Vec<Doc> = keys.into_iter().map(|key| Doc { key, body: String::new() }).collect();
    let (bodies, connections, count) = (mgets(&docs), world.catchword.config().worker.in_flight, docs.len() as f64);
    let (mut limits, mut rates, mut peak) = (vec![], vec![], 0_f64);
    let (mut used, mut used_raw) = (Cpu::default(), Cpu::default());
    let rounds = bench.scale.pick(3, 3, 1);
    for round in 0..=rounds {
        let before = bench.cpu();
        let limit = count / world.raw.mget(&world.index(), &bodies, connections).await?.as_secs_f64();
        let raw = bench.cpu().since(before);
        let before = bench.cpu();
        let audit = audited(&world).await?;
        let servers = bench.cpu().since(before);
        if round > 0 {
            used_raw.add(raw);
            used.add(Cpu { own: audit.own, ..servers });
            limits.push(limit);
            rates.push(count / audit.seconds);
            peak = peak.max(audit.peak);
        }
    }
    let ratio = median(&rates.iter().zip(&limits).map(|(rate, limit)| rate / limit).collect::<Vec<_>>());
    let mut report = Report::default();
    report.line(
        format!("audit {} documents in step, both ways", grouped(count)),
        format!("{} documents/s", grouped(median(&rates))),
        format!("{} ids/s raw `_mget`", grouped(median(&limits))),
        ratio,
        Goal::AtLeast(0.5),
    );
    report.line("its peak memory, MB", format!("{peak:.0} MB"), "64 MB", peak, Goal::AtMost(64.0));
    let count = count * rounds as f64;
    report.note(format!("audit: processor time per document, both ways, {}; raw `_mget` {}", used.per(count), used_raw.per(count)));
    world.close().await?;
    Ok(report)
}

/// What an audit came to.
struct Audited {
    seconds: f64,
    /// Megabytes.
    peak: f64,
    /// Seconds of processor time of its own.
    own: f64,
}

/// `catchword audit` as a process; all must be in step. Its time is Postgres', from being written down to its end.
async fn audited(world: &World) -> anyhow::Result<Audited> {
    let mut child = binary(world, None).args(["audit", "annotation", "--json"]).stdout(Stdio::piped()).spawn()?;
    let (pid, mut output) = (child.id().unwrap_or(0), child.stdout.take().context("no output")?);
    let said = tokio::spawn(async move {
        let mut said = String::new();
        output.read_to_string(&mut said).await.map(|_| said)
    });
    let (mut peak, mut own) = (0_f64, 0_f64);
    let status = loop {
        // gone between two looks: the last one counts
        peak = peak.max(resident(pid, "VmHWM").unwrap_or(0.0));
        own = own.max(cpu::used(pid));
        if let Ok(ended) = tokio::time::timeout(Duration::from_millis(10), child.wait()).await {
            break ended?;
        }
    };
    let said: Value = serde_json::from_str(&said.await??)?;
    anyhow::ensure!(status.success() && said[0]["differences"] == serde_json::json!({}), "not in step: {said}");
    let time = |name: &str| anyhow::Ok(chrono::DateTime::parse_from_rfc3339(said[0][name].as_str().context("no time")?)?);
    let took = time("finished_at")? - time("asked_at")?;
    Ok(Audited { seconds: took.as_seconds_f64(), peak, own })
}
