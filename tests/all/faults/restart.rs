//! A restart of Elasticsearch forgets what it kept in memory. A server of this test's own, because the others share theirs.

use serde_json::json;

use crate::common::{Layout, Server, World};

#[tokio::test(flavor = "multi_thread")]
async fn delete_then_the_late_insert_stays_deleted_also_after_a_restart_of_elasticsearch() {
    let server = Server::start("").await;
    let world = World::with(Layout { elasticsearch: Some(server.url.clone()), ..Layout::default() }).await;
    let key = world.in_step("acct:a", "soon gone").await;
    let life = world.revision(&key).await;
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.jobs().await, 0);
    let tombstone = world.version("annotation", &key).await.unwrap();
    assert_eq!(world.put("annotation", &key, life, json!({ "text": "late" })).await, 409, "before the restart");

    server.restart().await;
    let health = format!("/_cluster/health/{}?wait_for_status=yellow&timeout=60s", world.index("annotation"));
    let (status, answer) = world.http("GET", &health, None).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(world.put("annotation", &key, life, json!({ "text": "late" })).await, 409, "after the restart");
    assert_eq!(world.version("annotation", &key).await, Some(tombstone));
    assert!(world.found("annotation").await.is_empty());
}
