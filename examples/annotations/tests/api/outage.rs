//! A server is down: what is saved is saved, what cannot be answered says so, and afterwards everything is found.

use std::time::Duration;

use serde_json::json;

use crate::world::{Answer, World, annotation, eventually};

/// What the direct path may take, and as much again for everything else on a busy machine.
const LIMIT: Duration = Duration::from_secs(2);
/// A write that does not wait for Elasticsearch at all.
const FAST: Duration = Duration::from_millis(700);

#[tokio::test(flavor = "multi_thread")]
async fn with_elasticsearch_refusing_writes_succeed_at_once_and_are_found_when_it_is_back() {
    let world = World::new().await;
    let before = world.save(json!({ "text": "before" })).await;
    world.finds("user=acct:mina@test", &[&before]).await;

    world.gate.close();
    let mut saved = vec![before.clone()];
    for n in 0..10 {
        let answer = world.send("POST", "/api/annotations", Some(annotation(json!({ "text": n.to_string() })))).await;
        is_left(&answer, 201);
        assert!(answer.took < FAST, "took {:?}", answer.took);
        saved.push(answer.body["id"].as_str().unwrap().to_owned());
    }
    let changed = world.send("PATCH", &format!("/api/annotations/{}", saved[1]), Some(json!({ "text": "changed" }))).await;
    is_left(&changed, 200);
    let deleted = world.send("DELETE", &format!("/api/annotations/{before}"), None).await;
    is_left(&deleted, 200);
    let read = world.send("GET", &format!("/api/annotations/{}", saved[1]), None).await;
    assert_eq!((read.status, &read.body["text"]), (200, &json!("changed")));
    says_search_is_away(&world).await;
    assert!(world.pass().await.settled == 0, "what cannot be looked at is not settled");
    assert_eq!(world.send("GET", "/healthz", None).await.status, 200);

    world.gate.open();
    world.settle_everything().await;
    let wanted: Vec<&str> = [1].into_iter().chain((2..saved.len()).rev()).map(|n| saved[n].as_str()).collect();
    world.finds("user=acct:mina@test", &wanted).await;
    world.both_sides_agree().await;
    eventually("the direct path is back too", async || {
        let after = world.send("POST", "/api/annotations", Some(annotation(json!({})))).await;
        after.header("catchword-direct") == Some("indexed")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_elasticsearch_frozen_a_write_waits_a_second_at_most_and_only_until_the_breaker_opens() {
    let world = World::new().await;
    world.gate.freeze();
    // three that get no answer open the breaker
    for _ in 0..3 {
        let answer = world.send("POST", "/api/annotations", Some(annotation(json!({})))).await;
        is_left(&answer, 201);
        assert!(answer.took < LIMIT, "took {:?}", answer.took);
    }
    for _ in 0..10 {
        let answer = world.send("POST", "/api/annotations", Some(annotation(json!({})))).await;
        is_left(&answer, 201);
        assert!(answer.took < FAST, "took {:?}", answer.took);
    }
    says_search_is_away(&world).await;

    world.gate.open();
    world.settle_everything().await;
    crate::world::eventually("all are found", async || world.found("user=acct:mina@test").await.len() == 13).await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_postgres_away_every_route_that_needs_it_says_503_and_search_goes_on() {
    let world = World::new().await;
    let id = world.save(json!({})).await;
    world.finds("user=acct:mina@test", &[&id]).await;
    let path = format!("/api/annotations/{id}");

    world.postgres_gate.close();
    // side by side: each waits as long as the pool does
    let (read, saved, changed, deleted) = tokio::join!(
        world.send("GET", &path, None),
        world.send("POST", "/api/annotations", Some(annotation(json!({})))),
        world.send("PATCH", &path, Some(json!({ "text": "x" }))),
        world.send("DELETE", &path, None),
    );
    for answer in [read, saved, changed, deleted] {
        is_away(&answer, Duration::from_secs(15));
    }
    assert_eq!(world.found("user=acct:mina@test").await, [id.as_str()]);

    world.postgres_gate.open();
    crate::world::eventually("it is read again", async || world.send("GET", &path, None).await.status == 200).await;
    world.save(json!({})).await;
    world.settle_everything().await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_every_connection_taken_a_request_is_503_and_no_hang() {
    let world = World::new().await;
    let id = world.save(json!({})).await;
    let path = format!("/api/annotations/{id}");
    let pool = world.catchword.pool();
    let mut taken = Vec::new();
    for _ in 0..pool.options().get_max_connections() {
        taken.push(pool.acquire().await.unwrap());
    }
    let (read, saved) = tokio::join!(world.send("GET", &path, None), world.send("POST", "/api/annotations", Some(annotation(json!({})))),);
    for answer in [read, saved] {
        is_away(&answer, Duration::from_secs(15));
    }
    drop(taken);
    assert_eq!(world.send("GET", &path, None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_holds_is_503_and_not_a_fault_of_the_service() {
    let world = World::new().await;
    let id = world.save(json!({})).await;
    let mut holder = world.scratch.connect().await.unwrap();
    sqlx::raw_sql("begin; update annotation set text = 'held'").execute(&mut holder).await.unwrap();
    let answer = world.send("PATCH", &format!("/api/annotations/{id}"), Some(json!({ "text": "x" }))).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.body["error"], "somebody else is changing this at the moment");
    sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    let answer = world.send("PATCH", &format!("/api/annotations/{id}"), Some(json!({ "text": "x" }))).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

async fn says_search_is_away(world: &World) {
    let answer = world.send("GET", "/api/search?user=acct:mina@test", None).await;
    is_away(&answer, LIMIT);
}

fn is_left(answer: &Answer, status: u16) {
    assert_eq!((answer.status, answer.header("catchword-direct")), (status, Some("left")), "{}", answer.body);
}

fn is_away(answer: &Answer, within: Duration) {
    assert_eq!(answer.status, 503, "{}", answer.body);
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert!(answer.body["error"].as_str().unwrap().contains("down for the moment"), "{}", answer.body);
    assert!(answer.took < within, "took {:?}", answer.took);
}
