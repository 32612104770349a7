//! An audit finds every difference, however it came about, and none that is not there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catchword::audit::{Report, Request};
use catchword::sync::Worker;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::common::{Layout, World, eventually};

fn whole() -> Request {
    Request { collection: "annotation".into(), reason: "test".into(), ..Request::default() }
}

fn repairing() -> Request {
    Request { repair: true, ..whole() }
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
        let rows = self.rows_in_step("acct:audited", 300).await;
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
        // half never had a row, half lost it without a trace
        self.put_all((0..50).map(|_| (Uuid::new_v4().to_string(), 4, source.clone())), "external").await;
        let lost = list(&rows[200..250]);
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
        let (worker, stop) = (Worker::new(world.catchword.clone(), "test", &["annotation"]), over.clone());
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
    let wanted = BTreeMap::from([("missing", 100), ("stale", 100), ("ahead", 100), ("orphan", 100), ("stray", 100)]);

    let looked_at = world.catchword.audit(&whole()).await.unwrap();
    assert_eq!(found(&looked_at), wanted, "{looked_at:?}");
    assert_eq!((looked_at.unknown, looked_at.scheduled), (0, 0));

    let repaired = world.catchword.audit(&repairing()).await.unwrap();
    assert_eq!(found(&repaired), wanted, "{repaired:?}");
    assert_eq!(repaired.scheduled, 500);
    eventually("everything is healed", async || world.one::<i64>("select count(*) from catchword.job where tag = 'audit'").await == 0)
        .await;
    let after = world.catchword.audit(&whole()).await.unwrap();
    assert_eq!(found(&after), BTreeMap::new(), "{after:?}");
    assert!(after.is_in_step());

    assert!(load.end().await > 0);
    world.settle_and_compare().await;
    world.noise_is_untouched().await;
}
