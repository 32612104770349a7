//! Rebuild after rebuild under writes, with the command and a worker killed on the way.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use tokio::io::AsyncReadExt;

use super::readers::Readers;
use crate::common::{Layout, Traffic, World, eventually, start};

/// Where the command is killed, one after the other.
const STAGES: [&str; 6] = ["fill", "drain", "verify", "swap", "keep", "create"];

/// How many in a row; `make test-faults` asks for more.
fn rebuilds() -> usize {
    std::env::var("CATCHWORD_REBUILDS").map_or(2, |times| times.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn rebuilds_in_a_row_under_writes_lose_nothing_whoever_is_killed() {
    let world = Arc::new(World::with(Layout { tick: "* * * * * *", batch: 500, ..Layout::default() }).await);
    // enough for a stage to take a while
    world
        .sql("insert into annotation (userid, target_uri, target_uri_normalized, text) select 'acct:a', 'u', 'u', 'old ' || i from generate_series(1, 1000) i")
        .await;
    let mut worker = start(&world).await;
    eventually("all are found", async || world.found("annotation").await.len() == 1000).await;
    let (traffic, readers) = (Traffic::steady(&world), Readers::start(&world));
    for n in 0..rebuilds() {
        println!("{} rebuilds, {} rows", n, world.one::<i64>("select count(*) from annotation").await);
        killed_at(&world, STAGES[n % STAGES.len()], super::AT_ONCE).await;
        worker.signal("-KILL").await;
        assert_eq!(worker.child.wait().await.unwrap().signal(), Some(9));
        world.intent_is_durable().await;
        worker = start(&world).await;
        // the worker may have ended it meanwhile: then this is another one. It comes to its end, however slow the machine is; a server that
        // does not answer in half a minute is no fault, if the same command goes on
        loop {
            let (code, said, errors) = world.run(super::AT_ONCE).await;
            assert!(code == 0 || errors.contains("another process") || errors.contains("no answer in time"), "{said}{errors}");
            if code == 0 {
                break;
            }
        }
        assert_eq!(
            world.targets("annotation").await,
            world.annotation_indices().await.iter().map(|n| format!("{}{n}", world.prefix)).collect::<Vec<_>>()
        );
    }
    // on a busy machine a search takes its time
    eventually("enough was searched", async || readers.searches() > 20).await;
    let (writes, searches) = (traffic.end().await, readers.end().await);
    println!("{writes} writes, {searches} searches");
    assert!(writes > 50);
    worker.signal("-TERM").await;
    worker.child.wait().await.unwrap();
    world.settle_and_compare().await;
}

/// A rebuild that is killed when it comes to this stage, or a moment later.
pub async fn killed_at(world: &World, stage: &str, words: &[&str]) {
    let before: i64 = world.one("select coalesce(max(id), 0) from catchword.rebuild").await;
    let order = "array_position(array['create', 'fill', 'drain', 'verify', 'swap', 'keep', 'drop', 'done']";
    let reached = format!("select count(*) from catchword.rebuild where id > {before} and {order}, stage) >= {order}, '{stage}')");
    loop {
        let mut command = world.binary().args(words).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let mut stderr = command.stderr.take().unwrap();
        let ended = tokio::select! {
            () = eventually("it comes there", async || world.one::<i64>(&reached).await > 0) => None,
            status = command.wait() => Some(status.unwrap()),
        };
        match ended {
            None => {
                // a moment later, anywhere in the stage
                let over = tokio::time::timeout(Duration::from_millis(rand::rng().random_range(0..50)), command.wait()).await;
                if over.is_err() {
                    command.kill().await.unwrap();
                }
                return;
            }
            Some(status) if status.success() => return,
            Some(status) => {
                let mut errors = String::new();
                stderr.read_to_string(&mut errors).await.unwrap();
                // a worker that looks after the last one
                assert!(errors.contains("another process") || errors.contains("no answer in time"), "{status}: {errors}");
            }
        }
    }
}
