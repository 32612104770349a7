//! A real Elasticsearch with hardly a place in its queue: it rejects (429), batches shrink, nobody is charged, and everything arrives.

use crate::common::{Layout, Server, World};

/// One thread that writes and one place to wait, for eight shards: most parts of a bulk find neither.
const SQUEEZED: &str = "thread_pool.write.queue_size=1 node.processors=1";

#[tokio::test(flavor = "multi_thread")]
async fn a_full_write_queue_halves_the_batches_and_charges_nobody() {
    let server = Server::start(SQUEEZED).await;
    let layout = Layout { elasticsearch: Some(server.url.clone()), shards: Some(8), batch: 200, ..Layout::default() };
    let world = World::with(layout).await;
    let insert =
        "insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 200) i";
    for _ in 0..4 {
        world.sql(insert).await;
    }
    let outcome = world.pass().await;
    assert!(outcome.postponed > 0, "something was rejected: {outcome}");
    assert_eq!((outcome.claimed, outcome.pushed_back, outcome.buried), (800, 0, 0), "{outcome}");
    // at 200 a batch there are four; the second pair is smaller, and the last ones are smaller still
    assert!(outcome.batches > 5, "the batches became smaller: {} for {} jobs", outcome.batches, outcome.claimed);
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where attempts > 0").await, 0);
    let soon = "select count(*) from catchword.job where collection = 'annotation' and scheduled_at > now() + interval '31 seconds'";
    assert_eq!(world.one::<i64>(soon).await, 0, "what was rejected is tried again within half a minute");
    assert!(outcome.breaker.is_none() && outcome.blocked.is_empty(), "a busy cluster is neither away nor broken: {outcome}");
    world.intent_is_durable().await;
    world.settle_and_compare().await;
    assert_eq!(world.found("annotation").await.len(), 800);
}
