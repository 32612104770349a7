//! Real processes, real signals: killed, frozen and cut off under writes; then every key must agree.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::{Instant, sleep};

use crate::common::{Layout, OFFERED, Traffic, World, eventually, start};

fn quick() -> Layout {
    Layout { tick: "* * * * * *", batch: 200, quick: "25ms", ..Layout::default() }
}

/// How long the workers are killed: longer with `make test-faults`.
fn storm() -> Duration {
    let given = std::env::var("CATCHWORD_STORM_SECONDS").map(|seconds| seconds.parse().unwrap());
    Duration::from_secs(given.unwrap_or(15))
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_at_random_under_writes_lose_nothing() {
    let world = Arc::new(World::with(quick()).await);
    let began = Instant::now();
    let end = began + storm();
    let traffic = Traffic::start(&world);
    let mut random = StdRng::from_os_rng();
    let mut workers = [start(&world).await, start(&world).await];
    let mut killed = 0;
    // on a busy machine a worker takes seconds to start: then it takes longer, and no fewer kills
    while Instant::now() < end || killed < 5 {
        sleep(Duration::from_millis(random.random_range(200..1500))).await;
        let victim = random.random_range(0..2);
        workers[victim].signal("-KILL").await;
        workers[victim].child.wait().await.unwrap();
        workers[victim] = start(&world).await;
        killed += 1;
        world.intent_is_durable().await;
    }
    let seconds = began.elapsed().as_secs_f64();
    let writes = traffic.end().await;
    drop(workers);
    println!("{killed} kills and {writes} writes in {seconds:.0} s: {:.0} writes a second of {OFFERED} offered", writes as f64 / seconds);
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_frozen_with_a_batch_changes_nothing_when_it_wakes() {
    let world = World::with(Layout { gated: true, ..quick() }).await;
    let gate = world.gate.as_ref().unwrap();
    let changed = world.in_step("acct:a", "before").await;
    let deleted = world.in_step("acct:a", "soon gone").await;
    let mut worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    // the batch is about to write what it has read, and freezes there
    gate.hold("_bulk");
    world.sql(&format!("update annotation set text = 'read by the frozen one' where id in ('{changed}', '{deleted}')")).await;
    gate.holds_something().await;
    worker.signal("-STOP").await;
    world.sql(&format!("update annotation set text = 'after' where id = '{changed}'; delete from annotation where id = '{deleted}'")).await;
    // its connection is cut, as the server does to a silent one, and another worker finishes
    world
        .sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'catchword' and state = 'idle in transaction'")
        .await;
    let other = world.past_the_gate().await;
    eventually("another one finishes", async || {
        other.drain("test", &["annotation"]).await.unwrap();
        world.jobs().await == 0
    })
    .await;
    let settled = (world.version("annotation", &changed).await, world.version("annotation", &deleted).await);

    gate.pass();
    worker.signal("-CONT").await;
    gate.late_requests_are_answered().await;
    eventually("it is itself again", async || worker.get(&world, "/readyz").await.0 == 200).await;
    assert_eq!((world.version("annotation", &changed).await, world.version("annotation", &deleted).await), settled);
    worker.signal("-TERM").await;
    assert_eq!(worker.child.wait().await.unwrap().code(), Some(0));
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_connections_are_cut_twice_a_second_goes_on() {
    let world = Arc::new(World::with(quick()).await);
    let mut worker = start(&world).await;
    let end = Instant::now() + Duration::from_secs(8);
    let traffic = Traffic::start(&world);
    while Instant::now() < end {
        world
            .sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'catchword'")
            .await;
        sleep(Duration::from_millis(500)).await;
        assert!(worker.child.try_wait().unwrap().is_none(), "it never exits");
    }
    traffic.end().await;
    eventually("ready again", async || worker.get(&world, "/readyz").await.0 == 200).await;
    worker.signal("-TERM").await;
    assert_eq!(worker.child.wait().await.unwrap().code(), Some(0));
    world.settle_and_compare().await;
}
