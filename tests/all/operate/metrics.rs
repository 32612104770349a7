//! What a scrape says, on the real worker.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use catchword::metrics::{Kind, all, table};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::common::{Layout, Running, World, eventually, start};

/// A scrape: each series with its labels as Prometheus writes them, and its value.
pub struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    pub fn parse(text: &str) -> Scrape {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        Scrape(
            lines.map(|line| line.rsplit_once(' ').map(|(series, value)| (series.to_owned(), value.parse().unwrap())).unwrap()).collect(),
        )
    }

    /// The value of a series, its labels in the order of the alphabet.
    pub fn get(&self, series: &str) -> Option<f64> {
        self.0.get(series).copied()
    }

    #[track_caller]
    pub fn value(&self, series: &str) -> f64 {
        self.get(series).unwrap_or_else(|| panic!("no series {series}"))
    }

    fn names(&self) -> BTreeSet<&str> {
        self.0.keys().map(|series| series.split('{').next().unwrap()).collect()
    }
}

pub async fn scrape(world: &World, worker: &Running) -> Scrape {
    let (status, text) = worker.get(world, "/metrics").await;
    assert_eq!(status, 200, "{text}");
    Scrape::parse(&text)
}

#[test]
fn every_metric_is_documented_from_its_definition() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, _) = page.split_once("| metric |").unwrap_or((&page, ""));
    let wanted = format!("{head}{}", table());
    if std::env::var_os("RENEW_METRICS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(page == wanted, "docs/metrics.md is old; renew it: RENEW_METRICS=1 cargo test --locked --test all metrics::");
    }
}

