//! The loop: one test per verdict, end to end.

use serde_json::json;

use crate::common::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_document_is_written_now_and_settled_by_the_next_pass() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "hello").await;

    let first = world.pass().await;
    assert_eq!((first.written, first.settled, first.left), (1, 0, 1), "{first}");
    assert_eq!(first.verdicts, [("missing", 1)].into());
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));

    let second = world.pass().await;
    assert_eq!((second.written, second.settled), (0, 1), "{second}");
    assert_eq!(second.verdicts, [("current", 1)].into());
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.found("annotation").await, [key.clone()]);
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("hello"));
    world.noise_is_untouched().await;
}
