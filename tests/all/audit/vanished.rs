//! A document that somebody deleted from the index past catchword.

use serde_json::json;

use crate::common::World;

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
    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!((outcome.touched, outcome.buried), (1, 0), "a higher number is drawn, and nobody waits for the minute: {outcome}");
    assert_eq!(world.jobs().await, 0);
    world.intent_is_durable().await;
    assert_eq!(world.found("annotation").await, [key]);
    world.settle_and_compare().await;
}
