//! A collection with two indices, as a rebuild makes it: a job is satisfied only when both agree, and the one that nobody reads holds
//! up nothing.

use std::sync::Arc;

use catchword::Direct;
use serde_json::json;

use crate::common::{Gate, Traffic, World, eventually};

impl World {
    /// A second index of `annotation`, made and recorded as a rebuild does it; returns its name.
    pub async fn second_index(&self) -> String {
        let second = self.make_second_index().await;
        self.record_index(&second).await;
        second
    }

    async fn make_second_index(&self) -> String {
        let (first, second) = (self.index("annotation"), format!("{}annotation-000002", self.prefix));
        let (_, made) = self.http("GET", &format!("/{first}"), None).await;
        let body = json!({ "mappings": made[&first]["mappings"], "aliases": { format!("{second}-write"): {} } });
        assert_eq!(self.http("PUT", &format!("/{second}"), Some(body)).await.0, 200);
        second
    }

    async fn record_index(&self, second: &str) {
        self.sql(&format!("update catchword.collection set targets = array_append(targets, '{second}') where name = 'annotation'")).await;
    }

    async fn version_in(&self, index: &str, key: &str) -> Option<i64> {
        self.http("POST", &format!("/{index}/_mget?_source=false"), Some(json!({ "ids": [key] }))).await.1["docs"][0]["_version"].as_i64()
    }

