//! A network that delays, trickles, cuts, resets, swallows and holds back, under writes of every kind: afterwards both sides agree.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{Gate, Layout, Traffic, World, eventually, start};

type Harm = fn(&Gate);

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_network_does_to_elasticsearch_both_sides_agree_afterwards() {
    let harms: [(&str, Harm); 9] = [
        ("latency", |gate| gate.delay(Duration::from_millis(400))),
        ("bandwidth", |gate| gate.trickle(200)),
        ("nothing of an answer", |gate| gate.cut(0)),
        ("half a head", |gate| gate.cut(40)),
        ("a head and some of the body", |gate| gate.cut(300)),
        ("most of a large answer", |gate| gate.cut(4_000)),
        ("resets", Gate::reset),
        ("swallowed answers", |gate| gate.swallow(&["_bulk"])),
        ("held back and released", |gate| gate.hold("_bulk")),
    ];
    through(World::with(Layout { gated: true, tick: "* * * * * *", batch: 200, ..Layout::default() }).await, &harms).await;
}

async fn through(world: World, harms: &[(&str, Harm)]) {
    let world = Arc::new(world);
    let gate = world.gate.as_ref().unwrap();
    for (harm, act) in harms {
        // a new one, whose breakers are closed: so that each harm meets a worker that sends
        let mut worker = start(&world).await;
        let key = world.annotate("acct:before", harm).await;
        eventually(&format!("before {harm}: it works"), async || world.version("annotation", &key).await.is_some()).await;
        act(gate);
        let traffic = Traffic::start(&world);
        let began = Instant::now();
        eventually(harm, async || began.elapsed() > Duration::from_millis(1500)).await;
        world.intent_is_durable().await;
        assert!(worker.child.try_wait().unwrap().is_none(), "{harm}: it never exits");
        assert!(traffic.end().await > 0);
        gate.pass();
        gate.late_requests_are_answered().await;
        world.sql("update catchword.job set scheduled_at = now() where collection = 'annotation'").await;
    }
    world.settle_and_compare().await;
}
