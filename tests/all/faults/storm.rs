//! Everything at once: writers of every kind, direct writes, two workers, an Elasticsearch that comes and goes. Then quiet, and every
//! key must agree.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catchword::Catchword;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::common::World;

const STORM: Duration = Duration::from_secs(12);

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_stale_or_resurrected_whatever_comes_together() {
    let seed: u64 = std::env::var("STORM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("STORM_SEED={seed}");
    let world = Arc::new(World::gated().await);
    world.sql("insert into document (title, web_uri) select 'title ' || i, 'http://x/' || i from generate_series(1, 5) i").await;
    world.sql("create table pool_of_keys as select gen_random_uuid() as id from generate_series(1, 60)").await;

    let end = Instant::now() + STORM;
    let over = CancellationToken::new();
    let mut running = Vec::new();
    for n in 0..4 {
        running.push(tokio::spawn(write(world.clone(), StdRng::seed_from_u64(seed + n), end)));
    }
    running.push(tokio::spawn(open_and_close(world.clone(), StdRng::seed_from_u64(seed + 10), end)));
    running.push(tokio::spawn(watch_versions(world.clone(), end)));
    let workers = [world.another().await, world.past_the_gate().await].map(|worker| tokio::spawn(work(worker, over.clone())));
    for task in running {
        task.await.unwrap();
    }
    over.cancel();
    for worker in workers {
        worker.await.unwrap();
    }

    world.gate.as_ref().unwrap().pass();
    world.gate.as_ref().unwrap().late_requests_are_answered().await;
    let last = world.past_the_gate().await;
    crate::common::eventually("the queue is empty", async || {
        world.make_due().await;
        last.drain("storm", &["annotation"]).await.unwrap();
        world.jobs().await == 0
    })
    .await;
    assert_eq!(world.all::<String>("select reason || ' ' || coalesce(last_error, '') from catchword.dead_job").await, Vec::<String>::new());
    world.both_sides_agree().await;
    world.noise_is_untouched().await;
    let writes: i64 = world.one("select last_value / 2 from catchword.revision").await;
    println!("{writes} revisions were drawn");
    assert!(writes > 200, "{writes} is no storm");
}

/// One writer: every kind of change, in transactions of one to three statements, some rolled back, some followed by a direct write.
async fn write(world: Arc<World>, mut random: StdRng, end: Instant) {
    while Instant::now() < end {
        let mut transaction = world.pool.begin().await.unwrap();
        let mut keys = Vec::new();
        let mut failed = false;
        for _ in 0..random.random_range(1..=3) {
            let key: uuid::Uuid = sqlx::query_scalar("select id from pool_of_keys offset $1 limit 1")
                .bind(random.random_range(0..60))
                .fetch_one(&mut *transaction)
                .await
                .unwrap();
            let sql = match random.random_range(0..10) {
                0..=3 => {
                    "insert into annotation (id, userid, target_uri, target_uri_normalized, document_id, text) values ($1, 'acct:a', 'u', 'u', $2, 'text ' || $2) on conflict (id) do update set text = annotation.text || '+', deleted = false"
                }
                4..=5 => "update annotation set text = 'changed ' || $2 where id = $1",
                6 => "update annotation set deleted = not deleted, document_id = $2 where id = $1",
                7..=8 => "delete from annotation where id = $1 and $2 > 0",
                _ => "update document set title = 'renamed ' || clock_timestamp() where id = $2 and $1 is not null",
            };
            let done = sqlx::query(sql).bind(key).bind(random.random_range(1..=5_i64)).execute(&mut *transaction).await;
            // two writers may deadlock: then one of them begins again, as any application would
            if done.is_err() {
                failed = true;
                break;
            }
            keys.push(key);
        }
        if failed || random.random_bool(0.15) {
            transaction.rollback().await.unwrap();
        } else if transaction.commit().await.is_ok() && random.random_bool(0.5) {
            let catchword = world.catchword.clone();
            tokio::spawn(async move { catchword.index_now("annotation", keys).await });
        }
        sleep(Duration::from_millis(random.random_range(0..15))).await;
    }
}

/// Elasticsearch comes and goes: requests are refused, or held back and landed late.
async fn open_and_close(world: Arc<World>, mut random: StdRng, end: Instant) {
    let gate = world.gate.as_ref().unwrap();
    while Instant::now() < end {
        match random.random_range(0..3) {
            0 => gate.refuse(),
            1 => gate.hold("_bulk"),
            _ => gate.hold("_mget"),
        }
        sleep(Duration::from_millis(random.random_range(50..700))).await;
        gate.pass();
        sleep(Duration::from_millis(random.random_range(100..900))).await;
    }
}

/// Promise 2: the version seen for a key never falls. Promise 3: what the index does not show has a job.
async fn watch_versions(world: Arc<World>, end: Instant) {
    let mut highest: BTreeMap<String, i64> = BTreeMap::new();
    while Instant::now() < end {
        for (key, (version, _)) in world.everything_in_the_index().await {
            let before = highest.entry(key.clone()).or_default();
            assert!(version >= *before, "{key} went back from {before} to {version}");
            *before = version;
        }
        world.intent_is_durable().await;
        sleep(Duration::from_millis(100)).await;
    }
}

async fn work(worker: Catchword, over: CancellationToken) {
    while !over.is_cancelled() {
        _ = worker.sync("storm", &["annotation"]).await;
        sleep(Duration::from_millis(20)).await;
    }
}
