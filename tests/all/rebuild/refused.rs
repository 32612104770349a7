//! What a rebuild refuses: each with a sentence, and nothing changed.

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::common::{Layout, Server, World};

/// It is refused with this in its sentence; there is one index, and no rebuild is written down.
async fn refused(world: &World, words: &[&str], sentence: &str) {
    let (code, said, errors) = world.run(words).await;
    assert_eq!(code, 2, "{said}{errors}");
    assert!(errors.contains(sentence), "{errors}");
    nothing_is_changed(world).await;
}

async fn nothing_is_changed(world: &World) {
    assert_eq!(world.annotation_indices().await, ["annotation-000001"]);
    assert_eq!(world.one::<i64>("select count(*) from catchword.rebuild").await, 0);
    assert_eq!(world.one::<i64>("select count(*) from catchword.reindex").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mapping_that_elasticsearch_or_catchword_refuses() {
    let world = World::new().await;
    let bad = world.mapping(|file| file["mappings"]["properties"]["text"] = json!({ "type": "nosuch" }));
    refused(&world, &["rebuild", "annotation", "--mapping", &bad], "nothing was changed, correct the mapping").await;
    let dynamic = world.mapping(|file| file["mappings"]["dynamic"] = json!(true));
    refused(&world, &["rebuild", "annotation", "--mapping", &dynamic], "write \"strict\"").await;
    refused(&world, &["rebuild", "annotation", "--mapping", "/nowhere.json"], "cannot be read").await;
    refused(&world, &["rebuild", "annotation", "--keep", "0s"], "say --yes").await;
    refused(&world, &["rebuild", "annotation", "--keep", "soon"], "write a span of time").await;
    refused(&world, &["rebuild", "annotation", "--back"], "no rebuild of annotation is under way").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_whose_keys_are_not_unique() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    let view: String = world.one("select rtrim(pg_get_viewdef('annotation_document'), ';')").await;
    world.sql(&format!("create or replace view annotation_document as {view} union all {view}")).await;
    refused(&world, super::KEEP, &format!("returns the key {key} more than once")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_cannot_be_worked_on() {
    let world = World::new().await;
    assert_eq!(world.run(&["pause", "annotation", "--reason", "test"]).await.0, 0);
    refused(&world, super::KEEP, "catchword resume annotation").await;
    assert_eq!(world.run(&["resume", "annotation"]).await.0, 0);

    let mut other = PgConnection::connect(&world.database_url).await.unwrap();
    sqlx::query("select pg_advisory_lock(hashtextextended('catchword.rebuild annotation', 0))").execute(&mut other).await.unwrap();
    refused(&world, super::KEEP, "another process").await;
    drop(other);

    world.sql("update catchword.collection set targets = '{}' where name = 'annotation'").await;
    refused(&world, super::KEEP, "has no index yet; run: catchword migrate").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_squats_on_the_name_of_the_alias() {
    let world = World::new().await;
    let (index, alias) = (world.index("annotation"), world.alias("annotation"));
    assert_eq!(world.http("DELETE", &format!("/{index}/_alias/{alias}"), None).await.0, 200);
    assert_eq!(world.http("PUT", &format!("/{alias}"), None).await.0, 200);
    refused(&world, super::KEEP, "is an index, and catchword needs that name for an alias").await;
}

/// A server of its own: what is set for its disks holds for everybody on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_room_for_two() {
    let server = Server::start("").await;
    let world = World::with(Layout { elasticsearch: Some(server.url.clone()), ..Layout::default() }).await;
    world.in_step("acct:a", "x").await;
    world.http("POST", &format!("/{}/_flush", world.index("annotation")), None).await;
    // as much must stay free as no disk has
    let free = "900tb";
    let full = json!({ "threshold_enabled": true, "watermark": { "low": free, "high": free, "flood_stage": free } });
    world.disks(full).await;
    for words in [super::KEEP, &["rebuild", "annotation", "--dry-run"]] {
        refused(&world, words, "make room, or add a node").await;
    }
    world.disks(json!({ "threshold_enabled": null, "watermark.*": null })).await;
    let (code, said, _) = world.run(&["rebuild", "annotation", "--dry-run"]).await;
    assert!(code == 0 && said.contains("would create") && said.contains("annotation-000002"), "{said}");
    nothing_is_changed(&world).await;
}

impl World {
    /// How full disks may be.
    async fn disks(&self, settings: Value) {
        let settings = json!({ "persistent": { "cluster.routing.allocation.disk": settings } });
        let (status, answer) = self.http("PUT", "/_cluster/settings", Some(settings)).await;
        assert_eq!(status, 200, "{answer}");
    }
}
