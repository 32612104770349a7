//! `catchword rebuild` that dies at each of its lines, under writes, alone and with a worker beside it; then the same command again. Each place
//! is a rebuild of its own, so once is enough.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use crate::common::{Traffic, World, eventually, start};
use crate::{end_of, quick};

const REBUILD: [&str; 5] = ["rebuild", "annotation", "--keep", "0s", "--yes"];
const ROWS: &str =
    "insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:a', 'u', 'u' from generate_series(1, 500)";

/// Every place where it can die, in the order of the story.
const POINTS: [&str; 12] = [
    "rebuild-begun",
    "rebuild-created",
    "rebuild-recorded",
    "rebuild-filled",
    "rebuild-drained",
    "rebuild-verified",
    "rebuild-held",
    "rebuild-moved",
    "rebuild-swapped",
    "rebuild-taken-off",
    "rebuild-dropped",
    "rebuild-ended",
];

#[tokio::test(flavor = "multi_thread")]
async fn alone_and_the_same_command_again_ends_it() {
    let world = Arc::new(World::with(quick()).await);
    world.sql(ROWS).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    for point in POINTS {
        let traffic = Traffic::start(&world);
        died(&world, point).await;
        world.intent_is_durable().await;
        if ["rebuild-recorded", "rebuild-created", "rebuild-begun"].contains(&point) {
            assert!(world.one::<bool>("select exists (select from catchword.rebuild where finished_at is null)").await, "{point}");
        }
        let (code, said, errors) = world.run(&REBUILD).await;
        assert_eq!(code, 0, "after {point}: {said}{errors}");
        traffic.end().await;
        one_index_is_left(&world, point).await;
        world.settle_and_compare().await;
    }
}

/// From the swap on a worker goes on without a command.
#[tokio::test(flavor = "multi_thread")]
async fn beside_a_worker_that_goes_on() {
    let world = Arc::new(World::with(quick()).await);
    world.sql(ROWS).await;
    let mut worker = start(&world).await;
    for point in &POINTS[5..] {
        let traffic = Traffic::start(&world);
        died(&world, point).await;
        let over = "select not exists (select from catchword.rebuild where finished_at is null)";
        eventually("the worker ends it", async || world.one::<bool>(over).await).await;
        one_index_is_left(&world, point).await;
        traffic.end().await;
    }
    worker.signal("-TERM").await;
    assert_eq!(end_of(&mut worker.child).await.code(), Some(0));
    world.settle_and_compare().await;
}

/// Undone where it died: nothing of it is left.
#[tokio::test(flavor = "multi_thread")]
async fn and_is_undone() {
    let world = Arc::new(World::with(quick()).await);
    world.sql(ROWS).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    for point in &POINTS[..7] {
        let traffic = Traffic::start(&world);
        died(&world, point).await;
        world.intent_is_durable().await;
        // an undoing that dies on its way is ended by the next
        let abort = ["rebuild", "annotation", "--abort", "--yes"];
        let mut dying = world.binary().args(abort).env("CATCHWORD_CRASH", "rebuild-taken-off").spawn().unwrap();
        assert_eq!(end_of(&mut dying).await.signal(), Some(6), "{point}");
        let (code, _, errors) = world.run(&abort).await;
        assert_eq!(code, 0, "after {point}: {errors}");
        traffic.end().await;
        assert_eq!(world.targets("annotation").await, [world.index("annotation")]);
        one_index_is_left(&world, point).await;
        let (_, settings) = world.http("GET", &format!("/{}/_settings?flat_settings=true", world.index("annotation")), None).await;
        assert_eq!(settings[world.index("annotation")]["settings"]["index.refresh_interval"], "1s", "after {point}");
        world.settle_and_compare().await;
    }
}

async fn died(world: &World, point: &str) {
    let mut command = world.binary().args(REBUILD).env("CATCHWORD_CRASH", point).stderr(std::process::Stdio::null()).spawn().unwrap();
    assert_eq!(end_of(&mut command).await.signal(), Some(6), "{point}");
}

async fn one_index_is_left(world: &World, point: &str) {
    let (_, listed) = world.http("GET", &format!("/_cat/indices/{}annotation-*?h=index&format=json", world.prefix), None).await;
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|index| index["index"].as_str().unwrap()).collect();
    assert_eq!(names, world.targets("annotation").await, "after {point}");
}
