//! What a worker logs: a line for what it did, nothing for nothing, and never a document's value.

use serde_json::Value;

use crate::common::{Layout, World, eventually, start};
use crate::operate::metrics::scrape;

/// A view that cannot build one of its rows, and an index that refuses another.
fn secretive() -> Layout {
    let mapping = std::env::temp_dir().join("catchword-test-secret.json");
    std::fs::write(&mapping, r#"{ "settings": { "number_of_replicas": 0 }, "mappings": { "properties": { "n": { "type": "long" } } } }"#)
        .unwrap();
    Layout {
        tick: "* * * * * *",
        sql: "create table secret (id integer primary key, n text, castable boolean, catchword_revision bigint);
              comment on column secret.catchword_revision is 'catchword: revision';
              create view secret_document as
              select id as key, catchword_revision as revision, json_build_object('n', case when castable then n else (n::integer)::text end) as body from secret;"
            .into(),
        more: format!("[[collection]]\nname = \"secret\"\ntable = \"secret\"\nkey = \"id\"\nview = \"secret_document\"\nmapping = {mapping:?}\ndelay = \"0s\"\n"),
        ..Layout::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_one_line_and_no_line_holds_a_value_or_a_password() {
    let world = World::with(secretive()).await;
    world.sql("insert into secret (id, n, castable) values (1, '7', true), (2, 'pelican4711', true), (3, 'heron4711', false)").await;
    // one refusal more is the last
    world.sql("update catchword.job set attempts = 4 where collection = 'secret'").await;
    let worker = start(&world).await;
    eventually("both are buried", async || world.one::<i64>("select count(*) from catchword.dead_job").await == 2).await;
    eventually("the good one is settled", async || {
        world.one::<i64>("select count(*) from catchword.job where collection = 'secret'").await == 0
    })
    .await;
    let buried = |line: &Value| line["message"].as_str().unwrap().starts_with("buried: ");
    let lines = || worker.lines().iter().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    eventually("each is logged", async || lines().iter().filter(|line| buried(line)).count() == 2).await;

    let text = worker.lines().join("\n");
    for value in ["pelican", "heron", "4711"] {
        assert!(!text.contains(value), "{text}");
        let kept: String = world.one("select string_agg(last_error, ' ') from catchword.dead_job").await;
        assert!(!kept.contains(value), "{kept}");
    }
    let url = url::Url::parse(&world.database_url).unwrap();
    assert!(!text.contains(&format!(":{}@", url.password().unwrap_or("no password"))));
    let letters: Vec<Value> = lines().into_iter().filter(|line| buried(line)).collect();
    for letter in &letters {
        assert_eq!((&letter["level"], &letter["collection"]), (&"WARN".into(), &"secret".into()), "{letter}");
        assert!(letter["job"].is_i64());
    }
    let mut reasons: Vec<&str> = letters.iter().map(|letter| letter["reason"].as_str().unwrap()).collect();
    reasons.sort();
    assert_eq!(reasons, ["refused", "unbuildable"]);
    // a line reads alone and is also fields
    let pass = lines().into_iter().find(|line| line["claimed"].is_u64()).unwrap();
    assert!(pass["message"].as_str().unwrap().starts_with("sync: "), "{pass}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_nothing_to_do_says_nothing() {
    let world = World::with(Layout { tick: "* * * * * *", canary: true, ..Layout::default() }).await;
    world.catchword.drain("test", &[]).await.unwrap();
    let worker = start(&world).await;
    let canary = "catchword_jobs_settled_total{class=\"canary\",collection=\"catchword_canary\"}";
    eventually("its canary, which is no news, and some passes more", async || {
        let seen = scrape(&world, &worker).await;
        seen.value(canary) == 1.0 && seen.value("catchword_pass_duration_seconds_count") >= 6.0
    })
    .await;
    assert_eq!(worker.lines(), Vec::<String>::new());
}
