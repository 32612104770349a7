//! The worker as a process: it wakes, works, answers health checks, and stops.

use std::time::Duration;

use tokio::time::Instant;

use crate::common::{Layout, World, eventually, start};
use crate::operate::metrics::scrape;

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_insert_is_found_by_search_within_three_seconds_of_a_tick_every_second() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;

    // the quickest of five: other tests use the same two cores
    let mut quickest = Duration::MAX;
    let mut key = String::new();
    for n in 1..=5 {
        let inserted = Instant::now();
        key = world.annotate("acct:a", "from psql").await;
        let search = format!("/{}/_count?q=userid:*", world.alias("annotation"));
        eventually("found by search", async || world.http("GET", &search, None).await.1["count"] == n).await;
        quickest = quickest.min(inserted.elapsed());
        if quickest < Duration::from_secs(3) {
            break;
        }
    }
    assert!(quickest < Duration::from_secs(3), "found after {quickest:?}");
    eventually("settled", async || world.jobs().await == 0).await;
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    world.noise_is_untouched().await;
}

/// The other collections have work in each pass, and what is wrong with this one is news but once.
#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_is_not_served_is_logged_when_that_begins_and_when_it_ends() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let worker = start(&world).await;
    let told = |text: &str| worker.lines().iter().filter(|line| line.contains(text)).count();
    // it is still in the file
    let (code, said, errors) = world.run(&["detach", "bystander", "--yes"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    eventually("it is told", async || told("not served: collection bystander is not attached") == 1).await;
    for passes in 1..=3 {
        let before = told("settled");
        world.annotate("acct:a", &format!("pass {passes}")).await;
        eventually("the other one is worked on", async || told("settled") > before && world.jobs().await == 0).await;
    }
    assert_eq!((told("is not attached"), told("blocked")), (1, 0), "{:?}", worker.lines());
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    eventually("it is over", async || told("served again") == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_it_with_exit_code_0_and_its_row_goes() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let mut worker = start(&world).await;
    eventually("it shows itself", async || world.one::<i64>("select count(*) from catchword.worker").await == 1).await;
    worker.signal("-TERM").await;
    let status = tokio::time::timeout(Duration::from_secs(25), worker.child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(world.one::<i64>("select count(*) from catchword.worker").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_in_a_batch_finishes_the_batch() {
    let world = World::with(Layout { gated: true, tick: "* * * * * *", ..Layout::default() }).await;
    let gate = world.gate.as_ref().unwrap();
    let mut worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    gate.hold("_bulk");
    let key = world.annotate("acct:a", "x").await;
    // the first bulk that is held may be a sentinel's
    let free = "select count(*) from (select from catchword.job where collection = 'annotation' for update skip locked) as free";
    eventually("claimed", async || world.one::<i64>(free).await == 0).await;
    worker.signal("-TERM").await;
    gate.pass();
    let status = tokio::time::timeout(Duration::from_secs(25), worker.child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    assert_eq!(world.jobs().await, 1, "written, and left for the next look");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_frees_its_jobs_at_once_and_another_finishes_them() {
    let world = World::with(Layout { gated: true, tick: "* * * * * *", ..Layout::default() }).await;
    let gate = world.gate.as_ref().unwrap();
    let mut worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    gate.hold("_bulk");
    world.sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 100) i").await;
    // the first bulk that is held may be a sentinel's
    let free = "select count(*) from (select from catchword.job where collection = 'annotation' for update skip locked) as free";
    eventually("all claimed", async || world.one::<i64>(free).await == 0).await;
    worker.signal("-KILL").await;
    worker.child.wait().await.unwrap();
    eventually("freed by the end of the connection", async || world.one::<i64>(free).await == 100).await;

    world.past_the_gate().await.drain("test", &["annotation"]).await.unwrap();
    gate.pass();
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.found("annotation").await.len(), 100);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_readiness_and_metrics_are_served() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    world.annotate("acct:a", "x").await;
    let worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    assert_eq!(worker.get(&world, "/healthz").await, (200, "alive\n".into()));
    eventually("settled", async || world.jobs().await == 0).await;
    let settled = "catchword_jobs_settled_total{class=\"live\",collection=\"annotation\"}";
    eventually("counted", async || scrape(&world, &worker).await.value(settled) == 1.0).await;
    assert_eq!(worker.get(&world, "/nothing").await.0, 404);

    world.sql("alter table catchword.installation rename to installation_away").await;
    eventually("not ready", async || worker.get(&world, "/readyz").await.0 == 503).await;
    assert_eq!(worker.get(&world, "/healthz").await.0, 200, "a restart would fix nothing");
    world.sql("alter table catchword.installation_away rename to installation").await;
    eventually("ready again", async || worker.get(&world, "/readyz").await.0 == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_finds_triggers_switched_off_says_so_and_serves_the_others() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    world.sql("alter table bystander disable trigger catchword_bystander_deleted").await;
    let _worker = start(&world).await;
    eventually("it is reported", async || {
        world
            .one::<i64>(
                "select count(*) from catchword.worker where blocked ->> 'bystander' like '%catchword_bystander_deleted on public.bystander is disabled%'",
            )
            .await
            == 1
    })
    .await;
    let key = world.annotate("acct:a", "x").await;
    eventually("the others are served", async || world.version("annotation", &key).await.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_write_is_not_ready_and_says_why_until_it_can() {
    let world = World::with(Layout { gated: true, tick: "* * * * * *", ..Layout::default() }).await;
    let gate = world.gate.as_ref().unwrap();
    let worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;

    let index = format!("/{}-000001", world.alias("annotation"));
    world.http("POST", &format!("{index}/_close"), None).await;
    world.annotate("acct:a", "x").await;
    eventually("not ready: the index is closed", async || {
        let (status, body) = worker.get(&world, "/readyz").await;
        status == 503 && body.starts_with("annotation: index_closed_exception")
    })
    .await;
    world.http("POST", &format!("{index}/_open"), None).await;
    world.sql("update catchword.job set scheduled_at = now()").await;
    eventually("ready again", async || worker.get(&world, "/readyz").await == (200, "ready\n".into())).await;

    gate.refuse();
    world.annotate("acct:a", "y").await;
    eventually("not ready: Elasticsearch is away", async || {
        let (status, body) = worker.get(&world, "/readyz").await;
        status == 503 && body.contains("unreachable")
    })
    .await;
    assert_eq!(worker.get(&world, "/healthz").await.0, 200, "a restart would fix nothing");
    gate.pass();
    world.sql("update catchword.job set scheduled_at = now()").await;
    eventually("ready again", async || worker.get(&world, "/readyz").await.0 == 200).await;
}
