//! A document that somebody deleted from the index past catchword.

use serde_json::json;

use crate::common::{World, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_somebody_deleted_is_brought_back_by_reindex() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "here to stay").await;
    let index = world.index("annotation");
    // Elasticsearch remembers a real delete for a minute, under the next version: until then it refuses ours (409)
    let (status, answer) = world.http("DELETE", &format!("/{index}/_doc/{key}"), None).await;
    assert_eq!((status, &answer["result"]), (200, &json!("deleted")), "{answer}");
    let (code, out, _) = world.run(&["explain", "annotation", &key]).await;
    assert!(code == 1 && out.contains("missing"), "{out}");

    let (code, _, said) = world.run(&["reindex", "annotation", "--ids", &key]).await;
    assert_eq!(code, 0, "{said}");
    for _ in 0..10 {
        let outcome = world.pass().await;
        assert_eq!(
            (outcome.conflicts, outcome.left, outcome.pushed_back, outcome.buried),
            (1, 1, 0, 0),
            "left, and nobody charged: {outcome}"
        );
        assert!(!outcome.moved(), "a tick ends: {outcome}");
    }
    world.intent_is_durable().await;

    let (status, answer) = world.http("PUT", &format!("/{index}/_settings"), Some(json!({ "index.gc_deletes": "1ms" }))).await;
    assert_eq!(status, 200, "{answer}");
    eventually("it is written when the delete is forgotten", async || {
        world.http("POST", &format!("/{index}/_refresh"), None).await;
        world.catchword.drain("test", &["annotation"]).await.unwrap();
        world.jobs().await == 0
    })
    .await;
    assert_eq!(world.found("annotation").await, [key]);
    world.settle_and_compare().await;
}
