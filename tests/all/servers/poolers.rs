//! PgBouncer in front of the application, and in front of catchword.

use std::collections::BTreeSet;

use catchword::{Catchword, Direct, Error, Stored};
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Row};
use uuid::Uuid;

use crate::common::{Layout, Pooler, World, environment, eventually, launch};

const INSERT: &str =
    "insert into annotation (userid, text, target_uri, target_uri_normalized) values ('acct:a', $1, 'http://x/', 'x') returning id";

/// By the simple protocol, as psql does, and most drivers behind such a pooler.
async fn plain(pool: &PgPool, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(pool).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The sessions that the pooler lends out, and what their path is: as many as are had at the same time.
async fn paths(pooler: &Pooler, sessions: usize) -> BTreeSet<(i32, String)> {
    let mut all: Vec<PgConnection> = Vec::new();
    let mut seen = BTreeSet::new();
    for _ in 0..sessions {
        let mut connection = pooler.connection().await.unwrap();
        sqlx::raw_sql("begin").execute(&mut connection).await.unwrap();
        let asked = "select pg_catalog.pg_backend_pid(), pg_catalog.current_setting('search_path')";
        let row = sqlx::raw_sql(asked).fetch_one(&mut connection).await.unwrap();
        seen.insert((row.get(0), row.get(1)));
        all.push(connection);
    }
    for mut connection in all {
        sqlx::raw_sql("rollback").execute(&mut connection).await.unwrap();
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_pooler_in_transaction_mode_an_application_writes_tags_and_asks_as_without() {
    let world = World::new().await;
    let pooler = Pooler::before(&world.database_url, "transaction", 2).await;
    let application = pooler.pool(6).await;
    let insert = "insert into annotation (userid, text, target_uri, target_uri_normalized) select 'acct:a', 'x', 'u', 'u' from generate_series(1, 3)";
    plain(&application, insert).await;
    plain(&application, "update annotation set text = 'y' where id = (select max(id::text)::uuid from annotation)").await;
    plain(&application, "delete from annotation where id = (select min(id::text)::uuid from annotation)").await;
    let tags = "select concat_ws(' ', tag, count(*)) from catchword.job where collection = 'annotation' group by tag order by tag";
    assert_eq!(world.all::<String>(tags).await, ["delete 1", "insert 3", "update 1"]);
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.both_sides_agree().await;

    // a setting of one transaction reaches no other one of the same session
    plain(&application, &format!("begin; set local catchword.tag = 'import'; set local catchword.delay = '60'; {insert}; commit")).await;
    for _ in 0..4 {
        plain(&application, insert).await;
    }
    let waits = "select concat_ws(' ', tag, extract(epoch from scheduled_at - enqueued_at)::integer, count(*)) from catchword.job
                  where collection = 'annotation' group by tag, scheduled_at - enqueued_at order by 1";
    assert_eq!(world.all::<String>(waits).await, ["import 60 3", "insert 0 12"]);

    let standing = async || {
        let asked = "select bool_or(open) from catchword.standing('annotation', array(select id::text from annotation))";
        sqlx::raw_sql(asked).fetch_one(&application).await.unwrap().get::<bool, _>(0)
    };
    assert!(standing().await);
    world.make_due().await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert!(!standing().await);
    world.both_sides_agree().await;
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn store_and_schedule_takes_a_pool_through_a_pooler_in_transaction_mode() {
    let world = World::with(Layout { annotation: "", ..Layout::default() }).await;
    let pooler = Pooler::before(&world.database_url, "transaction", 3).await;
    let before: BTreeSet<String> = paths(&pooler, 3).await.into_iter().map(|(_, path)| path).collect();
    let own = pooler.pool(8).await;
    let catchword = Catchword::with_pool(world.catchword.config().clone(), &world.environment, own).await.unwrap();
    let mut writing = Vec::new();
    for task in 0..8 {
        let catchword = catchword.clone();
        writing.push(tokio::spawn(async move {
            let mut indexed = 0;
            for n in 0..10 {
                let kept = catchword.store_and_schedule_as("import", "annotation", async |tx: &mut PgConnection| {
                    // an unnamed statement: before 1.21 PgBouncer does not know the others again in another session
                    let insert = sqlx::query_scalar(INSERT).bind(format!("{task} {n}")).persistent(false);
                    let id: Uuid = insert.fetch_one(tx).await?;
                    Ok::<_, Error>(Stored::new(id, [id]))
                });
                let kept = kept.await.unwrap();
                assert_eq!(kept.revisions.len(), 1);
                indexed += usize::from(kept.direct == Direct::Indexed);
            }
            indexed
        }));
    }
    let mut indexed = 0;
    for task in writing {
        indexed += task.await.unwrap();
    }
    assert!(indexed > 0, "none was indexed directly");
    let jobs = "select concat_ws(' ', tag, extract(epoch from scheduled_at - enqueued_at)::integer, count(*)) from catchword.job
                 where collection = 'annotation' group by tag, scheduled_at - enqueued_at";
    assert_eq!(world.all::<String>(jobs).await, ["import 60 80"]);
    let after: BTreeSet<String> = paths(&pooler, 3).await.into_iter().map(|(_, path)| path).collect();
    assert_eq!(before, after, "nothing was set in the sessions of the pooler");
    world.make_due().await;
    world.settle_and_compare().await;

    // its own work goes by DATABASE_URL, which must be the same database
    let other = World::new().await;
    let elsewhere = Pooler::before(&other.database_url, "transaction", 2).await;
    let pool = elsewhere.pool(2).await;
    let refused = Catchword::with_pool(world.catchword.config().clone(), &world.environment, pool).await.err().unwrap().to_string();
    assert!(refused.contains("the application's pool leads to another database than DATABASE_URL"), "{refused}");
}

const SENTENCE: &str = "DATABASE_URL leads to a pooler that gives each transaction another session, so that the settings of a session are lost; \
                        give catchword a direct address, or a pooler in session mode; your application may stay with this one";

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_in_transaction_mode_is_refused_before_anything_is_set_in_a_session() {
    let world = World::new().await;
    let pooler = Pooler::before(&world.database_url, "transaction", 4).await;
    let before = paths(&pooler, 4).await;
    let run = async |words: &[&str]| {
        let output = world.binary().env("DATABASE_URL", &pooler.url).args(words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        (output.status.code().unwrap(), said)
    };
    for words in [
        &["worker", "--listen", "127.0.0.1:0"][..],
        &["migrate"],
        &["migrate", "--dry-run"],
        &["sync"],
        &["status"],
        &["reindex", "annotation", "--all", "--yes"],
        &["audit"],
        &["journal"],
        &["init", "annotation"],
    ] {
        let (code, said) = run(words).await;
        assert!(code == 2 && said.contains(SENTENCE), "{words:?}: {code} {said}");
    }
    let (code, said) = run(&["check"]).await;
    assert!(code == 2 && said.contains(SENTENCE), "{code} {said}");
    let (code, said) = run(&["doctor"]).await;
    assert!(
        code == 2
            && said.contains("FAIL  sessions")
            && said.contains("gives each transaction another session")
            && said.contains("in session mode"),
        "{code} {said}"
    );
    let there = environment(&pooler.url, &world.elasticsearch, &world.prefix);
    let refused = Catchword::connect(world.catchword.config().clone(), &there).await.err().unwrap();
    assert_eq!(refused.to_string(), SENTENCE);
    let after = paths(&pooler, 4).await;
    assert_eq!(before, after, "an application would find its tables in none of these sessions");

    // nor does it look like sessions of our own while others use the pooler
    let (busy, stop) = (pooler.pool(12).await, tokio_util::sync::CancellationToken::new());
    let mut others = Vec::new();
    for _ in 0..12 {
        let (busy, stop) = (busy.clone(), stop.clone());
        others.push(tokio::spawn(async move {
            while !stop.is_cancelled() {
                plain(&busy, "select count(*) from annotation").await;
            }
        }));
    }
    for _ in 0..5 {
        let (code, said) = run(&["journal"]).await;
        assert!(code == 2 && said.contains(SENTENCE), "{code} {said}");
    }
    stop.cancel();
    for other in others {
        other.await.unwrap();
    }
    assert!(paths(&pooler, 4).await.iter().all(|(_, path)| !path.contains("pg_catalog")));

    let statements = Pooler::before(&world.database_url, "statement", 4).await;
    let there = environment(&statements.url, &world.elasticsearch, &world.prefix);
    assert_eq!(Catchword::connect(world.catchword.config().clone(), &there).await.err().unwrap().to_string(), SENTENCE);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_pooler_in_session_mode_a_worker_does_all_its_work() {
    let world = World::with(Layout { tick: "* * * * * *", quick: "25ms", canary: true, ..Layout::default() }).await;
    let pooler = Pooler::before(&world.database_url, "session", 60).await;
    let mut worker = launch(world.binary().env("DATABASE_URL", &pooler.url)).await;
    for n in 0..20 {
        world.annotate("acct:a", &format!("text {n}")).await;
    }
    eventually("everything is settled", async || world.jobs().await == 0).await;
    eventually("the quick lane is kept", async || worker.lines().iter().any(|line| line.contains("keeps the quick lane"))).await;
    for words in
        [&["status"][..], &["reindex", "annotation", "--all", "--rewrite", "--yes"], &["sync", "--drain"], &["audit"], &["journal"]]
    {
        let output = world.binary().env("DATABASE_URL", &pooler.url).args(words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code().unwrap() < 2, "{words:?}: {said}");
    }
    let output = world.binary().env("DATABASE_URL", &pooler.url).args(["doctor", "--all"]).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("settings stay"), "{said}");
    eventually("everything is settled", async || world.jobs().await == 0).await;
    world.both_sides_agree().await;
    let wrong: Vec<String> = worker.lines().into_iter().filter(|line| line.contains("\"level\":\"ERROR\"")).collect();
    assert_eq!(wrong, Vec::<String>::new());
    worker.signal("-TERM").await;
    assert!(worker.child.wait().await.unwrap().success());
    world.noise_is_untouched().await;
}
