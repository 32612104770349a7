//! An audit finds every difference, however it came about, and none that is not there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catchword::audit::{Report, Request};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::common::{Layout, World, eventually};

fn whole() -> Request {
    Request { collection: "annotation".into(), reason: "test".into(), ..Request::default() }
}

fn repairing() -> Request {
    Request { repair: true, content: true, ..whole() }
}

fn found(report: &Report) -> BTreeMap<&str, u64> {
    report.differences.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

impl World {
    /// Rows of this user, in step.
    async fn rows_in_step(&self, user: &str, count: usize) -> Vec<Uuid> {
        self.sql(&format!(
            "insert into annotation (userid, text, target_uri, target_uri_normalized) select '{user}', 'text ' || i, 'u', 'u' from generate_series(1, {count}) i"
        ))
        .await;
        self.catchword.drain("test", &["annotation"]).await.unwrap();
        self.all(&format!("select id from annotation where userid = '{user}' order by id")).await
    }

    /// Changes the table behind the triggers' back, as a restore, a bug or a replica's session would.
    async fn behind_the_back(&self, sql: &str) {
        let mut transaction = self.pool.begin().await.unwrap();
        sqlx::query("set local session_replication_role = replica").execute(&mut *transaction).await.unwrap();
        sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap();
    }

    /// Writes many documents as somebody else would.
    async fn put_all(&self, documents: impl IntoIterator<Item = (String, i64, Value)>, version_type: &str) {
        let lines = documents.into_iter().map(|(id, version, source)| {
            let action = json!({ "index": { "_id": id, "version": version, "version_type": version_type } });
            format!("{action}\n{source}\n")
        });
        let path = format!("/{}/_bulk", self.index("annotation"));
        let (status, answer) = self.http_text("POST", &path, Some(lines.collect())).await;
        assert!(status == 200 && answer["errors"] == false, "{answer}");
    }

    /// 100 differences of each kind, in rows that nobody else writes to.
    async fn inject(&self) {
        let rows = self.rows_in_step("acct:audited", 350).await;
        let list = |rows: &[Uuid]| rows.iter().map(|id| format!("'{id}'")).collect::<Vec<_>>().join(",");
        self.behind_the_back(
            "insert into annotation (userid, text, target_uri, target_uri_normalized, catchword_revision)
             select 'acct:missing', 'm', 'u', 'u', nextval('catchword.revision') from generate_series(1, 100)",
        )
        .await;
        let stale = list(&rows[..100]);
        self.behind_the_back(&format!(
            "update annotation set text = 'newer', catchword_revision = nextval('catchword.revision') where id in ({stale})"
        ))
        .await;
        let source = json!({ "text": "not ours" });
        let mut ahead = Vec::new();
        for id in &rows[100..200] {
            ahead.push((id.to_string(), self.revision(&id.to_string()).await + 1_000, source.clone()));
        }
        self.put_all(ahead, "external").await;
        let mut other = Vec::new();
        for id in &rows[200..300] {
            other.push((id.to_string(), self.revision(&id.to_string()).await, source.clone()));
        }
        self.put_all(other, "external_gte").await;
        // some never had a row, some are shown under a delete's number, some lost their row without a trace
        self.put_all((0..40).map(|n| (Uuid::new_v4().to_string(), 4 + n % 2, source.clone())), "external").await;
        self.put_all((0..10).map(|n| (format!("odd {n}"), 7, source.clone())), "external").await;
        let lost = list(&rows[300..350]);
        self.behind_the_back(&format!("delete from annotation where id in ({lost})")).await;
        self.put_all((0..100).map(|n| (format!("no uuid {n}"), 4, source.clone())), "external").await;
    }
}

/// About 500 writes a second to rows of their own, a third of them indexed directly, and a worker that ticks every second.
struct Load {
    over: CancellationToken,
    tasks: Vec<JoinHandle<u64>>,
}

impl Load {
    fn start(world: &Arc<World>) -> Load {
        let over = CancellationToken::new();
        let mut tasks: Vec<JoinHandle<u64>> = (0..5).map(|_| tokio::spawn(write(world.clone(), over.clone()))).collect();
        let (worker, stop) = (world.catchword.worker("test", &["annotation"]), over.clone());
        tasks.push(tokio::spawn(async move {
            worker.run(stop).await.unwrap();
            0
        }));
        Load { over, tasks }
    }

    async fn end(self) -> u64 {
        self.over.cancel();
        let mut writes = 0;
        for task in self.tasks {
            writes += task.await.unwrap();
        }
        writes
    }
}

async fn write(world: Arc<World>, over: CancellationToken) -> u64 {
    let mut hundredth = tokio::time::interval(Duration::from_millis(10));
    let (mut writes, mut mine) = (0_u64, Vec::<Uuid>::new());
    while !over.is_cancelled() {
        hundredth.tick().await;
        let one = mine.get(writes as usize * 7 % mine.len().max(1)).copied();
        let (sql, key) = match (writes % 10, one) {
            (0..4, _) | (_, None) => (
                "insert into annotation (id, userid, target_uri, target_uri_normalized, text) values ($1, 'acct:busy', 'u', 'u', 'new')",
                Uuid::new_v4(),
            ),
            (4..8, Some(key)) => ("update annotation set text = text || '+' where id = $1", key),
            (8, Some(key)) => ("update annotation set deleted = not deleted where id = $1", key),
            (_, Some(key)) => ("delete from annotation where id = $1", key),
        };
        sqlx::query(sql).bind(key).execute(&world.pool).await.unwrap();
        if !mine.contains(&key) {
            mine.push(key);
        }
        writes += 1;
        if writes % 3 == 0 {
            let catchword = world.catchword.clone();
            tokio::spawn(async move { catchword.index_now("annotation", [key]).await });
        }
    }
    writes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_differences_of_each_kind_are_found_and_repaired_under_load_and_no_other() {
    let world = Arc::new(World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await);
    world.inject().await;
    let load = Load::start(&world);
    let wanted = BTreeMap::from([("missing", 100), ("stale", 100), ("ahead", 100), ("orphan", 100), ("stray", 100), ("content", 100)]);

    let looked_at = world.catchword.audit(&Request { repair: false, ..repairing() }).await.unwrap();
    assert_eq!(found(&looked_at), wanted, "{looked_at:?}");
    assert_eq!((looked_at.unknown, looked_at.scheduled), (0, 0));

    let repaired = world.catchword.audit(&repairing()).await.unwrap();
    assert_eq!(found(&repaired), wanted, "{repaired:?}");
    assert_eq!(repaired.scheduled, 600);
    eventually("everything is healed", async || world.one::<i64>("select count(*) from catchword.job where tag = 'audit'").await == 0)
        .await;
    let after = world.catchword.audit(&Request { repair: false, ..repairing() }).await.unwrap();
    assert_eq!(found(&after), BTreeMap::new(), "{after:?}");
    assert!(after.is_in_step());

    assert!(load.end().await > 0);
    world.settle_and_compare().await;
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_that_was_killed_goes_on_where_it_was_and_counts_nothing_twice() {
    let world = World::new().await;
    world.inject().await;
    // a page, then a pause of about a minute: long enough to be killed in
    let mut child =
        world.binary().args(["audit", "annotation", "--repair", "--rate", "8"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    eventually("it has looked at a page", async || world.one::<i64>("select coalesce(max(looked), 0) from catchword.audit").await > 0)
        .await;
    child.kill().await.unwrap();
    assert!(world.one::<bool>("select finished_at is null from catchword.audit").await);
    let scheduled: i64 = world.one("select count(*) from catchword.job where tag = 'audit'").await;
    assert_eq!(scheduled, world.one::<i64>("select scheduled from catchword.audit").await);

    let (code, said, complained) = world.run(&["audit", "annotation", "--resume", "--json"]).await;
    assert_eq!(code, 1, "{said}{complained}");
    let said: Value = serde_json::from_str(&said).unwrap();
    let counted = json!({ "missing": 100, "stale": 100, "ahead": 100, "orphan": 100, "stray": 100 });
    assert_eq!((&said[0]["differences"], &said[0]["scheduled"]), (&counted, &json!(500)), "{said:#}");
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where tag = 'audit'").await, 500);

    eventually("everything is healed", async || {
        world.catchword.drain("test", &["annotation"]).await.unwrap();
        world.jobs().await == 0
    })
    .await;
    let (code, said, _) = world.run(&["audit", "annotation"]).await;
    assert_eq!(code, 0, "{said}");
    // a rebuild begins its own audits again
    world
        .sql(
            "insert into catchword.audit (collection, targets, whole, repair, content, reason)
             select name, targets, false, true, false, 'rebuild' from catchword.collection where name = 'annotation'",
        )
        .await;
    let (code, _, complained) = world.run(&["audit", "annotation", "--resume"]).await;
    assert_eq!(code, 2, "1 would mean that something differs");
    assert!(complained.contains("there is no unfinished audit"), "{complained}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_point_in_time_that_is_lost_is_walked_again() {
    let world = World::new().await;
    world.inject().await;
    let mut child = world.binary().args(["audit", "annotation", "--rate", "200"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    eventually("it walks the documents", async || {
        world.one::<bool>("select coalesce(bool_or(point_in_time is not null), false) from catchword.audit").await
    })
    .await;
    child.kill().await.unwrap();
    let open: String = world.one("select point_in_time from catchword.audit").await;
    world.catchword.elastic().close_point_in_time(&open).await;
    let (status, _) = world.http("POST", "/_search", Some(json!({ "pit": { "id": open } }))).await;
    assert_eq!(status, 404, "it is gone");
    let (_, said, complained) = world.run(&["audit", "--resume", "--json"]).await;
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{complained}"));
    assert_eq!((&said[0]["differences"]["orphan"], &said[0]["differences"]["stray"]), (&json!(100), &json!(100)), "{said:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_that_a_job_will_heal_is_pending_and_one_that_was_given_up_is_dead() {
    let world = World::new().await;
    let (open, dead) = (world.annotate("acct:a", "open").await, world.annotate("acct:a", "dead").await);
    world
        .sql(&format!(
            "with moved as (delete from catchword.job where key = '{dead}' returning *)
             insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, reason)
             select id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, 5, 'refused' from moved"
        ))
        .await;
    let report = world.catchword.audit(&repairing()).await.unwrap();
    assert_eq!((found(&report), report.pending, report.scheduled), (BTreeMap::from([("dead", 1)]), 1, 0), "{report:?}");
    assert_eq!(report.examples[0].key, dead);
    world.settle_and_compare_but_the_dead(&open).await;

    // a repair schedules nothing, so nobody is told to try one
    for words in [&["audit", "annotation"][..], &["audit", "annotation", "--repair"], &["status"], &["check"]] {
        let (code, said, errors) = world.run(words).await;
        assert_eq!(code, 1, "{words:?} {said}{errors}");
        assert!(said.contains("catchword dead list --collection annotation says why; fix the rows"), "{words:?} {said}");
        assert!(said.contains("catchword dead replay --collection annotation") && !said.contains("--repair"), "{words:?} {said}");
    }
    // where there is both, both are told
    world.http("DELETE", &format!("/{}/_doc/{open}", world.index("annotation")), None).await;
    for words in [&["audit", "annotation"][..], &["status"], &["check"]] {
        let (_, said, _) = world.run(words).await;
        assert!(said.contains("catchword audit annotation --repair") && said.contains("dead replay"), "{words:?} {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_content_shows_is_repaired_as_it_was_found() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "one").await;
    world.put_all([(key.clone(), world.revision(&key).await, json!({ "text": "not ours" }))], "external_gte").await;
    let (code, said, _) = world.run(&["audit", "annotation", "--content"]).await;
    assert!(code == 1 && said.contains("content   1"), "{said}");
    let remedy = "catchword audit annotation --content --repair";
    for words in [&["status"][..], &["check"]] {
        let (_, shown, _) = world.run(words).await;
        assert!(shown.contains(remedy), "{words:?} {shown}");
    }
    let advised = said.lines().find_map(|line| line.split_once("repair it: catchword ")).unwrap_or_else(|| panic!("{said}")).1;
    let (code, said, _) = world.run(&advised.split(' ').collect::<Vec<_>>()).await;
    assert!(code == 1 && said.contains("1 scheduled for repair"), "{said}");
    let (_, said, _) = world.run(&["status"]).await;
    assert!(said.contains("1 scheduled for repair") && !said.contains("repaired"), "{said}");
    eventually("it is healed", async || {
        world.catchword.drain("test", &["annotation"]).await.unwrap();
        world.jobs().await == 0
    })
    .await;
    let (_, said, _) = world.run(&["status"]).await;
    assert!(said.contains("1 repaired"), "{said}");
    let (code, said, _) = world.run(&["audit", "annotation", "--content"]).await;
    assert_eq!(code, 0, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_touch_explains_only_what_it_will_come_to() {
    let world = World::new().await;
    world.sql("insert into document (title, web_uri) values ('old', 'http://a/'), ('other', 'http://b/')").await;
    let key = world.in_step("acct:a", "one").await;
    let renamed = world.in_step("acct:b", "two").await;
    world
        .sql(&format!(
            "update annotation set document_id = 1 where id = '{renamed}'; update annotation set document_id = 2 where id = '{key}'"
        ))
        .await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let pending = async || {
        let (code, said, errors) = world.run(&["audit", "annotation", "--content", "--json"]).await;
        let report: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{errors}"));
        (code, report[0]["pending"].clone(), report[0]["differences"]["content"].clone())
    };
    // its touch waits: the document is behind, and will not be for long
    world.sql("update document set title = 'new' where id = 1; update catchword.job set scheduled_at = now() + interval '1 hour' where name = 'touch'").await;
    assert_eq!(pending().await, (0, json!(1), json!(null)));
    // what somebody else did to another document, no touch will heal
    world.put_all([(key.clone(), world.revision(&key).await, json!({ "text": "not ours" }))], "external_gte").await;
    assert_eq!(pending().await, (1, json!(1), json!(1)));
    // it has come past this one already
    world.sql("update catchword.job set cursor = '=ffffffff-ffff-ffff-ffff-ffffffffffff' where name = 'touch'").await;
    assert_eq!(pending().await, (1, json!(0), json!(2)));
    // a value that no column can have is its own trouble
    world.sql("update catchword.job set cursor = null, key = 'document_id=x' where name = 'touch'").await;
    assert_eq!(pending().await.1, json!(2));
}

impl World {
    async fn settle_and_compare_but_the_dead(&self, open: &str) {
        self.catchword.drain("test", &["annotation"]).await.unwrap();
        assert_eq!(self.version("annotation", open).await, Some(self.revision(open).await));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_of_some_looks_at_some() {
    let world = World::new().await;
    world.inject().await;
    world.behind_the_back("update annotation set updated = now() - interval '2 days' where userid <> 'acct:missing'").await;
    let since = Request { since: Some(chrono::Utc::now() - chrono::Duration::days(1)), ..whole() };
    let report = world.catchword.audit(&since).await.unwrap();
    assert_eq!(found(&report), BTreeMap::from([("missing", 100)]), "{report:?}");
    let some = world.catchword.audit(&Request { sample: Some(0.2), ..whole() }).await.unwrap();
    assert!((1..400).contains(&some.differ()), "{some:?}");
    let one = Request { target: Some(world.index("annotation")), ..whole() };
    let one = world.catchword.audit(&one).await.unwrap();
    assert_eq!(one.differ(), 500);
    assert!(some.expected.unwrap() * 3 < one.expected.unwrap(), "a fifth is expected: {:?} of {:?}", some.expected, one.expected);
    // only a whole one verifies
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit where whole").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_audited_is_said_and_nothing_is_written_down() {
    let world = World::new().await;
    let index = world.index("annotation");
    for (words, sentence) in [
        (&["audit", "nothing"][..], "nothing"),
        (&["audit", "bystander", "--since", "2026-01-01"], "collection bystander has no period"),
        (&["audit", "--since", "yesterday"], "is not a time"),
        (&["audit", "--sample", "0"], "a share above 0"),
        (&["audit", "--rate", "0"], "at least 1 key a second"),
        (&["audit", "--rate=-1"], "at least 1 key a second"),
        (&["audit", "annotation", "--index", "other-000001"], "other-000001 is no index of collection annotation; it has:"),
        (&["audit", "--resume", "7", "--repair"], "--resume"),
    ] {
        let (code, said, complained) = world.run(words).await;
        assert!(code == 2 && complained.contains(sentence), "{words:?}: {code} {said}{complained}");
    }
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit").await, 0);

    world.http("POST", &format!("/{index}/_close"), None).await;
    let (code, _, complained) = world.run(&["audit", "annotation"]).await;
    assert!(code == 2 && complained.contains("closed"), "{complained}");
    world.http("POST", &format!("/{index}/_open"), None).await;
    let (code, said, complained) = world.run(&["audit", "annotation"]).await;
    assert_eq!(code, 0, "{said}{complained}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_cannot_be_told_keeps_no_other_from_being_told() {
    let world = World::new().await;
    world.in_step("acct:a", "one").await;
    world.http("DELETE", &format!("/{}", world.index("annotation")), None).await;
    let remedy = format!("annotation: there is no index {}", world.index("annotation"));
    for words in [&["audit"][..], &["audit", "--content"], &["audit", "annotation"]] {
        let (code, said, errors) = world.run(words).await;
        assert!(code == 2 && errors.contains(&remedy) && errors.contains("run `catchword migrate`"), "{words:?} {code} {said}{errors}");
        assert_eq!(said.contains("bystander\n  compared"), words.len() == 1 || words[1] == "--content", "{words:?} {said}");
    }
    let (code, said, _) = world.run(&["audit", "--json"]).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, said.as_array().unwrap().len(), &said[0]["collection"]), (2, 1, &json!("bystander")), "{said:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_step_is_not_said_of_what_nobody_compared_or_works_on() {
    let world = World::new().await;
    world.in_step("acct:a", "one").await;
    for words in [&["audit", "annotation", "--since", "2999-01-01"][..], &["audit", "annotation", "--sample", "1e-9"]] {
        let (code, said, errors) = world.run(words).await;
        assert!(code == 2 && !said.contains("in step") && errors.contains("nothing was compared"), "{words:?} {code} {said}{errors}");
    }
    world.annotate("acct:a", "two").await;
    let (code, said, _) = world.run(&["audit", "annotation"]).await;
    assert!(code == 0 && said.contains("pending   1: a job is open for each, and will look at it"), "{code} {said}");

    world.sql("insert into catchword.pause (collection, by, reason) values ('annotation', 'mina', 'moving')").await;
    let (code, said, errors) = world.run(&["audit", "annotation"]).await;
    assert!(code == 2 && said.contains("by mina: moving") && !said.contains("in step"), "{code} {said}");
    assert!(errors.contains("catchword resume annotation"), "{errors}");
    world.sql("delete from catchword.pause").await;

    let blocked = "insert into catchword.worker (id, host, version, collections, blocked)
                   values (gen_random_uuid(), 'h', '1', '{annotation}', '{\"annotation\": \"its index is closed\"}')";
    world.sql(blocked).await;
    let (code, said, errors) = world.run(&["audit", "annotation"]).await;
    assert!(code == 2 && said.contains("blocked   its index is closed") && errors.contains("fix that first"), "{code} {said}{errors}");
    // what is paused and has nothing pending is in step
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let (code, said, _) = world.run(&["audit", "annotation"]).await;
    assert!(code == 0 && said.contains("in step"), "{code} {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_gives_few_at_once_is_walked_in_smaller_pages() {
    let world = World::new().await;
    for text in ["one", "two", "three", "four", "five"] {
        world.in_step("acct:a", text).await;
    }
    let orphan = Uuid::new_v4().to_string();
    world.put("annotation", &orphan, 7_000_000, json!({ "text": "of nobody" })).await;
    let few = json!({ "index.max_result_window": 2 });
    let (status, answer) = world.http("PUT", &format!("/{}/_settings", world.index("annotation")), Some(few)).await;
    assert_eq!(status, 200, "{answer}");
    let (code, said, errors) = world.run(&["audit", "annotation"]).await;
    assert_eq!(code, 1, "{said}{errors}");
    assert!(said.contains("orphan") && said.contains(&orphan), "{said}");
}

/// A touch recorded a number for the row, and then the row went without a trace: with a partition, or with triggers off. The record is no delete.
#[tokio::test(flavor = "multi_thread")]
async fn a_touched_row_that_went_without_a_trace_is_an_orphan() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "hello").await;
    world.sql(&format!("select catchword.draw('annotation', array['{key}']), catchword.schedule('annotation', array['{key}'])")).await;
    assert_eq!(world.run(&["sync", "--drain"]).await.0, 0);
    world.sql(&format!("begin; set local session_replication_role = replica; delete from annotation where id = '{key}'; commit")).await;
    let (code, out, err) = world.run(&["audit", "annotation", "--repair"]).await;
    assert_eq!(code, 1, "{out}{err}");
    assert_eq!(world.run(&["sync", "--drain"]).await.0, 0);
    assert_eq!(world.source("annotation", &key).await.unwrap(), serde_json::json!({ "catchword_deleted": true }));
    assert_eq!(world.run(&["audit", "annotation"]).await.0, 0);
    world.both_sides_agree().await;
}
