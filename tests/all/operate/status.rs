//! `status` and `explain`: what a person at night is told.

use std::time::Instant;

use serde_json::{Value, json};

use crate::common::{Layout, World};

impl World {
    async fn status(&self) -> (i32, Value) {
        let (code, out, err) = self.run(&["status", "--json"]).await;
        assert!(code == 0 || code == 1, "{err}");
        (code, serde_json::from_str(&out).unwrap())
    }

    async fn annotation_status(&self) -> (i32, Value) {
        let (code, status) = self.status().await;
        (code, status["collections"][0].clone())
    }

    /// What `explain` says of a key of `annotation`: exit code, words, JSON.
    async fn explained(&self, key: &str) -> (i32, String, Value) {
        let (code, words, err) = self.run(&["explain", "annotation", key]).await;
        assert_eq!(err, "");
        let (again, json, _) = self.run(&["explain", "annotation", key, "--json"]).await;
        assert_eq!(code, again);
        (code, words, serde_json::from_str(&json).unwrap())
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn status_counts_what_is_due_waiting_and_dead() {
    let world = World::new().await;
    world.in_step("acct:a", "there").await;
    world.http("POST", &format!("/{}/_refresh", world.index("annotation")), None).await;
    let (code, status) = world.annotation_status().await;
    assert_eq!(code, 0, "{status}");
    assert_eq!((&status["due"], &status["waiting"], &status["dead"], &status["documents"]), (&json!(0), &json!(0), &json!(0), &json!(1)));
    assert_eq!(status["oldest_due_seconds"], Value::Null);
    assert_eq!(status["indices"], json!([world.index("annotation")]));
    assert_eq!(status["alias"], json!(world.alias("annotation")));

    for _ in 0..3 {
        world.annotate("acct:a", "more").await;
    }
    world.sql("update catchword.job set scheduled_at = now() - interval '90 seconds' where collection = 'annotation'").await;
    world
        .sql("update catchword.job set scheduled_at = now() + interval '1 hour' where id = (select max(id) from catchword.job where collection = 'annotation')")
        .await;
    let (code, status) = world.annotation_status().await;
    assert_eq!(code, 0, "due jobs are no illness: {status}");
    assert_eq!((&status["due"], &status["waiting"]), (&json!(2), &json!(1)));
    let age = status["oldest_due_seconds"].as_f64().unwrap();
    assert!((90.0..120.0).contains(&age), "{age}");
    let (_, words, _) = world.run(&["status"]).await;
    assert!(words.contains("  due       2, the oldest change is ") && words.contains("  waiting   1\n"), "{words}");
    assert!(words.contains("no living worker serves it; start one: catchword worker"), "{words}");

    world.sql("update catchword.job set scheduled_at = now() - interval '1 hour' where collection = 'annotation'").await;
    assert_eq!(world.annotation_status().await.0, 1, "an hour due, and nobody there to take them");

    world
        .sql("with moved as (delete from catchword.job where collection = 'annotation' returning *) insert into catchword.dead_job select id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error, traceparent, cursor, now(), 'refused' from moved")
        .await;
    let (code, status) = world.annotation_status().await;
    assert_eq!((code, &status["dead"]), (1, &json!(3)));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_what_is_paused_blocked_and_served_by_nobody() {
    let world = World::new().await;
    world.sql("insert into catchword.pause (collection, by, reason) values ('annotation', 'mina', E'moving house\\x1b[2J')").await;
    world.sql("alter table annotation disable trigger catchword_annotation_updated").await;
    world.sql("insert into catchword.job (collection, key, priority, tag) values ('stranger', '1', 1, 'test')").await;
    let (code, status) = world.status().await;
    assert_eq!(code, 1);
    let annotation = &status["collections"][0];
    assert!(annotation["paused"].as_str().unwrap().contains("by mina: moving house"), "{annotation}");
    let blocked = annotation["blocked"].as_str().unwrap();
    assert!(blocked.contains("catchword_annotation_updated") && blocked.contains("catchword migrate"), "{blocked}");
    assert_eq!(status["unserved"], json!(["stranger"]));
    assert_eq!(status["collections"][1]["blocked"], Value::Null, "the other one is well");

    let (_, words, _) = world.run(&["status"]).await;
    assert!(!words.contains('\u{1b}') && words.contains("moving house\\u{1b}[2J"), "{words}");
    assert!(words.contains("unserved    stranger has jobs"), "{words}");

    // another configuration's worker may serve it
    world
        .sql("insert into catchword.worker (id, host, version, collections, blocked) values (gen_random_uuid(), 'h', '1', '{stranger,annotation}', '{\"annotation\": \"its index is closed\"}')")
        .await;
    world.sql("alter table annotation enable trigger catchword_annotation_updated").await;
    let (_, status) = world.status().await;
    assert_eq!(status["unserved"], json!([]));
    assert_eq!(status["workers"][0]["host"], json!("h"));
    assert_eq!(status["collections"][0]["served"], json!(true));
    assert_eq!(status["collections"][0]["blocked"], json!("its index is closed"));
    world.sql("update catchword.worker set seen_at = now() - interval '1 hour'").await;
    let (_, status) = world.status().await;
    assert_eq!(status["unserved"], json!(["stranger"]), "a worker that is gone serves nobody");
    let (_, words, _) = world.run(&["status"]).await;
    assert!(words.contains("seen 1h ago, absent") || words.contains("seen 1h 1s ago, absent"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_answers_within_seconds_when_elasticsearch_is_away_or_silent() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    for away in ["refused", "silent"] {
        match away {
            "refused" => gate.refuse(),
            _ => gate.hold("_count"),
        }
        let started = Instant::now();
        let (code, status) = world.status().await;
        assert!(started.elapsed().as_secs() < 8, "{away}: {:?}", started.elapsed());
        assert_eq!(code, 1);
        for collection in status["collections"].as_array().unwrap() {
            assert_eq!(collection["documents"], Value::Null, "{away}");
            assert!(!collection["uncounted"].as_str().unwrap().is_empty());
            assert_eq!(collection["blocked"], Value::Null, "the collection itself is well");
        }
        let (_, words, _) = world.run(&["status"]).await;
        assert!(words.contains("an unknown number of documents: "), "{words}");
    }
    gate.pass();
    assert_eq!(world.status().await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_that_postgres_is_away_or_silent_and_what_elasticsearch_has() {
    let world = World::new().await;
    world.in_step("acct:a", "there").await;
    world.http("POST", &format!("/{}/_refresh", world.index("annotation")), None).await;
    for (away, url) in world.postgres_away().await {
        let output = world.binary().env("DATABASE_URL", url).args(["status", "--json"]).output().await.unwrap();
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{away}: {output:?}"));
        assert_eq!(output.status.code(), Some(1), "{away}: {status}");
        assert!(status["postgres"].as_str().unwrap().to_lowercase().contains("postgres"), "{away}: {status}");
        assert_eq!(status["collections"][0]["documents"], json!(1), "the other side is told: {status}");
        assert_eq!(status["collections"][0].get("due"), None, "a count that was not made is no count: {status}");
    }
    let (away, url) = world.postgres_away().await.remove(0);
    let output = world.binary().env("DATABASE_URL", url).arg("status").output().await.unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(words.starts_with("postgres    could not be asked: cannot reach Postgres: "), "{away}: {words}");
    assert!(words.contains("  jobs      unknown\n") && words.contains("1 documents"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_the_json_are_stable() {
    let world = World::new().await;
    let (_, status) = world.status().await;
    assert_eq!(keys(&status), ["collections", "postgres", "reindexes", "unserved", "workers"]);
    assert_eq!(
        keys(&status["collections"][0]),
        [
            "alias",
            "audit",
            "blocked",
            "dead",
            "documents",
            "drift",
            "due",
            "estimated",
            "expired",
            "failing_touch_error",
            "failing_touch_seconds",
            "failing_touches",
            "indices",
            "name",
            "not_shown",
            "oldest_bulk_seconds",
            "oldest_change_seconds",
            "oldest_due_seconds",
            "oldest_live_seconds",
            "paused",
            "rebuild",
            "served",
            "still_seconds",
            "still_why",
            "uncounted",
            "unmigrated",
            "waiting"
        ]
    );
    let key = world.in_step("acct:a", "hello").await;
    let (_, _, explanation) = world.explained(&key).await;
    assert_eq!(
        keys(&explanation),
        [
            "collection",
            "dead",
            "document",
            "indices",
            "jobs",
            "key",
            "likely_causes",
            "paused",
            "postgres",
            "revision",
            "touch_is_open",
            "unbuildable"
        ]
    );
    assert_eq!(keys(&explanation["indices"][0]), ["fields", "index", "same_document", "tombstone", "unknown", "verdict", "version"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_step_is_explained_however_it_is_typed() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "hello").await;
    let revision = world.revision(&key).await;
    let (code, words, json) = world.explained(&format!(" {}", key.to_uppercase())).await;
    assert_eq!(code, 0, "{words}");
    assert!(words.contains(&format!("annotation {key}\n")), "{words}");
    assert!(words.contains(&format!("postgres       has it, at revision {revision}\n")), "{words}");
    assert!(words.contains(&format!("has a document, at version {revision}\n")), "{words}");
    assert!(words.contains("current: both sides agree") && words.ends_with("in step, nothing to do\n"), "{words}");
    assert_eq!((&json["key"], &json["postgres"], &json["revision"]), (&json!(key), &json!("present"), &json!(revision)));
    assert_eq!((&json["document"]["text"], &json["indices"][0]["verdict"]), (&json!("hello"), &json!("current")));

    let (code, out, _) = world.run(&["explain", "bystander", " 007"]).await;
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with("bystander 7\n"), "{out}");
    for (collection, key) in [("annotation", "7"), ("bystander", "seven"), ("bystander", ""), ("annotation", "x\u{1b}[2J")] {
        let (code, out, err) = world.run(&["explain", collection, key]).await;
        assert_eq!((code, out.as_str()), (2, ""), "{key:?}");
        assert!(err.contains(&format!("cannot be a key of {collection}")) && err.contains("write "), "{err}");
        assert!(!err.contains('\u{1b}'), "{err:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_and_a_stale_document_are_explained() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "hello").await;
    let (code, words, json) = world.explained(&key).await;
    assert_eq!((code, &json["indices"][0]["verdict"]), (1, &json!("missing")));
    assert!(words.contains("has nothing\n") && words.contains("missing: saved, and not searchable yet"), "{words}");
    assert!(words.contains("due now, asked for by insert\n"), "{words}");
    assert!(words.ends_with("not in step yet; the job stays until it is\n"), "{words}");

    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.sql("update annotation set text = 'changed'").await;
    world.sql("update catchword.job set scheduled_at = '2100-01-01Z' where collection = 'annotation'").await;
    let (code, words, json) = world.explained(&key).await;
    assert_eq!((code, &json["indices"][0]["verdict"]), (1, &json!("stale")));
    assert!(words.contains("stale: search finds an older one"), "{words}");
    assert!(words.contains("due 2100-01-01 00:00:00 UTC, asked for by update\n"), "{words}");

    // somebody deleted the job: what to type is printed
    world.sql("delete from catchword.job where collection = 'annotation'").await;
    let (_, words, _) = world.explained(&key).await;
    assert!(words.ends_with(&format!("not in step, and no job is open: catchword reindex annotation --ids {key} --hidden\n")), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_a_hidden_and_a_never_seen_key_are_explained() {
    let world = World::new().await;
    let (deleted, hidden) = (world.in_step("acct:a", "one").await, world.in_step("acct:a", "two").await);
    world.sql(&format!("delete from annotation where id = '{deleted}'")).await;
    world.sql(&format!("update annotation set deleted = true where id = '{hidden}'")).await;

    for (key, postgres, said) in
        [(&deleted, "deleted", "deleted it, recorded as "), (&hidden, "hidden", "but the view does not return it: it must not be found")]
    {
        let (code, words, json) = world.explained(key).await;
        assert_eq!((code, &json["postgres"], &json["indices"][0]["verdict"]), (1, &json!(postgres), &json!("orphan")));
        assert!(words.contains(said) && words.contains("orphan: search finds what Postgres does not want"), "{words}");
    }
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    for key in [&deleted, &hidden] {
        let (code, words, json) = world.explained(key).await;
        assert_eq!((code, &json["indices"][0]["tombstone"]), (0, &json!(true)), "{words}");
        assert!(words.contains("has a tombstone") && words.contains("search does not find it"), "{words}");
        assert!(words.contains("gone: both sides agree that there is nothing"), "{words}");
    }
    let (code, words, json) = world.explained("00000000-0000-4000-8000-000000000007").await;
    assert_eq!((code, &json["postgres"], &json["revision"]), (0, &json!("never"), &Value::Null));
    assert!(words.contains("never had it: no row, and no record of a delete"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_that_postgres_never_had_is_explained() {
    let world = World::new().await;
    let key = "00000000-0000-4000-8000-000000000007";
    world.put("annotation", key, 2, json!({ "text": "ghost" })).await;
    let (code, words, json) = world.explained(key).await;
    assert_eq!((code, &json["indices"][0]["verdict"]), (1, &json!("orphan")));
    assert!(words.contains("never had it") && words.contains("has a document, at version 2"), "{words}");
    // what it says helps
    let line = words.lines().last().unwrap();
    let typed = line.split("catchword ").nth(1).unwrap();
    let (code, _, err) = world.run(&typed.split(' ').collect::<Vec<_>>()).await;
    assert_eq!(code, 0, "{err}");
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.explained(key).await.0, 0);
    assert!(world.found("annotation").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_elasticsearch_cannot_say_is_unknown() {
    let world = World::gated().await;
    let key = world.in_step("acct:a", "hello").await;
    world.gate.as_ref().unwrap().refuse();
    let (code, words, json) = world.explained(&key).await;
    assert_eq!((code, &json["indices"][0]["verdict"]), (1, &json!("unknown")));
    assert!(words.contains("could not say: unreachable"), "{words}");
    assert!(words.contains("postgres       has it"), "the other side is told: {words}");
    assert!(words.ends_with("not known whether it is in step; ask again when Elasticsearch answers\n"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_document_and_its_dead_letter_are_explained() {
    let world = World::new().await;
    // the mapping is strict: a field that it does not know is refused
    world
        .sql("create or replace view annotation_document (key, revision, body) as select id, catchword_revision, json_build_object('id', id, 'nonsense', text) from annotation where not deleted")
        .await;
    let key = world.annotate("acct:a", "hello").await;
    world.pass().await;
    let (code, words, json) = world.explained(&key).await;
    assert_eq!((code, &json["jobs"][0]["attempts"]), (1, &json!(1)));
    assert!(words.contains("refused once, last: strict_dynamic_mapping_exception"), "{words}");
    assert!(words.contains("nonsense"), "{words}");
    for _ in 0..4 {
        world.make_due().await;
        world.pass().await;
    }
    let (code, words, json) = world.explained(&key).await;
    assert_eq!((code, &json["jobs"], &json["dead"][0]["reason"]), (1, &json!([]), &json!("refused")));
    assert!(words.contains("(refused), refused 5 times: strict_dynamic_mapping_exception"), "{words}");
    assert!(
        words.contains("not in step, and given up: fix what the dead letter says, then: catchword reindex annotation --ids"),
        "{words}"
    );
    assert_eq!(world.status().await.0, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_the_view_cannot_build_is_explained() {
    let world = World::new().await;
    world
        .sql("create or replace view annotation_document (key, revision, body) as select id, catchword_revision, json_build_object('text', (1 / length(text))::text) from annotation where not deleted")
        .await;
    let key = world.annotate("acct:a", "").await;
    let (code, words, json) = world.explained(&key).await;
    assert_eq!((code, &json["unbuildable"]), (1, &json!("division by zero")));
    assert!(words.contains("the view says  division by zero"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_key_cannot_fake_lines_or_move_the_cursor() {
    let layout = Layout {
        more: "[[collection]]\nname = \"page\"\ntable = \"page\"\nkey = \"path\"\nview = \"page_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n".into(),
        sql: "create table page (path text primary key, text text, catchword_revision bigint);
              comment on column page.catchword_revision is 'catchword: revision';
              create view page_document as select path as key, catchword_revision as revision, json_build_object('text', text) as body from page;"
            .into(),
        ..Layout::default()
    };
    let world = World::with(layout).await;
    let key = "it's\n  in step, nothing to do\u{1b}[2J\u{202e}";
    sqlx::query("insert into page values ($1, E'\\x1b]0;title\\x07\\x7f')").bind(key).execute(&world.pool).await.unwrap();
    let (code, out, err) = world.run(&["explain", "page", key]).await;
    assert_eq!(code, 1, "{err}");
    assert!(!out.contains(['\u{1b}', '\u{7}', '\u{7f}', '\u{202e}']), "{out:?}");
    assert_eq!(out.lines().next(), Some(r"page it's\n  in step, nothing to do\u{1b}[2J\u{202e}"));
    assert!(!out.lines().any(|line| line == "  in step, nothing to do"), "{out}");
}

/// Somebody who reads every two seconds, as a page does: Postgres does not begin from nothing each time, and a session that it ended meanwhile
/// is not taken for a Postgres that is down.
#[tokio::test(flavor = "multi_thread")]
async fn readings_share_a_session_and_one_that_was_ended_is_replaced() {
    let world = World::new().await;
    let sessions = async || {
        let pids = "select pid from pg_stat_activity where datname = current_database() and application_name = 'catchword' order by 1";
        world.all::<i32>(pids).await
    };
    let read = async || {
        assert_eq!(world.catchword.status().await.unwrap().postgres, None);
        let report = world.catchword.check().await;
        assert!(report.checks.iter().all(|check| check.name != "CatchwordPostgresDown"), "{}", report.summary);
    };
    read().await;
    let first = sessions().await;
    for _ in 0..3 {
        read().await;
    }
    assert_eq!(sessions().await, first, "no session more, and none in place of another");

    let ended: i64 = world
        .one("select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where datname = current_database() and application_name = 'catchword'")
        .await;
    assert_eq!(ended, i64::try_from(first.len()).unwrap());
    read().await;
    assert!(!sessions().await.iter().any(|pid| first.contains(pid)));
}
