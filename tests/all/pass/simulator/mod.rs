//! The core, simulated: the real `compare`, classification and `fate` over an in-memory Postgres and Elasticsearch, with late and lost
//! messages, crashes, rollbacks and failovers. Thousands of seeds; a failing one prints its story and can be replayed:
//! `SIMULATOR_SEED=7 cargo test --test all simulator -- --nocapture`.

mod elastic;
mod postgres;
mod rules;
mod world;

use rules::Rule;
use world::{Simulation, Story};

/// Seeds per run. What a missing rule does shows within some hundreds, a sweep's within some thousands.
const SEEDS: u64 = 4_000;

#[test]
fn with_all_rules_nothing_is_lost_stale_or_resurrected() {
    let given = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let seeds = match given("SIMULATOR_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..given("SIMULATOR_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        if let Err(Story { what, lines }) = Simulation::new(seed, None).run() {
            panic!("seed {seed}: {what}\n{}", lines.join("\n"));
        }
    }
}

/// Each safeguard is there for a reason: without it the simulator finds a loss, a ghost, or an Ahead that no lost commit explains.
#[test]
fn without_any_one_rule_something_goes_wrong() {
    let mut survived = Vec::new();
    for rule in Rule::ALL {
        let found = (0..10 * SEEDS).find_map(|seed| Simulation::new(seed, Some(rule)).run().err().map(|story| (seed, story)));
        match found {
            Some((seed, story)) => println!("without {rule:?}: seed {seed}, {}", story.what),
            None => survived.push(rule),
        }
    }
    assert!(survived.is_empty(), "nothing went wrong without {survived:?}");
}
