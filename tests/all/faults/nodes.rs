//! Several nodes: when one is down the next is asked, at once and without a storm; only when all are down is it an outage.

use std::sync::Arc;

use catchword::{Catchword, Direct, Stored};

use crate::common::{Gate, World, environment, eventually};

/// An address that nobody listens at.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

async fn reached_by(world: &World, nodes: &[&str]) -> Catchword {
    let environment = environment(&world.database_url, &nodes.join(","), &world.prefix);
    Catchword::connect(world.catchword.config().clone(), &environment).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_node_is_down_the_next_is_asked_and_the_work_goes_on() {
    let world = World::new().await;
    let (first, second) = (Gate::before(&world.elasticsearch).await, Gate::before(&world.elasticsearch).await);
    let catchword = reached_by(&world, &[&first.url, &nobody(), &second.url]).await;
    let before = world.annotate("acct:a", "both are up").await;
    catchword.drain("test", &["annotation"]).await.unwrap();
    assert!(world.version("annotation", &before).await.is_some());
    assert!(!first.passed().is_empty() && second.passed().is_empty(), "one is asked as long as it answers");

    // a node that goes down takes its connections with it; the one after it was never there
    first.refuse();
    let after = world.annotate("acct:a", "one is down").await;
    let outcome = catchword.drain("test", &["annotation"]).await.unwrap();
    assert!(outcome.breaker.is_none() && outcome.is_well(), "{outcome}");
    assert_eq!(world.version("annotation", &after).await, Some(world.revision(&after).await));
    let asked = second.passed().len();
    assert!((1..=20).contains(&asked), "{asked} requests for one document");

    // the direct path too
    let kept = catchword
        .store_and_schedule("annotation", async |tx: &mut sqlx::PgConnection| {
            let sql =
                "insert into annotation (userid, text, target_uri, target_uri_normalized) values ('acct:b', 'x', 'u', 'u') returning id";
            let id: uuid::Uuid = sqlx::query_scalar(sql).fetch_one(tx).await?;
            Ok::<_, catchword::Error>(Stored::new(id, [id]))
        })
        .await
        .unwrap();
    assert_eq!(kept.direct, Direct::Indexed);
    assert!(world.version("annotation", &kept.value.to_string()).await.is_some());
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_when_all_nodes_are_down_does_the_breaker_open_and_it_closes_with_the_first_that_is_back() {
    let world = Arc::new(World::new().await);
    let (first, second) = (Gate::before(&world.elasticsearch).await, Gate::before(&world.elasticsearch).await);
    let catchword = reached_by(&world, &[&first.url, &second.url]).await;
    first.refuse();
    second.refuse();
    let key = world.annotate("acct:a", "nobody is there").await;
    let mut why = None;
    for _ in 0..5 {
        world.make_due().await;
        why = catchword.sync("test", &["annotation"]).await.unwrap().breaker.or(why);
    }
    assert!(why.is_some(), "nothing is sent for a while");
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where attempts > 0").await, 0, "nobody is charged");

    second.pass();
    eventually("it is written through the other node", async || {
        world.make_due().await;
        catchword.sync("test", &["annotation"]).await.unwrap();
        world.version("annotation", &key).await.is_some()
    })
    .await;
}
