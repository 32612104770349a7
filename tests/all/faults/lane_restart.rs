//! The quick lane through a restart of Postgres, and an application that commits in two phases: on a server of the test's own.

use super::restore::Server;
use crate::common::{Layout, World, eventually, start};
use crate::pass::quick::quick;

#[tokio::test(flavor = "multi_thread")]
async fn the_lane_is_kept_again_after_a_restart_and_a_prepared_transaction_is_served_when_it_commits() {
    let server = Server::start().await;
    let world = World::with(Layout { postgres: Some(server.url.clone()), ..quick() }).await;
    world.sql("alter system set max_prepared_transactions = 4").await;
    let worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    let key = world.annotate("acct:a", "before").await;
    world.is_in_step(&key).await;

    server.down().await;
    server.up().await;
    // the pool's connections are dead, and the first statements find that out
    let insert = "insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u')";
    eventually("the server is back", async || sqlx::raw_sql("select 1").execute(&world.pool).await.is_ok()).await;
    eventually("saved", async || sqlx::raw_sql(insert).execute(&world.pool).await.is_ok()).await;
    eventually("settled without a tick", async || world.jobs().await == 0).await;
    assert_eq!(world.found("annotation").await.len(), 2);

    world.sql(&format!("begin; {insert}; prepare transaction 'one'")).await;
    let key = world.annotate("acct:a", "another").await;
    world.is_in_step(&key).await;
    assert_eq!(world.found("annotation").await.len(), 3, "what is only prepared is nobody's yet");
    world.sql("commit prepared 'one'").await;
    eventually("settled without a tick", async || world.jobs().await == 0).await;
    assert_eq!(world.found("annotation").await.len(), 4);
}
