//! The worker's own row goes the whole way and stays out of everybody's.

use crate::common::{Layout, World, eventually, start};
use crate::operate::metrics::scrape;

async fn with_canary() -> World {
    World::with(Layout { tick: "* * * * * *", canary: true, ..Layout::default() }).await
}

const SEARCHABLE: &str = "catchword_canary_seconds_count{stage=\"searchable\"}";

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_followed_until_search_shows_it() {
    let world = with_canary().await;
    let worker = start(&world).await;
    eventually("search shows the canary", async || scrape(&world, &worker).await.get(SEARCHABLE) == Some(1.0)).await;
    let seen = scrape(&world, &worker).await;
    assert_eq!(seen.value("catchword_canary_seconds_count{stage=\"indexed\"}"), 1.0);
    let sum = |stage: &str| seen.value(&format!("catchword_canary_seconds_sum{{stage=\"{stage}\"}}"));
    assert!(sum("indexed") > 0.0 && sum("indexed") <= sum("searchable"));
    assert_eq!(world.source("catchword_canary", "1").await, Some(serde_json::json!({ "beat": 1 })));

    // it is settled like any job, and that is a sample of the loop's freshness without any traffic
    let fresh = "catchword_freshness_seconds_count{collection=\"catchword_canary\",path=\"loop\"}";
    eventually("it is settled", async || scrape(&world, &worker).await.get(fresh).is_some()).await;
    let seen = scrape(&world, &worker).await;
    assert_eq!(seen.value("catchword_jobs_settled_total{class=\"canary\",collection=\"catchword_canary\"}"), 1.0);
    // and check has it without Prometheus
    let counted = "select sum(changes)::bigint from catchword.freshness where collection = 'catchword_canary' and slow = 0";
    assert_eq!(world.one::<Option<i64>>(counted).await, Some(1));
    let (_, report, err) = world.run(&["check", "--json"]).await;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap_or_else(|_| panic!("{report} {err}"));
    let judged = |check: &&serde_json::Value| check["name"] == "CatchwordFreshnessBurnFast" && check["collection"] == "catchword_canary";
    let judged = report["checks"].as_array().unwrap().iter().find(judged).unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(judged["says"], "0 of 1 change of the last 1h were seen late");
    // scrapes within a second share what was read
    let due = "catchword_jobs{collection=\"catchword_canary\",state=\"due\"}";
    eventually("none is due", async || scrape(&world, &worker).await.value(due) == 0.0).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.record where collection = 'catchword_canary'").await, 0);

    // a tick each second, a beat each minute
    assert_eq!(world.one::<i64>("select beat from catchword.canary").await, 1);
    world.sql("update catchword.canary set changed_at = now() - interval '1 minute'").await;
    let beaten = world.one::<Option<i64>>("select catchword.stir_canary()").await;
    assert_eq!(beaten, Some(world.one::<i64>("select catchword_revision from catchword.canary").await));
    assert_eq!(world.one::<Option<i64>>("select catchword.stir_canary()").await, None, "within the minute it is another's");
    assert_eq!(world.one::<i64>("select beat from catchword.canary").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_none_of_the_users_collections() {
    let world = with_canary().await;
    world.one::<Option<i64>>("select catchword.stir_canary()").await;
    let (_, status, _) = world.run(&["status", "--json"]).await;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let names: Vec<&str> = status["collections"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["annotation", "bystander"]);
    assert_eq!(status["unserved"], serde_json::json!([]), "a beat that nobody carries yet is no unserved collection");

    // a pass over everything leaves it to the workers; by name it can be asked for
    let outcome = world.catchword.drain("test", &[]).await.unwrap();
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'catchword_canary'").await, 1, "{outcome}");
    let (code, out, err) = world.run(&["explain", "catchword_canary", "1"]).await;
    assert!(code == 1 && out.contains("missing: saved"), "{code} {out}{err}");
    let (code, out, err) = world.run(&["sync", "catchword_canary", "--drain"]).await;
    assert!(code == 0 && out.contains("1 settled"), "{code} {out}{err}");
    assert_eq!(world.run(&["explain", "catchword_canary", "1"]).await.0, 0);
    let (code, _, err) = world.run(&["reindex", "--all", "--yes"]).await;
    assert!(code == 2 && !err.contains("canary"), "{code} {err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_starts_although_the_canary_is_broken_and_a_worker_says_so() {
    let world = with_canary().await;
    world.sql("drop trigger catchword_catchword_canary_updated on catchword.canary").await;
    world.another().await;
    let worker = start(&world).await;
    eventually("the others are served", async || worker.get(&world, "/readyz").await.1.contains("catchword_canary: ")).await;
    world.annotate("acct:a", "x").await;
    let settled = "catchword_jobs_settled_total{class=\"live\",collection=\"annotation\"}";
    eventually("the worker settles", async || scrape(&world, &worker).await.value(settled) > 0.0).await;
    assert_eq!(scrape(&world, &worker).await.value("catchword_collection_blocked{collection=\"catchword_canary\"}"), 1.0);
    assert_eq!(scrape(&world, &worker).await.get(SEARCHABLE), None);
}
