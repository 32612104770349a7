//! The API does what the commands do.

use serde_json::{Value, json};

use super::Api;
use crate::common::{Layout, eventually, start};

#[tokio::test(flavor = "multi_thread")]
async fn what_it_tells_is_what_the_commands_print() {
    let api = Api::new().await;
    let key = api.key("a", &["--role", "reader"]).await;
    let row = api.world.in_step("acct:a", "hello").await;
    let printed = async |words: &[&str]| serde_json::from_str::<Value>(&api.world.run(words).await.1).unwrap();
    /// The names of everything that is in it: times and ages move.
    fn shape(value: &Value) -> Value {
        match value {
            Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
            Value::Array(all) => all.iter().map(shape).collect(),
            Value::Number(_) => json!(0),
            Value::String(text) if text.contains("20") => json!("…"),
            other => other.clone(),
        }
    }
    for (path, words) in [
        ("/status", &["status", "--json"][..]),
        ("/check", &["check", "--json"]),
        ("/journal", &["journal", "--json"]),
        ("/collections/annotation/dead-letters", &["dead", "list", "--collection", "annotation", "--json"]),
    ] {
        let (status, answered) = api.get(&key, path).await;
        assert_eq!((status, shape(&answered)), (200, shape(&printed(words).await)), "{path}");
    }
    let (_, mut explained) = api.get(&key, &format!("/collections/annotation/keys/{row}")).await;
    let mut command = printed(&["explain", "annotation", &row, "--json"]).await;
    assert_eq!(explained["document"], json!(null), "documents are not shown");
    assert!(command["document"].is_object());
    (explained["document"], command["document"]) = (json!(null), json!(null));
    assert_eq!(explained, command);
    let (_, collections) = api.get(&key, "/collections").await;
    let (_, one) = api.get(&key, "/collections/annotation").await;
    assert_eq!(
        (&collections[0]["name"], &one["name"], &one["documents"]),
        (&json!("annotation"), &json!("annotation"), &collections[0]["documents"])
    );

    let shown = Api::with(Layout::default(), &["--show-documents"]).await;
    let key = shown.key("a", &["--role", "reader"]).await;
    let row = shown.world.in_step("acct:a", "hello").await;
    assert!(shown.get(&key, &format!("/collections/annotation/keys/{row}")).await.1["document"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_scheduled_and_waited_for_until_a_producer_must_wait() {
    let layout = Layout { quick: "25ms", ..Layout::default() };
    let api = Api::with(layout, &["--most-due", "50"]).await;
    let writer = api.key("producer", &["--role", "writer"]).await;
    let row = api.world.annotate("acct:a", "x").await;
    api.world.sql("delete from catchword.job").await;
    let (status, scheduled) = api.post(&writer, "/collections/annotation/jobs", json!({ "keys": [row], "tag": "mine" })).await;
    assert_eq!((status, &scheduled["scheduled"]), (202, &json!(1)), "{scheduled}");
    assert!(scheduled["since"].is_string());
    assert_eq!(api.world.all::<String>("select tag from catchword.job where collection = 'annotation'").await, ["mine"]);
    let worker = start(&api.world).await;
    let wait = format!("/collections/annotation/keys/{row}/wait?until=searchable&limit=30s");
    eventually("the collections are read", async || api.get(&writer, &wait).await.0 == 200).await;
    let (_, waited) = api.get(&writer, &wait).await;
    assert_eq!((&waited["became"], &waited["has_come"]), (&json!("searchable"), &json!(true)), "{waited}");
    drop(worker);

    // without a worker the queue grows, up to the limit
    let keys: Vec<String> = (0..40).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    let (mut taken, mut refused) = (0, None);
    for _ in 0..4 {
        let (status, answer) = api.post(&writer, "/collections/annotation/jobs", json!({ "keys": keys })).await;
        match status {
            202 => taken += 1,
            _ => refused = Some((status, answer)),
        }
    }
    let (status, answer) = refused.expect("above the limit nobody schedules");
    assert!(status == 429 && answer["detail"].as_str().unwrap().contains("--most-due") && taken == 2, "{taken} {answer}");
    assert_eq!(api.world.all::<String>("select distinct tag from catchword.job where collection = 'annotation'").await, ["api.producer"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_told_by_its_name() {
    let api = Api::new().await;
    let key = api.key("a", &["--role", "admin"]).await;
    let many: Vec<String> = (0..101).map(|n| n.to_string()).collect();
    for (path, body, field) in [
        ("/collections/annotation/jobs", json!({}), "keys"),
        ("/collections/annotation/jobs", json!({ "keys": "x" }), "keys"),
        ("/collections/annotation/jobs", json!({ "keys": [1] }), "keys[0]"),
        ("/collections/annotation/jobs", json!({ "keys": [] }), "keys"),
        ("/collections/annotation/jobs", json!({ "keys": many }), "keys"),
        ("/collections/annotation/jobs", json!({ "keys": ["no uuid"] }), "keys"),
        ("/collections/annotation/jobs", json!({ "keys": ["a\u{0}b"] }), "keys[0]"),
        ("/collections/annotation/jobs", json!({ "keys": ["x".repeat(600)] }), "keys[0]"),
        ("/collections/annotation/jobs", json!({ "keys": ["x"], "delay": "soon" }), "delay"),
        ("/collections/annotation/jobs", json!({ "keys": ["x"], "delay": "2days" }), "delay"),
        ("/collections/annotation/jobs", json!({ "keys": ["x"], "tag": "" }), "tag"),
        ("/collections/annotation/jobs", json!({ "keys": ["x"], "colour": "red" }), "colour"),
        ("/collections/annotation/pause", json!({ "reason": " " }), "reason"),
        ("/collections/annotation/pause", json!({ "reason": "x".repeat(301) }), "reason"),
        ("/collections/annotation/dead-letters/replay", json!({}), "all"),
        ("/collections/annotation/dead-letters/discard", json!({ "all": true, "ids": [1] }), "all"),
        ("/collections/annotation/dead-letters/replay", json!({ "reason": "sadness" }), "reason"),
        ("/collections/annotation/dead-letters/replay", json!({ "since": "yesterday" }), "since"),
        ("/collections/annotation/rebuild", json!({ "keep": "for ever" }), "keep"),
    ] {
        let (status, problem) = api.post(&key, path, body.clone()).await;
        assert_eq!((status, problem["field"].as_str()), (400, Some(field)), "{path} {body}: {problem}");
        assert!(problem["type"].as_str().unwrap().starts_with("urn:catchword:problem:") && problem["remedy"].is_string(), "{problem}");
        assert!(problem["title"].is_string() && problem["status"] == 400);
    }
    for (path, field) in [
        ("/journal?limit=0", "limit"),
        ("/journal?limit=x", "limit"),
        ("/journal?colour=red", "colour"),
        ("/collections/annotation/keys/no%20uuid", "key"),
        ("/collections/annotation/keys/%ff", "key"),
        ("/collections/annotation/keys/%00", "key"),
        ("/collections/annotation/keys/x/wait?until=never", "until"),
        ("/collections/annotation/keys/x/wait?limit=1h", "limit"),
        ("/collections/annotation/dead-letters?reason=none", "reason"),
        ("/collections/annotation/dead-letters/abc", "id"),
        ("/collections/annotation/audits/99999999999999999999", "id"),
    ] {
        let (status, problem) = api.get(&key, path).await;
        assert!(status == 400 && problem["field"].as_str().is_some_and(|named| named == field), "{path}: {problem}");
    }
    for (path, wanted) in [
        ("/collections/nobody", 404),
        ("/collections/nobody/keys/x", 404),
        ("/collections/annotation/audits/1", 404),
        ("/collections/annotation/dead-letters/1", 404),
        ("/nothing", 404),
        ("/collections/annotation/nothing", 404),
    ] {
        let (status, problem) = api.get(&key, path).await;
        assert!(status == wanted && problem["remedy"].is_string(), "{path}: {status} {problem}");
    }
    let request = api.world.client.post(api.at("/api/v1/collections/annotation/pause")).header("authorization", format!("Bearer {key}"));
    let response = request.body("reason=x").send().await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (415, &"application/problem+json".parse().unwrap()));
    let response = api.world.client.delete(api.at("/api/v1/status")).header("authorization", format!("Bearer {key}")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers()["allow"].to_str().unwrap()), (405, "GET,HEAD"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_slashes_and_other_letters_is_one_key() {
    let sql = "create table odd (id text primary key, text text, catchword_revision bigint);
               comment on column odd.catchword_revision is 'catchword: revision';
               create view odd_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from odd;";
    let more = "\n[[collection]]\nname = \"odd\"\ntable = \"odd\"\nkey = \"id\"\nview = \"odd_document\"\nmapping = \"bystander.json\"\nindex = \"odd\"\n";
    let api = Api::with(Layout { sql: sql.into(), more: more.into(), ..Layout::default() }, &[]).await;
    let key = api.key("a", &["--role", "reader"]).await;
    for odd in ["a/b", "a/b/c", "a b", "é", "<script>alert(1)</script>", "a/wait", "100%", "a?b#c", "'; drop table odd; --", "..", "wait"]
    {
        sqlx::query("insert into odd values ($1, 'x')").bind(odd).execute(&api.world.pool).await.unwrap();
        let encoded: String = odd.bytes().map(|byte| format!("%{byte:02X}")).collect();
        // a client takes `..` for the folder above, also where it is written otherwise
        if odd == ".." {
            continue;
        }
        let (status, explained) = api.get(&key, &format!("/collections/odd/keys/{encoded}")).await;
        assert_eq!(
            (status, explained["key"].as_str(), explained["postgres"].as_str()),
            (200, Some(odd), Some("present")),
            "{odd}: {explained}"
        );
    }
    let (_, explained) = api.get(&key, "/collections/odd/keys/a/b/c").await;
    assert_eq!(explained["key"], "a/b/c", "a slash may be written as it is");
    eventually("the collections are read", async || api.get(&key, "/collections/odd/keys/a/b/wait?limit=0s").await.0 == 200).await;
    assert_eq!(api.get(&key, "/collections/odd/keys/a/b/wait?limit=0s").await.1["key"], "a/b");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_replayed_and_discarded_one_many_and_by_reason_or_error() {
    let api = Api::new().await;
    let key = api.key("mina", &["--role", "operator"]).await;
    let bury = "insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error, reason)
                select 900000 + n, 'index', 'annotation', gen_random_uuid()::text, now(), now(), now(), 1, 't', 5, e, r
                  from (values (1, 'first', 'refused'), (2, 'first', 'refused'), (3, 'second', 'refused'), (4, null, 'too_large'), (5, '<script>x</script>', 'refused')) as v (n, e, r)";
    api.world.sql(bury).await;
    let at = |what: &str| format!("/collections/annotation/dead-letters{what}");
    let (_, groups) = api.get(&key, &at("")).await;
    assert_eq!((groups.as_array().unwrap().len(), &groups[0]["count"], &groups[0]["last_error"]), (4, &json!(2), &json!("first")));
    let (_, each) = api.get(&key, &at("?each=true&error=first")).await;
    assert_eq!(each.as_array().unwrap().len(), 2);
    let (_, one) = api.get(&key, &at("/900005")).await;
    assert_eq!(one["last_error"], "<script>x</script>");
    for (act, chosen, count) in [
        ("/replay", json!({ "ids": [900003] }), 1),
        ("/replay", json!({ "error": "first", "reason": "refused" }), 2),
        ("/discard", json!({ "error": "" }), 1),
        ("/replay", json!({ "reason": "bad_key" }), 0),
        ("/discard", json!({ "all": true }), 1),
    ] {
        let (status, answer) = api.post(&key, &at(act), chosen.clone()).await;
        assert_eq!((status, answer), (200, json!({ "count": count })), "{act} {chosen}");
    }
    let journal: Vec<String> = api.world.all("select what || ' ' || detail || ' by ' || substring(who from '\\(.*') from catchword.journal where what in ('replay', 'discard') order by id").await;
    assert_eq!(
        journal,
        [
            "replay 900003 by (mina)",
            "replay --reason refused error: first by (mina)",
            "discard error:  by (mina)",
            "discard --all by (mina)"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_is_asked_for_run_by_a_worker_and_stopped() {
    let api = Api::new().await;
    let key = api.key("mina", &["--role", "operator"]).await;
    let at = |what: &str| format!("/collections/annotation/audits{what}");
    let (status, asked) = api.post(&key, &at(""), json!({ "repair": true })).await;
    assert_eq!((status, &asked["state"], &asked["repair"]), (202, &json!("asked"), &json!(true)), "{asked}");
    let id = asked["audit"].as_i64().unwrap();
    assert_eq!(api.post(&key, &at(""), json!({ "repair": true })).await.1["audit"], asked["audit"], "one that has not begun is as good");
    let (_, stopped) = api.post(&key, &at(&format!("/{id}/stop")), json!(null)).await;
    assert_eq!(stopped["changed"], true);
    assert_eq!(api.post(&key, &at(&format!("/{id}/stop")), json!(null)).await.1["changed"], false);
    assert_eq!(api.get(&key, &at(&format!("/{id}"))).await.1["state"], "stopped");
    let refused = api.world.catchword.resume_audit(id, None, &|_| (), &Default::default()).await.unwrap_err().to_string();
    assert!(refused.contains("was stopped by an operator"), "{refused}");

    let (_, asked) = api.post(&key, &at(""), json!({})).await;
    let id = asked["audit"].as_i64().unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let mut upkeep = api.world.catchword.upkeep(&[]);
    upkeep.round(&stop).await.unwrap();
    eventually("a worker has run it", async || api.get(&key, &at(&format!("/{id}"))).await.1["state"] == "finished").await;
    let (_, all) = api.get(&key, &at("")).await;
    assert_eq!(all.as_array().unwrap().iter().map(|audit| audit["state"].as_str().unwrap()).collect::<Vec<_>>(), ["finished", "stopped"]);
    let who: Vec<String> = api
        .world
        .all("select what || ' ' || substring(who from '\\(.*') from catchword.journal where what like 'audit%' order by id")
        .await;
    assert_eq!(who, ["audit (mina)", "audit stop (mina)", "audit (mina)"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_is_planned_driven_gone_back_from_and_undone() {
    let api = Api::new().await;
    let admin = api.key("root", &["--role", "admin"]).await;
    let operator = api.key("mina", &["--role", "operator"]).await;
    api.world.in_step("acct:a", "hello").await;
    let at = |what: &str| format!("/collections/annotation/rebuild{what}");
    assert_eq!(api.post(&operator, &at(""), json!({})).await.0, 403);
    let (status, plan) = api.post(&admin, &at(""), json!({ "dry_run": true })).await;
    assert!(status == 200 && plan["new_index"].is_string(), "{plan}");
    assert_eq!(api.get(&operator, &at("")).await.1["rebuild"], json!(null), "nothing was done");
    assert_eq!(api.post(&admin, &at("/back"), json!(null)).await.0, 409);
    let (status, begun) = api.post(&admin, &at(""), json!({ "keep": "1h" })).await;
    assert_eq!(status, 202, "{begun}");
    eventually("readers see the new index", async || api.get(&operator, &at("")).await.1["rebuild"]["stage"] == "keep").await;
    let (_, kept) = api.get(&operator, &at("")).await;
    assert_eq!(kept["rebuild"]["targets"][0], plan["new_index"]);
    let (status, again) = api.post(&admin, &at(""), json!({})).await;
    assert!(status == 409 && again["remedy"].as_str().unwrap().contains("--drop"), "{again}");
    let (status, back) = api.post(&admin, &at("/back"), json!(null)).await;
    assert!(status == 200 && back["targets"][0] == plan["old_index"], "{back}");
    assert_eq!(api.post(&admin, &at("/abort"), json!(null)).await.0, 409, "readers have seen it");
}
