//! Elasticsearch away: nothing is lost, and nothing else is slowed down.

use catchword::Direct;
use tokio::time::Instant;

use crate::common::{Layout, World, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_charges_nothing_and_loses_nothing() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    gate.refuse();
    world.sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 300) i").await;
    for _ in 0..5 {
        world.make_due().await;
        let outcome = world.pass().await;
        assert_eq!((outcome.settled, outcome.buried, outcome.pushed_back), (0, 0, 0), "{outcome}");
        assert!(outcome.breaker.is_some() || outcome.postponed == 300, "{outcome}");
    }
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'annotation' and attempts = 0").await, 300);

    gate.pass();
    eventually("everything is indexed", async || {
        world.make_due().await;
        world.catchword.drain("test", &["annotation"]).await.unwrap();
        world.jobs().await == 0
    })
    .await;
    assert_eq!(world.found("annotation").await.len(), 300);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_whose_answer_is_lost_is_looked_at_again() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    let key = world.annotate("acct:a", "x").await;
    gate.hold("_bulk");
    let pass = tokio::spawn({
        let catchword = world.catchword.clone();
        async move { catchword.sync("test", &["annotation"]).await.unwrap() }
    });
    gate.holds_something().await;
    // the write lands past the gate, as if its answer were lost on the way back
    world.past_the_gate().await.index_now("annotation", [&key]).await;
    gate.refuse();
    let outcome = pass.await.unwrap();
    assert_eq!((outcome.settled, outcome.postponed, outcome.pushed_back), (0, 1, 0), "{outcome}");
    gate.pass();
    eventually("a later look settles it", async || {
        world.make_due().await;
        world.pass().await.settled == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_elasticsearch_costs_a_direct_write_a_second_and_only_until_the_breaker_opens() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    let key = world.annotate("acct:a", "x").await;
    gate.hold("/");
    let mut slow = 0;
    for _ in 0..10 {
        let started = Instant::now();
        let direct = world.catchword.index_now("annotation", [&key]).await;
        assert!(matches!(direct, Direct::Left(_)), "{direct}");
        assert!(started.elapsed().as_millis() < 2_000);
        slow += u32::from(started.elapsed().as_millis() > 500);
    }
    assert!(slow <= 4, "{slow} of 10 writes waited for a dead cluster");
    gate.pass();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_closes_the_breaker_of_a_service_that_has_no_loop() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    gate.refuse();
    let key = world.annotate("acct:a", "x").await;
    for _ in 0..4 {
        assert!(matches!(world.catchword.index_now("annotation", [&key]).await, Direct::Left(_)));
    }
    gate.pass();
    eventually("direct writes are sent again", async || world.catchword.index_now("annotation", [&key]).await == Direct::Indexed).await;
}

/// The most requests within one second.
fn busiest_second(passed: &[std::time::Instant]) -> usize {
    let within =
        |first: &std::time::Instant| passed.iter().filter(|at| **at >= *first && at.duration_since(*first).as_millis() < 1_000).count();
    passed.iter().map(within).max().unwrap_or(0)
}

/// Rounds, a normal one and one after an outage each: rates are judged where there are several, in `make test-faults`. One would measure
/// what else the machine was doing.
fn rounds() -> usize {
    std::env::var("CATCHWORD_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap())
}

/// Two workers, of two batches in flight each.
const MOST_IN_FLIGHT: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn after_an_outage_two_workers_ask_no_more_than_before() {
    let world = World::with(Layout { gated: true, tick: "* * * * * *", batch: 50, ..Layout::default() }).await;
    let gate = world.gate.as_ref().unwrap();
    let _workers = [crate::common::start(&world).await, crate::common::start(&world).await];
    let insert =
        "insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 3000) i";
    let breakers = async |open: i64| {
        let count = "select count(*) from catchword.worker where breaker <> 'closed'";
        eventually("the breakers", async || world.one::<i64>(count).await == open).await;
    };
    // bytes that were sent, and requests in the busiest second
    let drained = async || {
        // what was asked for in vain comes back after up to 30 s
        for left in [2_500, 2_000, 1_500, 1_000, 500, 0] {
            eventually("the queue grows shorter", async || world.jobs().await <= left).await;
        }
        let most = gate.most_in_flight();
        assert!(most <= MOST_IN_FLIGHT, "{most} requests at the same moment");
        (gate.bytes(), busiest_second(&gate.passed()))
    };

    // the first time warms up both servers
    world.sql(insert).await;
    drained().await;
    let (mut normal_rates, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..rounds() {
        breakers(0).await;
        gate.passed();
        gate.bytes();
        world.sql(insert).await;
        let (normal, rate) = drained().await;
        normal_rates.push(rate);

        gate.refuse();
        world.sql(insert).await;
        breakers(2).await;
        gate.passed();
        gate.bytes();
        gate.pass();
        let (after, rate) = drained().await;
        rates.push(rate);
        // not the requests: what was asked for in vain comes back bit by bit, in smaller ones. But nothing is asked or sent twice
        println!("{normal} bytes normally, {after} after an outage");
        assert!(after * 10 <= normal * 11, "{normal} -> {after} bytes");
    }
    println!("requests in the busiest second, normally: {normal_rates:?}, after an outage: {rates:?}");
    let (normal, after) = (median(normal_rates), median(rates));
    assert!(rounds() == 1 || after * 10 <= normal * 11, "{normal} -> {after} requests a second");
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 0);
    world.settle_and_compare().await;
}

fn median(mut numbers: Vec<usize>) -> usize {
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}
