//! Going back, undoing, dropping: by command, and by a worker for whoever was killed.

use std::sync::Arc;

use serde_json::json;

use super::in_a_row::killed_at;
use super::readers::Readers;
use crate::common::{Layout, Traffic, World, eventually, start};
use crate::operate::metrics::scrape;

fn quick() -> Layout {
    Layout { tick: "* * * * * *", ..Layout::default() }
}

impl World {
    async fn names(&self, names: &[&str]) -> Vec<String> {
        names.iter().map(|name| format!("{}{name}", self.prefix)).collect()
    }

    async fn readers_see(&self) -> String {
        let (_, found) = self.http("GET", &format!("/_alias/{}", self.alias("annotation")), None).await;
        let indices: Vec<&String> = found.as_object().unwrap().keys().collect();
        assert_eq!(indices.len(), 1, "{found}");
        indices[0].trim_start_matches(&self.prefix).to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_is_one_command_and_as_fresh() {
    let world = Arc::new(World::with(quick()).await);
    let mut worker = start(&world).await;
    let (traffic, readers) = (Traffic::start(&world), Readers::start(&world));
    world.rebuilt(super::KEEP).await;
    assert_eq!(world.readers_see().await, "annotation-000002");
    let said = world.rebuilt(&["rebuild", "annotation", "--back"]).await;
    assert!(said.contains("see") && said.contains("annotation-000002 is kept"), "{said}");
    assert_eq!(world.readers_see().await, "annotation-000001");
    assert_eq!(world.targets("annotation").await, world.names(&["annotation-000001", "annotation-000002"]).await);
    // and forth again
    world.rebuilt(&["rebuild", "annotation", "--back", "--json"]).await;
    assert_eq!(world.readers_see().await, "annotation-000002");
    assert_eq!(world.settings("annotation-000001").await["index.refresh_interval"], "1s", "it shows what is written, as before");
    let (_, status, _) = world.run(&["status"]).await;
    assert!(status.contains("annotation-000001 is kept in step until"), "{status}");
    let scraped = scrape(&world, &worker).await;
    assert_eq!(scraped.value("catchword_rebuild_stage{collection=\"annotation\",stage=\"keep\"}"), 1.0);
    assert_eq!(scraped.value("catchword_rebuild_stage{collection=\"bystander\",stage=\"keep\"}"), 0.0);
    assert_eq!(scraped.value("catchword_rebuild_progress_ratio{collection=\"annotation\"}"), 1.0);
    assert!(traffic.end().await > 0 && readers.end().await > 0);
    worker.signal("-TERM").await;
    worker.child.wait().await.unwrap();
    world.settle_and_compare().await;
    assert_eq!(world.run(&["rebuild", "annotation", "--abort", "--yes"]).await.0, 2, "what readers saw is not undone by that");
}

/// The worker has read the list, and asks for an index that is taken off it and dropped before the answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_dropped_while_a_worker_asks_for_it_is_no_fault() {
    let world = World::with(Layout { gated: true, ..quick() }).await;
    world.rebuilt(super::KEEP).await;
    let mut worker = start(&world).await;
    let gate = world.gate.as_ref().unwrap();
    // the question whose index it is names it before its write alias
    gate.hold("annotation-000002,");
    gate.holds_something().await;
    for words in [&["rebuild", "annotation", "--back"][..], &["rebuild", "annotation", "--drop", "--yes"]] {
        let output = world.binary().env("ELASTICSEARCH_URL", &world.elasticsearch).args(words).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(world.targets("annotation").await, world.names(&["annotation-000001"]).await);
    gate.pass();

    let key = world.annotate("acct:a", "after it").await;
    eventually("it is written and settled", async || world.jobs().await == 0).await;
    assert_eq!(world.found("annotation").await, [key]);
    worker.signal("-TERM").await;
    assert!(worker.child.wait().await.unwrap().success());
    let wrong: Vec<String> = worker.lines().into_iter().filter(|line| line.contains("not served")).collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_that_is_undone_leaves_everything_as_it_was() {
    let world = Arc::new(World::new().await);
    world
        .sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:a', 'u', 'u' from generate_series(1, 2000)")
        .await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let traffic = Traffic::start(&world);
    for stage in ["create", "fill", "drain"] {
        killed_at(&world, stage, super::KEEP).await;
        let (code, said, errors) = world.run(&["rebuild", "annotation", "--abort", "--yes"]).await;
        if errors.contains("alias has moved already") {
            // it was quicker than the kill
            world.rebuilt(&["rebuild", "annotation", "--back"]).await;
            world.rebuilt(&["rebuild", "annotation", "--drop", "--yes"]).await;
            continue;
        }
        assert_eq!(code, 0, "{said}{errors}");
        assert!(said.contains("is kept in"), "{said}");
        assert_eq!(world.annotation_indices().await, ["annotation-000001"]);
        assert_eq!(world.targets("annotation").await, world.names(&["annotation-000001"]).await);
        world.intent_is_durable().await;
    }
    traffic.end().await;
    world.settle_and_compare().await;
    assert_eq!(world.run(&["rebuild", "annotation", "--abort", "--yes"]).await.0, 1, "nothing is left to undo");
    assert_eq!(world.one::<i64>("select count(*) from catchword.reindex where finished_at is null and cancelled_at is null").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mapping_that_refuses_documents_is_never_swapped_in() {
    let world = World::new().await;
    let keys = [world.in_step("acct:a", "words").await, world.in_step("acct:a", "more words").await, world.in_step("acct:a", "7").await];
    let mapping = world.mapping(|file| file["mappings"]["properties"]["text"] = json!({ "type": "long" }));
    let (code, _, said) = world.run(&["rebuild", "annotation", "--mapping", &mapping]).await;
    assert_eq!(code, 2);
    assert!(said.contains("2 documents do not come into the new index") && said.contains("--abort"), "{said}");
    assert_eq!(world.readers_see().await, "annotation-000001");
    let (_, status, _) = world.run(&["status"]).await;
    assert!(status.contains("nobody works on it; go on with: catchword rebuild annotation"), "{status}");
    // somebody buried one meanwhile
    world.sql("update catchword.job set attempts = 4, scheduled_at = now()").await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 2);

    world.rebuilt(&["rebuild", "annotation", "--abort", "--yes"]).await;
    assert_eq!(world.found("annotation").await.len(), keys.len());
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_drops_the_old_index_when_its_time_is_over() {
    let world = World::with(quick()).await;
    world.in_step("acct:a", "x").await;
    world.rebuilt(&["rebuild", "annotation", "--keep", "2s"]).await;
    let _worker = start(&world).await;
    eventually("it is dropped", async || world.annotation_indices().await == ["annotation-000002"]).await;
    eventually("that is written down", async || world.stage().await.as_deref() == Some("done")).await;
    assert_eq!(world.targets("annotation").await, world.names(&["annotation-000002"]).await);
    world.settle_and_compare().await;
}

/// As if the command was killed between holding the refresh and moving the alias.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_ends_a_swap_that_was_cut_short() {
    let world = World::with(quick()).await;
    let key = world.in_step("acct:a", "x").await;
    world.rebuilt(super::KEEP).await;
    let readers = format!("{}annotation-000002", world.prefix);
    world.sql(&format!("update catchword.rebuild set stage = 'back', held_index = '{readers}', held_refresh = '1s'")).await;
    world.http("PUT", &format!("/{readers}/_settings"), Some(json!({ "index.refresh_interval": "-1" }))).await;
    let _worker = start(&world).await;
    eventually("readers see the other", async || world.readers_see().await == "annotation-000001").await;
    eventually("that is written down", async || world.stage().await.as_deref() == Some("keep")).await;
    assert_eq!(world.settings("annotation-000002").await["index.refresh_interval"], "1s");
    assert_eq!(world.one::<i64>("select count(held_index) from catchword.rebuild").await, 0);
    assert_eq!(world.found("annotation").await, [key]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_readers_see_is_never_dropped() {
    let world = World::with(quick()).await;
    world.rebuilt(super::KEEP).await;
    // somebody moved the alias by hand
    let (old, new, alias) = (world.index("annotation"), format!("{}annotation-000002", world.prefix), world.alias("annotation"));
    let moved = json!({ "actions": [{ "remove": { "index": new, "alias": alias } }, { "add": { "index": old, "alias": alias } }] });
    assert_eq!(world.http("POST", "/_aliases", Some(moved)).await.0, 200);
    let (code, _, said) = world.run(&["rebuild", "annotation", "--drop", "--yes"]).await;
    assert!(code == 2 && said.contains("readers see it through the alias"), "{said}");
    assert_eq!(world.annotation_indices().await, ["annotation-000001", "annotation-000002"]);
    assert_eq!(world.stage().await.as_deref(), Some("keep"), "nothing was changed");
}
