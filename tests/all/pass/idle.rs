//! A worker with nothing to do asks next to nothing of Postgres. What it asks is counted as figure 12 of the benchmark counts it.

#[path = "../../../benches/figures/counted.rs"]
mod counted;

use std::sync::atomic::Ordering;
use std::time::Instant;

use catchword::Catchword;
use tokio_util::sync::CancellationToken;

use crate::common::{Layout, World, environment, eventually, launch};
use counted::counted;

const TICKS: i64 = 8;

impl World {
    /// Ticks so far: each notes once which server this is.
    async fn ticks(&self) -> i64 {
        self.one("select count(*) from ticks").await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_asks_one_question_a_tick_for_all_collections_together() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    world
        .sql(
            "create table ticks (at timestamptz default now());
             create function ticked() returns trigger language plpgsql as $$ begin insert into public.ticks default values; return null; end $$;
             create trigger ticked after update on catchword.installation for each statement execute function ticked()",
        )
        .await;
    let (url, asked) = counted(&world.database_url).await.unwrap();
    let _worker = launch(world.binary().env("DATABASE_URL", url)).await;
    let renewed = "select count(*) from catchword.sentinel";
    eventually("it has started and is idle", async || world.ticks().await > 2 && world.one::<i64>(renewed).await == 2).await;

    let (started, ticks, before) = (Instant::now(), world.ticks().await, asked.load(Ordering::Relaxed));
    eventually("some ticks", async || world.ticks().await >= ticks + TICKS).await;
    let (seen, ticks) = (asked.load(Ordering::Relaxed) - before, world.ticks().await - ticks);
    println!("{seen} statements in {ticks} ticks for two collections");
    let seconds = started.elapsed().as_secs();
    assert!(ticks as u64 <= seconds + 2, "one tick a second, and each notes the server once: {ticks} in {seconds} s");
    // a tick may be under way at the beginning; a round of the upkeep asks twice, once a minute; a new reindex is looked for every two seconds
    let allowed = ticks as u64 + 1 + 2 * (seconds / 60 + 1) + seconds / 2 + 1;
    assert!(seen <= allowed, "{seen} statements in {ticks} ticks");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_of_the_upkeep_asks_two_questions_for_all_collections_together() {
    let world = World::new().await;
    let (url, asked) = counted(&world.database_url).await.unwrap();
    let environment = environment(&url, &world.elasticsearch, &world.prefix);
    let catchword = Catchword::connect(world.catchword.config().clone(), &environment).await.unwrap();
    let mut upkeep = catchword.upkeep(&[]);
    let mut round = async || {
        world.sql("update catchword.sentinel set renewed_at = renewed_at - interval '1 minute'").await;
        let before = asked.load(Ordering::Relaxed);
        upkeep.round(&CancellationToken::new()).await.unwrap();
        asked.load(Ordering::Relaxed) - before
    };
    // the first one clears away what is old
    assert!(round().await > 0);
    for n in 1..=3 {
        let version = world.version("annotation", "catchword-sentinel").await;
        assert_eq!(round().await, 2, "round {n}");
        assert!(world.version("annotation", "catchword-sentinel").await > version, "it did its work");
    }
}
