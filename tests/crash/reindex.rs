//! Whoever schedules a reindex dies on its way, and a worker goes on with exactly the rest.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use sqlx::Connection;
use sqlx::postgres::PgConnection;

use crate::common::{Traffic, World, eventually, launch, start};
use crate::{a_new_worker_finishes, end_of, quick, repetitions};

/// More than two chunks of rows that are touched.
const ROWS: &str =
    "insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:many', 'u', 'u' from generate_series(1, 6000)";
const REINDEX: [&str; 5] = ["reindex", "annotation", "--user", "acct:many", "--rewrite"];
const UNFINISHED: &str = "select scheduled from catchword.reindex where finished_at is null";

#[tokio::test(flavor = "multi_thread")]
async fn the_command_between_two_chunks() {
    let world = Arc::new(World::with(quick()).await);
    world.sql(ROWS).await;
    for _ in 0..repetitions() {
        let before = last_revision(&world).await;
        let traffic = Traffic::start(&world);
        let mut reindex = world.binary().args(REINDEX).env("CATCHWORD_CRASH", "chunk-committed").spawn().unwrap();
        assert_eq!(end_of(&mut reindex).await.signal(), Some(6));
        world.intent_is_durable().await;
        assert_eq!(world.all::<i64>(UNFINISHED).await, [2500]);
        a_worker_goes_on(&world, before, traffic).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_between_two_chunks() {
    let world = Arc::new(World::with(quick()).await);
    world.sql(ROWS).await;
    for _ in 0..repetitions() {
        let before = last_revision(&world).await;
        let traffic = Traffic::start(&world);
        let (code, said, errors) = world.run(&REINDEX).await;
        assert_eq!(code, 0, "{said}{errors}");
        assert_eq!(world.all::<i64>(UNFINISHED).await, [2500]);
        let mut worker = launch(world.binary().env("CATCHWORD_CRASH", "chunk-committed")).await;
        assert_eq!(end_of(&mut worker.child).await.signal(), Some(6));
        world.intent_is_durable().await;
        assert_eq!(world.all::<i64>(UNFINISHED).await, [5000]);
        a_worker_goes_on(&world, before, traffic).await;
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
        a_worker_goes_on(&world, before, traffic).await;
    }
}

async fn last_revision(world: &World) -> i64 {
    world.one("select last_value from catchword.revision").await
}

/// What is left is scheduled once, every row of the scope has a new number, and a worker brings it to the index.
async fn a_worker_goes_on(world: &World, before: i64, traffic: Traffic) {
    let mut worker = start(world).await;
    eventually("all of it is scheduled", async || world.all::<i64>(UNFINISHED).await.is_empty()).await;
    assert_eq!(world.one::<i64>("select scheduled from catchword.reindex order by id desc limit 1").await, 6000);
    let untouched = format!(
        "select count(*) from annotation a where userid = 'acct:many' and catchword_revision <= {before}
            and not exists (select from catchword.record r where r.collection = 'annotation' and r.key = a.id::text and r.revision > {before})"
    );
    assert_eq!(world.one::<i64>(&untouched).await, 0);
    traffic.end().await;
    eventually("it has ended", async || world.one::<bool>("select bool_and(ended_at is not null) from catchword.reindex").await).await;
    assert_eq!(world.one::<i64>("select settled from catchword.reindexes() order by id desc limit 1").await, 6000);
    worker.signal("-TERM").await;
    assert_eq!(end_of(&mut worker.child).await.code(), Some(0));
    a_new_worker_finishes(world).await;
}