#[test]
fn names_are_unique_in_base_units_and_told_by_their_kind() {
    let mut names = BTreeSet::new();
    for metric in all() {
        assert!(names.insert(metric.name), "{} twice", metric.name);
        assert!(metric.name.starts_with("catchword_"), "{}", metric.name);
        assert_eq!(metric.kind == Kind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
        assert!(!metric.help.is_empty() && metric.help.ends_with('.'), "{}", metric.name);
        for unit in ["_ms", "_millis", "_kb", "_mb", "_minutes", "_percent"] {
            assert!(!metric.name.contains(unit), "{}", metric.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_has_every_metric_and_promtool_finds_nothing() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let worker = start(&world).await;
    world.annotate("acct:a", "written, then settled, by this worker").await;
    let settled = "catchword_jobs_settled_total{class=\"live\",collection=\"annotation\"}";
    eventually("the worker settles", async || scrape(&world, &worker).await.value(settled) > 0.0).await;

    let (_, text) = worker.get(&world, "/metrics").await;
    let seen = Scrape::parse(&text);
    for metric in all() {
        // the direct path and the canary have tests of their own
        if metric.kind == Kind::Histogram && (metric.name.contains("_direct_") || metric.name.contains("_canary_")) {
            continue;
        }
        let name = if metric.kind == Kind::Histogram { format!("{}_count", metric.name) } else { metric.name.to_owned() };
        assert!(seen.names().contains(&*name), "{} is not in the scrape", metric.name);
        assert!(text.contains(&format!("# HELP {} ", metric.name)), "{}", metric.name);
    }
    for name in seen.names() {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(all().iter().any(|metric| metric.name == name || metric.name == base), "{name} is not defined");
    }
    let complaints = promtool(&text).await;
    assert_eq!(complaints, "", "promtool check metrics");

    // each label of the definition is on each of its series, and no other
    for metric in all() {
        for series in seen.0.keys().filter(|series| series.split('{').next() == Some(metric.name)) {
            let labels: BTreeSet<&str> = series.split(['{', ',']).skip(1).filter_map(|label| Some(label.split_once('=')?.0)).collect();
            assert_eq!(labels, metric.labels.iter().copied().collect(), "{series}");
        }
    }
}

/// What `promtool check metrics` says of a scrape.
async fn promtool(text: &str) -> String {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("promtool cannot be run ({error}); install it: scripts/services tools"));
    child.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_queue_reports_zero_and_a_full_one_its_jobs() {
    let world = World::new().await;
    world.catchword.drain("test", &[]).await.unwrap();
    world.sql("select catchword.schedule('annotation', array[gen_random_uuid()::text], 'x', 1, '1 hour')").await;
    // so that the worker leaves it alone
    world.run(&["pause", "annotation", "--reason", "a test"]).await;
    let worker = start(&world).await;
    let seen = scrape(&world, &worker).await;
    for (state, count) in [("due", 0.0), ("waiting", 1.0), ("dead", 0.0), ("expired", 0.0)] {
        assert_eq!(seen.value(&format!("catchword_jobs{{collection=\"annotation\",state=\"{state}\"}}")), count, "{state}");
    }
    let age = |collection, priority| format!("catchword_oldest_due_job_age_seconds{{collection=\"{collection}\",priority=\"{priority}\"}}");
    for collection in ["annotation", "bystander"] {
        assert_eq!((seen.value(&age(collection, "live")), seen.value(&age(collection, "bulk"))), (0.0, 0.0));
    }
    assert_eq!(seen.value("catchword_paused{collection=\"annotation\"}"), 1.0);
    assert!(seen.value("catchword_paused_seconds{collection=\"annotation\"}") > 0.0);
    assert_eq!(seen.value("catchword_paused{collection=\"bystander\"}"), 0.0);
    assert_eq!(seen.value("catchword_vacuum_held_back_seconds{by=\"slot\"}"), 0.0);
    let scheduled = seen.value("catchword_jobs_scheduled_total");

    // a job that somebody else has claimed is due all the same
    world.annotate("acct:a", "x").await;
    world.sql("update catchword.job set scheduled_at = now() - interval '1 hour', expires_at = now() - interval '1 minute'").await;
    let mut other = world.pool.begin().await.unwrap();
    sqlx::query("select id from catchword.job for update").fetch_all(&mut *other).await.unwrap();
    let due = "catchword_jobs{collection=\"annotation\",state=\"due\"}";
    eventually("the claimed jobs are due", async || scrape(&world, &worker).await.value(due) == 2.0).await;
    let seen = scrape(&world, &worker).await;
    assert!(seen.value(&age("annotation", "live")) >= 3600.0);
    assert_eq!(seen.value(&age("annotation", "bulk")), 0.0);
    assert_eq!(seen.value("catchword_jobs{collection=\"annotation\",state=\"expired\"}"), 2.0);
    assert!(seen.value("catchword_jobs_scheduled_total") > scheduled);
    // that other one needs its snapshot
    sqlx::query("declare c cursor for select 1").execute(&mut *other).await.unwrap();
    let session = "catchword_vacuum_held_back_seconds{by=\"session\"}";
    eventually("a session holds vacuum back", async || scrape(&world, &worker).await.value(session) > 0.0).await;
}

/// Jobs of three priorities, 100,000 each: the first waiting, the others due.
async fn long_queue() -> World {
    let world = World::new().await;
    world.catchword.drain("test", &[]).await.unwrap();
    world
        .sql(
            "insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag)
             select 'annotation', gen_random_uuid()::text, now() - interval '1 hour' + n * interval '1 microsecond',
                    now() + case when p = 1 then interval '1 day' else interval '-1 minute' end, p, 'reindex.all'
               from unnest(array[1, 100, 1000]) as p, generate_series(1, 100000) as n",
        )
        .await;
    world
}

/// The census as it is planned and run: each node of the plan.
async fn nodes_of_the_census(world: &World) -> Vec<serde_json::Value> {
    fn walk(node: &serde_json::Value, nodes: &mut Vec<serde_json::Value>) {
        nodes.push(node.clone());
        node["Plans"].as_array().into_iter().flatten().for_each(|child| walk(child, nodes));
    }
    let mut connection = world.pool.begin().await.unwrap();
    sqlx::query(include_str!("../../../src/job/keep_the_plan.sql")).execute(&mut *connection).await.unwrap();
    sqlx::raw_sql(concat!("prepare census (text, bigint) as \n", include_str!("../../../src/job/census.sql")))
        .execute(&mut *connection)
        .await
        .unwrap();
    let row =
        sqlx::raw_sql("explain (analyze, format json) execute census ('annotation', 10000)").fetch_one(&mut *connection).await.unwrap();
    let plan: serde_json::Value = sqlx::Row::try_get(&row, 0).unwrap();
    sqlx::raw_sql("deallocate census").execute(&mut *connection).await.unwrap();
    let mut nodes = Vec::new();
    walk(&plan[0]["Plan"], &mut nodes);
    nodes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_census_of_a_long_queue_reads_a_bounded_part_of_it_and_estimates_the_rest() {
    let world = long_queue().await;
    // analyzed or not: the first claims come before the statistics do
    for statistics in [false, true] {
        if statistics {
            world.sql("analyze catchword.job").await;
        }
        let mut read = 0.0;
        for node in nodes_of_the_census(&world).await.iter().filter(|node| node["Relation Name"] == "job") {
            assert!(node["Node Type"].as_str().unwrap().starts_with("Index"), "{node}");
            let rows = node["Actual Rows"].as_f64().unwrap() + node["Rows Removed by Filter"].as_f64().unwrap_or(0.0);
            read += rows * node["Actual Loops"].as_f64().unwrap();
        }
        assert!((30_000.0..31_000.0).contains(&read), "10,000 of each priority: {read}");
        let census = catchword::job::census(&mut world.pool.acquire().await.unwrap(), "annotation").await.unwrap();
        assert!(census.estimated);
        assert!((100_000..300_000).contains(&census.due), "{census:?}");
        assert!((40_000..160_000).contains(&census.waiting), "{census:?}");
    }
    let census = catchword::job::census(&mut world.pool.acquire().await.unwrap(), "annotation").await.unwrap();
    assert!(census.oldest_bulk_seconds.unwrap() >= 60.0 && census.oldest_due_seconds == census.oldest_bulk_seconds);
    assert_eq!(census.oldest_live_seconds, None, "they are all waiting");
    // analyzed when it was all another's: the planner would expect next to nothing of the newcomer
    world
        .sql(
            "insert into catchword.job (collection, key, priority, tag) select 'newcomer', i::text, 1000, 'test' from generate_series(1, 200000) i;
             insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, reason)
             select i, 'index', 'newcomer', i::text, now(), now(), now(), 1, 'test', 5, 'refused' from generate_series(1, 100000) i",
        )
        .await;
    let census = catchword::job::census(&mut world.pool.acquire().await.unwrap(), "newcomer").await.unwrap();
    assert!((100_000..300_000).contains(&census.due) && census.waiting == 0, "{census:?}");
    assert!((50_000..150_000).contains(&census.dead), "{census:?}");
    world
        .sql("delete from catchword.job where collection = 'newcomer'; delete from catchword.dead_job where collection = 'newcomer'")
        .await;
    let short = catchword::job::census(&mut world.pool.acquire().await.unwrap(), "bystander").await.unwrap();
    assert!(!short.estimated && short.due == 0, "{short:?}");
    let (_, words, _) = world.run(&["status"]).await;
    assert!(words.contains("due       about "), "{words}");
}
