//! Search: what it finds, in which order, and what it refuses.

use serde_json::{Value, json};

use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn each_parameter_narrows_the_search() {
    let world = World::new().await;
    let save = async |user: &str, group: &str, tags: Value, text: &str, page: &str| {
        let more =
            json!({ "userid": user, "groupid": group, "tags": tags, "text": text, "target_uri": page, "document": { "title": "Quokkas" } });
        world.save(more).await
    };
    let a = save("acct:a@test", "g1", json!(["Red", "round"]), "the quick fox", "https://test.example/1").await;
    let b = save("acct:b@test", "g1", json!(["red"]), "the slow fox", "https://test.example/2").await;
    let c = save("acct:a@test", "g2", json!([]), "", "https://test.example/2").await;

    let (a, b, c) = (a.as_str(), b.as_str(), c.as_str());
    world.finds("q=quokkas", &[c, b, a]).await;
    for (query, wanted) in [
        ("user=acct:a@test", vec![c, a]),
        ("user=acct:A@test", vec![]),
        ("group=g1", vec![b, a]),
        ("tag=RED", vec![b, a]),
        ("tag=red&tag=round", vec![a]),
        ("q=FOX", vec![b, a]),
        ("q=fox+quick", vec![a]),
        ("q=fox+quokkas", vec![b, a]),
        ("q=fox+wombat", vec![]),
        ("url=https://test.example/2", vec![c, b]),
        ("url=https://test.example/2&user=acct:a@test", vec![c]),
        ("user=acct:a@test&group=g1&tag=round&q=quick&url=https://test.example/1", vec![a]),
        ("user=nobody", vec![]),
        // what a client types stays a value: no wildcard, no query language, no JSON
        ("user=*", vec![]),
        ("user=%22%7D%7D", vec![]),
        ("user=a%00b", vec![]),
        ("q=text:fox+OR+*", vec![]),
    ] {
        assert_eq!(world.found(query).await, wanted, "{query}");
    }
    let everything = world.send("GET", "/api/search", None).await.body;
    assert_eq!(everything["total"].as_u64().unwrap(), world.number("select count(*) from annotation").await as u64);
    assert_eq!(everything["rows"][0], world.send("GET", &format!("/api/annotations/{c}"), None).await.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_spellings_of_one_address_meet() {
    let world = World::new().await;
    let a = world.save(json!({ "target_uri": "http://Test.example:80/Some/Page/#part" })).await;
    let b = world.save(json!({ "target_uri": "https://test.example/Some/Page" })).await;
    let other = world.save(json!({ "target_uri": "https://test.example/some/page" })).await;
    world.finds("url=https://test.example/some/page", &[&other]).await;
    for spelling in [
        "https://test.example/Some/Page",
        "http://test.example/Some/Page/",
        "HTTP://TEST.example:80/Some/Page//",
        "https://test.example:443/Some/Page%23elsewhere",
        "http://test.example/Some/./Page",
        "https://test.example/Some/Page?",
    ] {
        world.finds(&format!("url={spelling}"), &[&b, &a]).await;
    }
    for different in ["https://test.example/Some/Page?x=1", "https://www.test.example/Some/Page", "https://test.example:8443/Some/Page"] {
        assert!(world.found(&format!("url={different}")).await.is_empty(), "{different}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_changed_comes_first() {
    let world = World::new().await;
    let a = world.save(json!({})).await;
    let b = world.save(json!({})).await;
    let c = world.save(json!({})).await;
    world.finds("user=acct:mina@test", &[&c, &b, &a]).await;
    let changed = world.send("PATCH", &format!("/api/annotations/{a}"), Some(json!({ "text": "again" }))).await;
    assert_eq!(changed.status, 200);
    world.finds("user=acct:mina@test", &[&a, &c, &b]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_without_gap_or_overlap_within_their_bounds() {
    let world = World::new().await;
    // all of one moment: only the id can decide the order
    world
        .sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:many@test', 'https://test.example', 'https://test.example/' from generate_series(1, 250)")
        .await;
    world.settle_everything().await;
    let page = async |query: &str| world.found(&format!("user=acct:many@test&{query}")).await;
    crate::world::eventually("all 250 are found", async || {
        page("limit=200").await.len() == 200 && page("limit=200&offset=200").await.len() == 50
    })
    .await;

    let mut all = Vec::new();
    for offset in (0..250).step_by(60) {
        all.extend(page(&format!("limit=60&offset={offset}")).await);
    }
    assert_eq!(all.len(), 250);
    assert_eq!(all[..200], page("limit=200").await);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 250, "no overlap");
    assert_eq!(page("").await.len(), 20, "unless the client says");
    assert_eq!(page("offset=9980").await.len(), 0);
    let none = world.send("GET", "/api/search?user=acct:many@test&limit=0", None).await.body;
    assert_eq!(none, json!({ "total": 250, "rows": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_search_is_400_and_names_the_parameter() {
    let world = World::new().await;
    let long = "x".repeat(2_049);
    let many_tags = vec!["tag=t"; 1_500].join("&");
    for (query, field) in [
        ("limit=201", "limit"),
        ("limit=-1", "limit"),
        ("limit=", "limit"),
        ("limit=1e2", "limit"),
        ("offset=-1", "offset"),
        ("offset=10001", "offset"),
        ("offset=9990&limit=20", "offset"),
        ("offset=18446744073709551616", "offset"),
        ("url=example.org", "url"),
        ("url=", "url"),
        ("user=a&user=b", "user"),
        ("uri=https://example.org", "uri"),
        (&format!("q={long}"), "q"),
        (&format!("tag={long}"), "tag"),
        (&many_tags, "tag"),
    ] {
        let answer = world.send("GET", &format!("/api/search?{query}"), None).await;
        let shown = &query[..query.len().min(60)];
        assert_eq!((answer.status, &answer.body["field"]), (400, &json!(field)), "{shown}: {}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_search_that_is_taken_is_answered() {
    let world = World::new().await;
    let words: Vec<String> = (0..1_000).map(|n| format!("{n:x}")).collect();
    let mut q = words.join("+");
    q.truncate(2_048);
    let tags = vec!["tag=t"; 100].join("&");
    for query in [format!("q={q}"), tags] {
        let answer = world.send("GET", &format!("/api/search?{query}"), None).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}