    async fn schedule(&self, key: &str) {
        self.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_satisfied_only_when_all_targets_agree() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    let revision = world.revision(&key).await;
    let second = world.second_index().await;
    world.schedule(&key).await;
    let outcome = world.pass().await;
    assert_eq!((outcome.written, outcome.settled, outcome.left), (1, 0, 1), "the first has it, the second gets it");
    assert_eq!(world.version_in(&second, &key).await, Some(revision));
    assert_eq!(world.pass().await.settled, 1);
    world.both_sides_agree().await;
    world.noise_is_untouched().await;
}

/// The hole: a loop that read the targets before the second one was recorded must not settle what was scheduled for it.
#[tokio::test(flavor = "multi_thread")]
async fn who_knows_only_the_old_index_settles_nothing_for_the_new_one() {
    let world = Arc::new(World::gated().await);
    let key = world.in_step("acct:a", "x").await;
    let gate: &Gate = world.gate.as_ref().unwrap();
    let stale = world.another().await;
    // made before: the question below is given up after three seconds, and a busy server takes longer to make an index
    let second = world.make_second_index().await;
    // it has read the targets, and asks whose index that is
    gate.hold("settings.index.uuid");
    let passing = tokio::spawn(async move { stale.sync("stale", &["annotation"]).await.unwrap() });
    gate.holds_something().await;
    world.record_index(&second).await;
    world.schedule(&key).await;
    gate.pass();
    let outcome = passing.await.unwrap();
    assert_eq!(outcome.settled, 0, "the second index has not got it yet");
    assert_eq!((outcome.written, world.jobs().await), (1, 1), "it has heard of the second one, and writes to it");
    assert_eq!(world.version_in(&second, &key).await, Some(world.revision(&key).await));
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_nobody_reads_and_that_is_closed_holds_up_nothing() {
    let world = World::new().await;
    let second = world.second_index().await;
    assert_eq!(world.http("POST", &format!("/{second}/_close"), None).await.0, 200);
    let mut keys = Vec::new();
    // more than the small batch that a blocked collection is tried with
    for n in 0..120 {
        keys.push(world.annotate("acct:a", &format!("{n}")).await);
    }
    world.pass().await;
    for key in &keys {
        assert_eq!(world.version("annotation", key).await, Some(world.revision(key).await), "readers wait for nothing");
    }
    assert_eq!(world.jobs().await, 120, "and no job is satisfied");
    world.make_due().await;
    let (code, said, _) = world.run(&["sync"]).await;
    assert!(code == 1 && said.contains("none moved") && said.contains(&second), "it says why: {said}");
    assert_eq!(world.one::<i64>("select coalesce(sum(attempts), 0) from catchword.job").await, 0, "nobody is charged");
    eventually("indexed", async || world.catchword.index_now("annotation", [&keys[0]]).await == Direct::Indexed).await;

    assert_eq!(world.http("POST", &format!("/{second}/_open"), None).await.0, 200);
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_nobody_reads_and_that_is_gone_or_anothers_is_left_alone() {
    let world = World::new().await;
    let second = world.second_index().await;
    let theirs = json!({ "_meta": { "catchword": { "installation": uuid::Uuid::nil(), "collection": "annotation" } } });
    assert_eq!(world.http("PUT", &format!("/{second}/_mapping"), Some(theirs)).await.0, 200);
    let key = world.annotate("acct:a", "x").await;
    world.pass().await;
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    assert_eq!(world.version_in(&second, &key).await, None, "nothing is written to another's index");
    eventually("indexed", async || world.catchword.index_now("annotation", [&key]).await == Direct::Indexed).await;
    assert_eq!(world.version_in(&second, &key).await, None);

    world.http("DELETE", &format!("/{second}"), None).await;
    let key = world.annotate("acct:a", "y").await;
    world.pass().await;
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    // the list is a rebuild's to change
    world.sql("update catchword.collection set targets = targets[1:1] where name = 'annotation'").await;
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_write_goes_to_both_and_is_left_to_the_loop_until_the_process_has_heard() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    let second = world.second_index().await;
    // what this process knows is older than the second index
    assert!(matches!(world.catchword.index_now("annotation", [&key]).await, Direct::Left(why) if why.contains("rebuilt")));
    eventually("it has heard", async || world.catchword.index_now("annotation", [&key]).await == Direct::Indexed).await;
    assert_eq!(world.version_in(&second, &key).await, Some(world.revision(&key).await));
    world.settle_and_compare().await;
}

/// What readers see, the other index has: so nothing vanishes when the alias moves.
#[tokio::test(flavor = "multi_thread")]
async fn the_index_that_nobody_reads_is_written_first() {
    let world = Arc::new(World::gated().await);
    let second = world.second_index().await;
    let gate: &Gate = world.gate.as_ref().unwrap();
    let by_loop = world.annotate("acct:a", "x").await;
    let (loops, direct) = (world.another().await, world.another().await);

    gate.hold("annotation-000001-write/_bulk");
    let passing = tokio::spawn(async move { loops.sync("test", &["annotation"]).await.unwrap() });
    gate.holds_something().await;
    assert_eq!(world.version_in(&second, &by_loop).await, Some(world.revision(&by_loop).await));
    assert_eq!(world.version("annotation", &by_loop).await, None);
    gate.pass();
    passing.await.unwrap();
    gate.late_requests_are_answered().await;

    let written = world.annotate("acct:a", "y").await;
    let key = written.clone();
    gate.hold("annotation-000001-write/_bulk");
    let writing = tokio::spawn(async move { direct.index_now("annotation", [&key]).await });
    gate.holds_something().await;
    assert_eq!(world.version_in(&second, &written).await, Some(world.revision(&written).await));
    assert_eq!(world.version("annotation", &written).await, None);
    gate.pass();
    writing.await.unwrap();
    gate.late_requests_are_answered().await;
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_targets_agree_after_traffic_that_began_before_the_second() {
    let world = Arc::new(World::new().await);
    let traffic = Traffic::start(&world);
    eventually("there are rows", async || world.one::<i64>("select count(*) from annotation").await > 60).await;
    world.pass().await;
    world.second_index().await;
    // every key that is there now, the hidden and the deleted too
    world.sql("select catchword.reindex('annotation', p_hidden => true)").await;
    world.pass().await;
    world.intent_is_durable().await;
    world.pass().await;
    traffic.end().await;
    world.intent_is_durable().await;
    world.settle_and_compare().await;
}
