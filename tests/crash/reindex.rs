//! `catchword reindex` that dies on its way, and is resumed.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use sqlx::Connection;
use sqlx::postgres::PgConnection;

use crate::common::{Traffic, World, eventually};
use crate::{a_new_worker_finishes, end_of, quick, repetitions};

/// More than one chunk of rows that are touched.
const ROWS: &str =
    "insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:many', 'u', 'u' from generate_series(1, 3000)";
const REINDEX: [&str; 5] = ["reindex", "annotation", "--user", "acct:many", "--rewrite"];

#[tokio::test(flavor = "multi_thread")]
async fn between_two_chunks() {
    let world = Arc::new(World::with(quick()).await);
    world.sql(ROWS).await;
    for _ in 0..repetitions() {
        let before = last_revision(&world).await;
        let traffic = Traffic::start(&world);
        let mut reindex = world.binary().args(REINDEX).env("CATCHWORD_CRASH", "chunk-committed").spawn().unwrap();
        assert_eq!(end_of(&mut reindex).await.signal(), Some(6));
        world.intent_is_durable().await;
        assert_eq!(world.all::<i64>("select scheduled from catchword.reindex where finished_at is null").await, [2500]);
        resumed(&world, before, traffic).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inside_a_chunk() {
    let world = Arc::new(World::with(quick()).await);
    world.sql(ROWS).await;
    for _ in 0..repetitions() {
        let before = last_revision(&world).await;
        // nothing can be recorded, so that the kill comes in the middle of the statement
        let mut holder = PgConnection::connect(&world.database_url).await.unwrap();
        let hold = "begin; lock table catchword.record in share mode";
        sqlx::raw_sql(hold).execute(&mut holder).await.unwrap();
        let mut reindex = world.binary().args(REINDEX).spawn().unwrap();
        let waits = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'catchword' and wait_event_type = 'Lock'";
        eventually("the chunk waits", async || world.one::<i64>(waits).await == 1).await;
        let traffic = Traffic::start(&world);
        reindex.start_kill().unwrap();
        assert_eq!(end_of(&mut reindex).await.signal(), Some(9));
        world.intent_is_durable().await;
        sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
        resumed(&world, before, traffic).await;
    }
}

async fn last_revision(world: &World) -> i64 {
    world.one("select last_value from catchword.revision").await
}

/// What is left is scheduled, every row of the scope has a new number, and a worker brings it to the index.
async fn resumed(world: &World, before: i64, traffic: Traffic) {
    let (code, _, said) = world.run(&["reindex", "annotation", "--resume"]).await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(world.one::<i64>("select count(*) from catchword.reindex where finished_at is null").await, 0);
    let untouched = format!(
        "select count(*) from annotation a where userid = 'acct:many' and catchword_revision <= {before}
            and not exists (select from catchword.record r where r.collection = 'annotation' and r.key = a.id::text and r.revision > {before})"
    );
    assert_eq!(world.one::<i64>(&untouched).await, 0);
    traffic.end().await;
    a_new_worker_finishes(world).await;
}
