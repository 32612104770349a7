//! The real binary, ended without warning at each place where that could hurt, under writes; then a restart, and every key agrees.
//!
//! CATCHWORD_REPEAT says how often each; once, if it says nothing. `make test-faults` runs it with more.

// a test never cancels its own begin
#![allow(clippy::disallowed_methods)]

#[allow(dead_code, unused_imports, reason = "tests/all uses the rest")]
#[path = "../all/common/mod.rs"]
mod common;

mod rebuild;
mod reindex;
mod worker;

use std::process::ExitStatus;
use std::time::Duration;

use common::{Layout, World, eventually, start};
use tokio::process::Child;

fn repetitions() -> u32 {
    std::env::var("CATCHWORD_REPEAT").map_or(1, |times| times.parse().unwrap())
}

/// Jobs are due at once and there is a tick every second.
fn quick() -> Layout {
    Layout { tick: "* * * * * *", ..Layout::default() }
}

async fn end_of(child: &mut Child) -> ExitStatus {
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
    ended.expect("it never came to the point").unwrap()
}

/// A new worker does what the crashed one left.
async fn a_new_worker_finishes(world: &World) {
    let mut worker = start(world).await;
    eventually("nothing is left", async || world.jobs().await == 0).await;
    worker.signal("-TERM").await;
    assert_eq!(end_of(&mut worker.child).await.code(), Some(0));
    world.settle_and_compare().await;
}
