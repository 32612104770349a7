//! Save, read, change, delete: every route with good and bad input.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Answer, World, annotation};

/// The largest body, as the README says it.
const MAX_BODY_BYTES: usize = 64 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_can_be_read_changed_and_deleted() {
    let world = World::new().await;
    let parent = Uuid::new_v4().to_string();

    let saved = world
        .send(
            "POST",
            "/api/annotations",
            Some(json!({
                "userid": "acct:mina@test", "target_uri": "http://Test.example/a/#top", "groupid": "g1", "text": "Why?\nI “wonder” \u{1F914}",
                "tags": ["To Read", "b"], "references": [parent], "shared": false, "document": { "title": "A page" },
            })),
        )
        .await;
    assert_eq!(saved.status, 201, "{}", saved.body);
    let id = saved.body["id"].as_str().unwrap().to_owned();
    let path = format!("/api/annotations/{id}");
    assert_eq!(saved.header("location"), Some(path.as_str()));
    assert_eq!(saved.header("content-type"), Some("application/json"));
    for (field, value) in [
        ("userid", json!("acct:mina@test")),
        ("target_uri", json!("http://Test.example/a/#top")),
        ("target_uri_normalized", json!("https://test.example/a")),
        ("groupid", json!("g1")),
        ("text", json!("Why?\nI “wonder” \u{1F914}")),
        ("tags", json!(["To Read", "b"])),
        ("references", json!([parent])),
        ("shared", json!(false)),
        ("document", json!({ "title": "A page", "web_uri": "https://test.example/a" })),
    ] {
        assert_eq!(saved.body[field], value, "{field}");
    }

    let read = world.send("GET", &path, None).await;
    assert_eq!((read.status, &read.body), (200, &saved.body));

    let changed = world.send("PATCH", &path, Some(json!({ "text": "Because.", "tags": [], "target_uri": "https://test.example/b" }))).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!((&changed.body["text"], &changed.body["tags"]), (&json!("Because."), &json!([])));
    assert_eq!(changed.body["document"]["web_uri"], "https://test.example/b");
    assert_eq!((&changed.body["userid"], &changed.body["groupid"]), (&json!("acct:mina@test"), &json!("g1")));
    assert_eq!(changed.body["created"], saved.body["created"]);
    assert!(changed.body["updated"].as_str() > saved.body["updated"].as_str());
    assert_eq!(world.send("GET", &path, None).await.body, changed.body);

    let deleted = world.send("DELETE", &path, None).await;
    assert_eq!((deleted.status, deleted.body), (200, json!({ "id": id, "deleted": true })));
    for (method, body) in [("GET", None), ("PATCH", Some(json!({ "text": "too late" }))), ("DELETE", None)] {
        let gone = world.send(method, &path, body).await;
        assert_eq!(gone.status, 404, "{method}");
    }
    world.settle_everything().await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_and_a_page_are_enough() {
    let world = World::new().await;
    let saved = world.send("POST", "/api/annotations", Some(annotation(json!({})))).await;
    assert_eq!(saved.status, 201, "{}", saved.body);
    assert_eq!(saved.body["groupid"], "__world__");
    assert_eq!((&saved.body["text"], &saved.body["tags"]), (&json!(""), &json!([])));
    assert_eq!((&saved.body["shared"], &saved.body["references"]), (&json!(true), &json!([])));
    assert_eq!(saved.body["document"]["title"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_reaches_the_first_annotation_of_its_thread() {
    let world = World::new().await;
    let first = world.save(json!({})).await;
    let answer = world.save(json!({ "references": [first] })).await;
    let later = world.save(json!({ "references": [first, answer] })).await;
    let mut thread = [answer.as_str(), later.as_str()];
    thread.sort_unstable();
    world.settle_everything().await;
    world.both_sides_agree().await;
    let shown = async || world.send("GET", &format!("/api/annotations/{first}"), None).await.body["thread_ids"].clone();
    assert_eq!(shown().await, json!(thread));
    assert_eq!(world.send("DELETE", &format!("/api/annotations/{later}"), None).await.status, 200);
    world.settle_everything().await;
    world.both_sides_agree().await;
    assert_eq!(shown().await, json!([answer]));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_400_names_the_field_and_saves_nothing() {
    let world = World::new().await;
    let id = world.save(json!({ "userid": "acct:untouched@test" })).await;
    let before = world.send("GET", &format!("/api/annotations/{id}"), None).await.body;
    let rows = world.number("select count(*) from annotation").await;

    for (more, field) in [
        (json!({ "userid": 7 }), "userid"),
        (json!({ "userid": "" }), "userid"),
        (json!({ "userid": "x".repeat(513) }), "userid"),
        (json!({ "target_uri": "nowhere" }), "target_uri"),
        (json!({ "target_uri": "javascript:alert(1)" }), "target_uri"),
        (json!({ "target_uri": format!("https://test.example/{}", "x".repeat(2_048)) }), "target_uri"),
        (json!({ "text": "nul \u{0}" }), "text"),
        (json!({ "text": null }), "text"),
        (json!({ "tags": "one" }), "tags"),
        (json!({ "tags": vec!["t"; 101] }), "tags"),
        (json!({ "references": ["7"] }), "references"),
        (json!({ "shared": "yes" }), "shared"),
        (json!({ "document": { "title": "" } }), "document.title"),
        (json!({ "txt": "misspelled" }), "txt"),
        (json!({ "id": id }), "id"),
    ] {
        is_refused(&world.send("POST", "/api/annotations", Some(annotation(more))).await, field);
    }
    is_refused(&world.send("POST", "/api/annotations", Some(json!({ "target_uri": "https://test.example" }))).await, "userid");
    is_refused(&world.send("POST", "/api/annotations", Some(json!({ "userid": "u" }))).await, "target_uri");

    let path = format!("/api/annotations/{id}");
    for (change, field) in [
        (json!({ "userid": "acct:thief@test" }), "userid"),
        (json!({ "deleted": true }), "deleted"),
        (json!({ "target_uri": "" }), "target_uri"),
        (json!({ "groupid": "" }), "groupid"),
        (json!({ "shared": 1 }), "shared"),
        (json!({}), "body"),
    ] {
        is_refused(&world.send("PATCH", &path, Some(change)).await, field);
    }

    for body in [&b""[..], b"{", b"[]", b"null", b"\xff\xfe", b"{\"userid\": \"\\ud800\"}"] {
        is_refused(&world.send_bytes("POST", "/api/annotations", Some(body.to_vec())).await, "body");
        is_refused(&world.send_bytes("PATCH", &path, Some(body.to_vec())).await, "body");
    }

    assert_eq!(world.number("select count(*) from annotation").await, rows);
    assert_eq!(world.send("GET", &path, None).await.body, before);
}

fn is_refused(answer: &Answer, field: &str) {
    assert_eq!((answer.status, &answer.body["field"]), (400, &json!(field)), "{}", answer.body);
    assert!(answer.body["error"].as_str().unwrap().starts_with(field), "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_404_and_what_cannot_be_done_is_405() {
    let world = World::new().await;
    for id in [&Uuid::new_v4().to_string()[..], "7", "%00", "%ff", "annotation'; drop table annotation; --"] {
        let path = format!("/api/annotations/{id}");
        for (method, body) in [("GET", None), ("PATCH", Some(json!({ "text": "x" }))), ("DELETE", None)] {
            let answer = world.send(method, &path, body).await;
            assert_eq!(answer.status, 404, "{method} {path}");
            assert!(answer.body["error"].is_string(), "{method} {path}: {}", answer.body);
        }
    }
    for path in ["/", "/api", "/api/annotations/", "/api/search/x", "/api/annotations/a/b"] {
        let answer = world.send("GET", path, None).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body["error"].is_string(), "{path}: {}", answer.body);
    }
    for (method, path, allowed) in [
        ("GET", "/api/annotations", "POST"),
        ("PUT", "/api/annotations/7", "DELETE"),
        ("POST", "/api/search", "GET"),
        ("DELETE", "/healthz", "GET"),
    ] {
        let answer = world.send(method, path, None).await;
        assert_eq!(answer.status, 405, "{method} {path}");
        assert!(answer.body["error"].is_string(), "{method} {path}: {}", answer.body);
        assert!(answer.header("allow").is_some_and(|allow| allow.contains(allowed)), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_64_kib_is_taken_and_one_byte_more_is_413() {
    let world = World::new().await;
    let padded = |size: usize| {
        let empty = annotation(json!({ "text": "" })).to_string().len();
        annotation(json!({ "text": "x".repeat(size - empty) })).to_string().into_bytes()
    };
    let largest = world.send_bytes("POST", "/api/annotations", Some(padded(MAX_BODY_BYTES))).await;
    assert_eq!(largest.status, 201, "{}", largest.body);
    let path = format!("/api/annotations/{}", largest.body["id"].as_str().unwrap());
    for (method, path) in [("POST", "/api/annotations"), ("PATCH", &path)] {
        let answer = world.send_bytes(method, path, Some(padded(MAX_BODY_BYTES + 1))).await;
        assert_eq!((answer.status, &answer.body["field"]), (413, &json!("body")), "{method}");
    }
    world.settle_everything().await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_writers_of_one_new_page_both_succeed_and_share_it() {
    let world = World::new().await;
    let save = |n: usize| world.save(json!({ "target_uri": "https://test.example/contested", "text": format!("writer {n}") }));
    tokio::join!(save(0), save(1), save(2), save(3));
    let pages = "select count(*) from document where web_uri = 'https://test.example/contested'";
    assert_eq!(world.number(pages).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_title_names_a_page_that_has_none_and_renames_no_other() {
    let world = World::new().await;
    let title = async |id: &str| world.send("GET", &format!("/api/annotations/{id}"), None).await.body["document"]["title"].clone();
    let first = world.save(json!({})).await;
    assert_eq!(title(&first).await, Value::Null);
    let second = world.save(json!({ "document": { "title": "Named" } })).await;
    assert_eq!(title(&first).await, "Named");
    let third = world.save(json!({ "document": { "title": "Renamed by a stranger" } })).await;
    assert_eq!(title(&first).await, "Named");
    world.settle_everything().await;
    world.finds("q=named", &[&third, &second, &first]).await;
    world.finds("q=stranger", &[]).await;
    world.both_sides_agree().await;
}
