//! Figure 17: differences of every kind, injected behind the queue's back while others write, are found and repaired, and no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use catchword::audit::{Report as Found, Request};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use crate::process::Process;
use crate::report::{Goal, Report};
use crate::seed::Size;
use crate::stats::grouped;
use crate::world::{Bench, Layout, World};

const KINDS: [&str; 6] = ["missing", "stale", "ahead", "orphan", "stray", "content"];
/// Writes a second of the others.
const OFFERED: u64 = 500;
const WRITERS: u64 = 5;
/// As long as the slowest machine may need to heal them.
const PATIENCE: Duration = Duration::from_secs(300);

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let layout = Layout { size: Size::Small, rows: bench.scale.pick(200_000, 2_000, 300), worker: "tick = \"* * * * * *\"" };
    let (world, each) = (bench.world(layout).await?, bench.scale.pick(100, 100, 5));
    world.schedule_all().await?;
    world.drain().await?;
    inject(&world, each).await?;

    let worker = Process::worker(&world, None)?;
    let load = Load::start(&world.pool);
    let mut request =
        Request { collection: "annotation".into(), repair: true, content: true, reason: "bench".into(), ..Request::default() };
    let found = world.catchword.audit(&request).await?;
    let begun = Instant::now();
    while world.one::<bool>("select exists (select from catchword.job where tag = 'audit')").await? {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "they are not healed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let healed = begun.elapsed();
    request.repair = false;
    let after = world.catchword.audit(&request).await?;
    let rate = load.end().await?;
    worker.stop().await?;

    let mut report = Report::default();
    let (injected, of) = ((each * KINDS.len()) as u64, |found: &Found, kind: &str| found.differences.get(kind).copied().unwrap_or(0));
    let right: u64 = KINDS.iter().map(|kind| of(&found, kind).min(each as u64)).sum();
    let what = format!("{each} differences of each of {} kinds under {} writes/s", KINDS.len(), grouped(rate));
    let share = right as f64 / injected as f64;
    report.line(format!("{what}: found"), grouped(right as f64), grouped(injected as f64), share, Goal::AtLeast(1.0));
    let false_ones = (found.differ() - right) as f64;
    report.line(format!("{what}: false ones"), grouped(false_ones), "0", false_ones, Goal::AtMost(0.0));
    let left = after.differ() as f64;
    report.line(format!("{what}: left after the repair"), grouped(left), "0", left, Goal::AtMost(0.0));
    let audits = (found.looked + after.looked) as f64;
    report.note(format!(
        "two audits with content looked at {} keys and documents; {} keys had a job open and were left to it; the repair was settled {:.1} s after the first audit",
        grouped(audits),
        grouped((found.pending + after.pending) as f64),
        healed.as_secs_f64()
    ));
    world.close().await?;
    Ok(report)
}

/// So many of each kind, in rows that the load does not touch.
async fn inject(world: &World, each: usize) -> anyhow::Result<()> {
    let insert = |user: &str, revision: &str, count: usize| {
        format!(
            "insert into annotation (userid, text, target_uri, target_uri_normalized{}) select '{user}', 't', 'u', 'u'{} from generate_series(1, {count})",
            if revision.is_empty() { "" } else { ", catchword_revision" },
            revision
        )
    };
    world.sql(&insert("acct:audited", "", 3 * each)).await?;
    world.drain().await?;
    let rows: Vec<(String, i64)> =
        sqlx::query_as("select id::text, catchword_revision from annotation where userid = 'acct:audited' order by id")
            .fetch_all(&world.pool)
            .await?;
    let (stale, others) = rows.split_at(each);
    let (ahead, content) = others.split_at(each);
    // as a restore, a bug or a replica's session would
    let number = "nextval('catchword.revision')";
    let list = stale.iter().map(|(id, _)| format!("'{id}'")).collect::<Vec<_>>().join(",");
    world
        .sql(&format!(
            "begin; set local session_replication_role = replica; {}; update annotation set text = 'newer', catchword_revision = {number} where id in ({list}); commit",
            insert("acct:missing", &format!(", {number}"), each)
        ))
        .await?;
    let source = json!({ "text": "not ours" });
    let line = |id: String, version: i64, kind: &str| {
        format!("{}\n{source}\n", json!({ "index": { "_id": id, "version": version, "version_type": kind } }))
    };
    let mut lines: String = ahead.iter().map(|(id, version)| line(id.clone(), version + 1_000_000, "external")).collect();
    lines.extend(content.iter().map(|(id, version)| line(id.clone(), *version, "external_gte")));
    lines.extend((0..each).map(|_| line(Uuid::new_v4().to_string(), 4, "external")));
    lines.extend((0..each).map(|n| line(format!("no uuid {n}"), 4, "external")));
    world.raw.bulk(&world.index(), &[Bytes::from(lines)], 1).await?;
    Ok(())
}

/// Others who write, each to rows of its own.
struct Load {
    over: Arc<AtomicBool>,
    writes: Arc<AtomicU64>,
    begun: Instant,
    writers: Vec<tokio::task::JoinHandle<anyhow::Result<()>>>,
}

impl Load {
    fn start(pool: &PgPool) -> Load {
        let (over, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writers = (0..WRITERS).map(|_| tokio::spawn(write(pool.clone(), over.clone(), writes.clone()))).collect();
        Load { over, writes, begun: Instant::now(), writers }
    }

    /// Ends it: how many writes there were in a second.
    async fn end(self) -> anyhow::Result<f64> {
        let rate = self.writes.load(Ordering::Relaxed) as f64 / self.begun.elapsed().as_secs_f64();
        self.over.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.await??;
        }
        Ok(rate)
    }
}

/// Inserts, updates, hides, shows and deletes.
async fn write(pool: PgPool, over: Arc<AtomicBool>, writes: Arc<AtomicU64>) -> anyhow::Result<()> {
    let mut clock = tokio::time::interval(Duration::from_millis(1000 * WRITERS / OFFERED));
    let mut mine = Vec::<Uuid>::new();
    for n in 0_usize.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        clock.tick().await;
        let one = mine.get(n * 7 % mine.len().max(1)).copied();
        let (sql, key) = match (n % 10, one) {
            (0..4, _) | (_, None) => (
                "insert into annotation (id, userid, target_uri, target_uri_normalized, text) values ($1, 'acct:busy', 'u', 'u', 'new')",
                Uuid::new_v4(),
            ),
            (4..8, Some(key)) => ("update annotation set text = text || '+' where id = $1", key),
            (8, Some(key)) => ("update annotation set deleted = not deleted where id = $1", key),
            (_, Some(key)) => ("delete from annotation where id = $1", key),
        };
        sqlx::query(sql).bind(key).execute(&pool).await?;
        if one != Some(key) {
            mine.push(key);
        }
        writes.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
