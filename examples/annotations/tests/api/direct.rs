//! The direct path: what is saved is in the index when the answer comes.

use serde_json::json;
use tokio::task::JoinSet;

use crate::world::{World, annotation, eventually, send};

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_is_in_the_index_when_the_answer_comes_and_its_job_is_settled_by_a_later_pass() {
    let world = World::new().await;
    let saved = world.send("POST", "/api/annotations", Some(annotation(json!({})))).await;
    assert_eq!((saved.status, saved.header("catchword-direct")), (201, Some("indexed")));
    let id = saved.body["id"].as_str().unwrap();
    let revision = async || world.number(&format!("select catchword_revision from annotation where id = '{id}'")).await;
    let seen = async || world.scratch.index.version(id).await.unwrap();
    assert_eq!(seen().await, Some(revision().await));

    eventually("search shows it", async || world.found("user=acct:mina@test").await == [id]).await;

    assert_eq!(world.jobs().await, 1, "a write is no proof");
    let later = world.pass().await;
    assert_eq!((later.written, later.settled), (0, 1), "{later}");
    assert_eq!(world.jobs().await, 0);

    let path = format!("/api/annotations/{id}");
    let changed = world.send("PATCH", &path, Some(json!({ "text": "changed" }))).await;
    assert_eq!(changed.header("catchword-direct"), Some("indexed"));
    assert_eq!(seen().await, Some(revision().await));
    let later = world.pass().await;
    assert_eq!((later.written, later.settled), (0, 1), "{later}");
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_annotation_is_gone_from_the_index_when_the_answer_comes() {
    let world = World::new().await;
    let id = world.save(json!({})).await;
    let kept = world.save(json!({})).await;
    let deleted = world.send("DELETE", &format!("/api/annotations/{id}"), None).await;
    assert_eq!((deleted.status, deleted.header("catchword-direct")), (200, Some("indexed")));
    let revision = world.number(&format!("select catchword_revision from annotation where id = '{id}'")).await;
    assert_eq!(world.scratch.index.version(&id).await.unwrap(), Some(revision + 1), "a tombstone");
    world.finds("user=acct:mina@test", &[&kept]).await;
    world.settle_everything().await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_at_once_are_all_served_and_all_found() {
    let world = World::new().await;
    let mut clients = JoinSet::new();
    for n in 0..200 {
        let (client, url) = (world.client.clone(), world.url().to_owned());
        let body = annotation(json!({ "userid": "acct:crowd@test", "target_uri": format!("https://test.example/{}", n % 7) }));
        clients.spawn(async move { send(&client, &url, "POST", "/api/annotations", Some(body.to_string().into_bytes())).await });
    }
    let answers = clients.join_all().await;
    assert!(answers.iter().all(|answer| answer.status == 201));
    let mut wanted: Vec<&str> = answers.iter().map(|answer| answer.body["id"].as_str().unwrap()).collect();
    world.settle_everything().await;
    world.both_sides_agree().await;
    let mut found = world.found("user=acct:crowd@test&limit=200").await;
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
}
