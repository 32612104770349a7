//! Waiting for search, asking whether it shows an annotation, and repeating a request without saving twice.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::world::{Answer, World, annotation, eventually, number, send_with};

impl World {
    /// Saves under a key.
    async fn post(&self, path: &str, key: &str, body: Value) -> Answer {
        post(self.client.clone(), self.url().to_owned(), path, key, body).await
    }

    async fn status(&self, id: &str) -> Value {
        let answer = self.send("GET", &format!("/api/annotations/{id}/search-status"), None).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body["id"], id);
        answer.body
    }

    async fn annotations(&self) -> i64 {
        self.number("select count(*) from annotation").await
    }
}

async fn post(client: reqwest::Client, url: String, path: &str, key: &str, body: Value) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", key.parse().unwrap());
    send_with(&client, &url, "POST", path, headers, Some(body.to_string().into_bytes())).await
}

/// Sends it again while the answer is not what is waited for, up to twenty times.
async fn repeated(send: impl AsyncFn() -> Answer, done: impl Fn(&Answer) -> bool) -> Answer {
    let mut answer = send().await;
    for _ in 0..20 {
        if done(&answer) {
            break;
        }
        answer = send().await;
    }
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_waited_for_search_is_found_by_the_next_search() {
    let world = World::new().await;
    // a busy machine may take longer than the service waits, and then says so
    let save = async || world.send("POST", "/api/annotations?wait=searchable", Some(annotation(json!({ "userid": "acct:w" })))).await;
    let saved = repeated(save, |saved| saved.status != 201 || saved.body["searchable"] == true).await;
    assert_eq!((saved.status, &saved.body["searchable"]), (201, &json!(true)), "{}", saved.body);
    let id = saved.body["id"].as_str().unwrap();
    assert!(world.found("user=acct:w").await.contains(&id.to_owned()), "at once, without another wait");
    let read = world.send("GET", &format!("/api/annotations/{id}"), None).await;
    assert_eq!((read.status, read.body.get("searchable")), (200, None), "it is no part of the annotation");
    for key in read.body.as_object().unwrap().keys() {
        assert_eq!(saved.body[key], read.body[key], "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_elasticsearch_it_is_saved_after_the_limit_and_not_searchable() {
    let world = World::new().await;
    world.gate.close();
    let saved = world.send("POST", "/api/annotations?wait=searchable", Some(annotation(json!({})))).await;
    assert_eq!((saved.status, &saved.body["searchable"]), (201, &json!(false)), "{}", saved.body);
    assert!((Duration::from_millis(1_900)..Duration::from_secs(15)).contains(&saved.took), "{:?}", saved.took);
    let id = saved.body["id"].as_str().unwrap().to_owned();
    let status = world.status(&id).await;
    assert_eq!((&status["status"], &status["searchable"]), (&json!("waiting"), &json!(false)), "{status}");
    world.gate.open();
    world.settle_everything().await;
    eventually("search shows it", async || world.status(&id).await["status"] == "searchable").await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_follows_an_annotation_until_it_is_gone() {
    let world = World::new().await;
    let id = world.save(json!({ "userid": "acct:s" })).await;
    eventually("search shows it", async || world.status(&id).await["searchable"] == true).await;
    let first = world.status(&id).await;
    assert_eq!((&first["status"], &first["reason"]), (&json!("searchable"), &Value::Null));
    assert_eq!(world.found("user=acct:s").await, [id.as_str()]);

    world.sql(&format!("update annotation set text = 'by psql' where id = '{id}'")).await;
    let changed = world.status(&id).await;
    assert_eq!((&changed["status"], &changed["searchable"]), (&json!("waiting"), &json!(false)), "search shows it as it was");
    assert!(changed["revision"].as_i64() > first["revision"].as_i64());
    world.settle_everything().await;
    eventually("search shows the change", async || world.status(&id).await["status"] == "searchable").await;

    assert_eq!(world.send("DELETE", &format!("/api/annotations/{id}"), None).await.status, 200);
    world.settle_everything().await;
    eventually("search no longer finds it", async || world.status(&id).await["status"] == "gone").await;
    assert_eq!((world.status(&id).await["searchable"].clone(), world.found("user=acct:s").await.len()), (json!(false), 0));

    for unknown in [Uuid::new_v4().to_string(), "not-an-id".to_owned()] {
        let answer = world.send("GET", &format!("/api/annotations/{unknown}/search-status"), None).await;
        assert_eq!(answer.status, 404, "{}", answer.body);
    }
    assert_eq!(world.send("POST", &format!("/api/annotations/{id}/search-status"), None).await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_what_was_saved_and_another_annotation_under_its_key_is_refused() {
    let world = World::new().await;
    let before = world.annotations().await;
    let first = world.post("/api/annotations", "k1", annotation(json!({ "text": "once", "tags": ["a"] }))).await;
    assert_eq!(first.status, 201, "{}", first.body);
    // the same request, written otherwise, and with a wait
    let again =
        world.post("/api/annotations?wait=searchable", "k1", annotation(json!({ "tags": ["a"], "text": "once", "shared": true }))).await;
    assert_eq!((again.status, &again.body["id"]), (200, &first.body["id"]), "{}", again.body);
    assert_eq!(again.header("location"), first.header("location"));
    assert!(again.body["searchable"].is_boolean());
    let other = world.post("/api/annotations", "k1", annotation(json!({ "text": "twice" }))).await;
    assert_eq!((other.status, &other.body["field"]), (422, &json!("Idempotency-Key")), "{}", other.body);
    assert!(other.body["error"].as_str().unwrap().contains("take a new key"), "{}", other.body);
    // another user's key is another key, and without a key each request is its own
    let mina = world.post("/api/annotations", "k1", annotation(json!({ "userid": "acct:other", "text": "once", "tags": ["a"] }))).await;
    assert_eq!(mina.status, 201, "{}", mina.body);
    world.save(json!({ "text": "once" })).await;
    world.save(json!({ "text": "once" })).await;
    assert_eq!(world.annotations().await - before, 4);

    // ten at once: one saves, all get it
    let body = annotation(json!({ "text": "at once" }));
    let mut asking = JoinSet::new();
    for _ in 0..10 {
        asking.spawn(post(world.client.clone(), world.url().to_owned(), "/api/annotations", "k2", body.clone()));
    }
    let answers = asking.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert!(answers.iter().all(|answer| answer.body["id"] == answers[0].body["id"] && matches!(answer.status, 200 | 201)), "{answers:?}");
    assert_eq!(world.annotations().await - before, 5);

    // a key is kept for a day, and then forgotten in passing; what was deleted meanwhile is not saved again
    let id = first.body["id"].as_str().unwrap();
    world.send("DELETE", &format!("/api/annotations/{id}"), None).await;
    let deleted = world.post("/api/annotations", "k1", annotation(json!({ "text": "once", "tags": ["a"] }))).await;
    assert_eq!(deleted.status, 404, "{}", deleted.body);
    world.sql("update idempotency_key set created = now() - interval '25 hours'").await;
    world.post("/api/annotations", "k3", annotation(json!({}))).await;
    assert_eq!(world.number("select count(*) from idempotency_key").await, 1);
    world.settle_everything().await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_was_lost_is_repeated_and_saves_once() {
    let world = World::new().await;
    let before = world.annotations().await;
    // a commit waits for the test, so that its answer can be lost
    world
        .sql(
            "create function held() returns trigger language plpgsql as $$ begin
               if new.text = 'lost' then perform pg_advisory_xact_lock(77); end if; return null; end $$",
        )
        .await;
    world
        .sql("create constraint trigger held after insert on annotation deferrable initially deferred for each row execute function held()")
        .await;
    let mut holder = world.scratch.connect().await.unwrap();
    sqlx::raw_sql("select pg_advisory_lock(77)").execute(&mut holder).await.unwrap();
    let lose = async {
        let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'";
        let mut watcher = world.scratch.connect().await.unwrap();
        eventually("the commit is under way", async || number(&mut watcher, waits).await == 1).await;
        world.postgres_gate.close();
        sqlx::raw_sql("select pg_advisory_unlock(77)").execute(&mut holder).await.unwrap();
        let saved = "select count(*) from annotation where text = 'lost'";
        eventually("it is committed", async || number(&mut watcher, saved).await == 1).await;
        world.postgres_gate.open();
    };
    let body = annotation(json!({ "text": "lost" }));
    let (lost, ()) = tokio::join!(world.post("/api/annotations", "k", body.clone()), lose);
    assert_eq!(lost.status, 500, "{}", lost.body);
    assert!(lost.body["error"].as_str().unwrap().contains("the same Idempotency-Key"), "{}", lost.body);
    // the pool may still hold connections that were cut
    let again = repeated(async || world.post("/api/annotations", "k", body.clone()).await, |again| again.status < 500).await;
    assert_eq!((again.status, &again.body["text"]), (200, &json!("lost")), "{}", again.body);
    assert_eq!(world.annotations().await - before, 1);
    world.settle_everything().await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_or_a_key_that_makes_no_sense_is_refused_and_saves_nothing() {
    let world = World::new().await;
    let before = world.annotations().await;
    for (query, field, says) in [
        ("wait=forever", "wait", "must be searchable"),
        ("wait=", "wait", "wait=searchable"),
        ("wait=searchable&wait=no", "wait", "must be searchable"),
        ("wiat=searchable", "wiat", "what can be given is wait=searchable"),
    ] {
        let refused = world.send("POST", &format!("/api/annotations?{query}"), Some(annotation(json!({})))).await;
        assert_eq!((refused.status, &refused.body["field"]), (400, &json!(field)), "{query}: {}", refused.body);
        assert!(refused.body["error"].as_str().unwrap().contains(says), "{query}: {}", refused.body);
    }
    for key in ["", &"x".repeat(256)] {
        let refused = world.post("/api/annotations", key, annotation(json!({}))).await;
        assert_eq!((refused.status, &refused.body["field"]), (400, &json!("Idempotency-Key")), "{}", refused.body);
    }
    let mut twice = HeaderMap::new();
    twice.append("idempotency-key", "a".parse().unwrap());
    twice.append("idempotency-key", "b".parse().unwrap());
    let body = Some(annotation(json!({})).to_string().into_bytes());
    let refused = send_with(&world.client, world.url(), "POST", "/api/annotations", twice, body).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert_eq!(world.annotations().await, before);
}
