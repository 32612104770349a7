//! A document that makes a whole request fail or hang is found and pushed back alone; an outage charges nobody.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{Harm, Layout, Poison, World, eventually, start};

const GOOD: i64 = 200;

/// The annotation example behind a proxy that will not bear everything.
async fn poisoned(layout: Layout) -> (Poison, World) {
    let poison = Poison::new().await;
    let world = World::with(Layout { elasticsearch: Some(poison.url.clone()), ..layout }).await;
    (poison, world)
}

async fn add_good(world: &World, count: i64) {
    let sql = "insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1,";
    world.sql(&format!("{sql} {count}) i")).await;
}

/// What a tick of the worker does: passes until nothing moves.
async fn tick(world: &World) -> catchword::Outcome {
    world.catchword.drain("test", &["annotation"]).await.unwrap()
}

/// Charged jobs, as key and attempts.
async fn charged(world: &World) -> Vec<String> {
    world.all("select key || ' ' || attempts from catchword.job where attempts > 0 order by 1").await
}

/// Each time its wait is over it is tried once more, alone; the fifth time it is buried.
async fn it_is_buried_after_five(world: &World, bad: &str) {
    for attempts in 1..5 {
        assert_eq!(charged(world).await, [format!("{bad} {attempts}")]);
        world.make_due().await;
        tick(world).await;
    }
    assert_eq!(world.jobs().await, 0);
    assert_eq!(
        world.all::<String>("select key || ' ' || reason || ' ' || attempts from catchword.dead_job").await,
        [format!("{bad} unanswered 5")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_makes_the_bulk_fail_is_found_within_a_tick_and_buried() {
    let (poison, world) = poisoned(Layout::default()).await;
    add_good(&world, GOOD / 2).await;
    let bad = world.annotate("acct:bad", "poison").await;
    add_good(&world, GOOD / 2).await;
    poison.bear_no("_bulk", &["poison"], Harm::Fails);

    tick(&world).await;
    assert_eq!(world.found("annotation").await.len() as i64, GOOD);
    assert_eq!(world.jobs().await, 1, "the others are settled");
    it_is_buried_after_five(&world, &bad).await;

    poison.bear_all();
    let (code, out, err) = world.run(&["dead", "replay", "--reason", "unanswered"]).await;
    assert_eq!(code, 0, "{out}{err}");
    tick(&world).await;
    assert_eq!(world.version("annotation", &bad).await, Some(world.revision(&bad).await));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_makes_the_bulk_hang_is_found_within_a_tick() {
    let (poison, world) = poisoned(Layout::default()).await;
    add_good(&world, GOOD / 2).await;
    let bad = world.annotate("acct:bad", "poison").await;
    add_good(&world, GOOD / 2).await;
    poison.bear_no("_bulk", &["poison"], Harm::Hangs);

    // a real worker, with a tick a minute
    let began = Instant::now();
    let _worker = start(&world).await;
    eventually("the good ones are found", async || world.found("annotation").await.len() as i64 == GOOD).await;
    assert!(began.elapsed() < Duration::from_secs(75), "it took {:?}", began.elapsed());
    eventually("the bad one is charged", async || charged(&world).await == [format!("{bad} 1")]).await;

    // whoever comes now waits for nobody
    let late = world.annotate("acct:late", "fine").await;
    let began = Instant::now();
    tick(&world).await;
    assert_eq!(world.version("annotation", &late).await, Some(world.revision(&late).await));
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_makes_the_look_fail_is_found_within_a_tick() {
    let (poison, world) = poisoned(Layout::default()).await;
    add_good(&world, GOOD).await;
    let bad = world.annotate("acct:bad", "poison").await;
    poison.bear_no("_mget", &[&bad], Harm::Fails);

    tick(&world).await;
    assert_eq!(world.found("annotation").await.len() as i64, GOOD);
    it_is_buried_after_five(&world, &bad).await;
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_makes_the_server_fail_is_charged_and_buried() {
    let (poison, world) = poisoned(Layout::default()).await;
    add_good(&world, GOOD).await;
    let bad = world.annotate("acct:bad", "poison").await;
    poison.bear_no("_bulk", &["poison"], Harm::Item);

    tick(&world).await;
    assert_eq!(world.found("annotation").await.len() as i64, GOOD);
    it_is_buried_after_five(&world, &bad).await;
    let error: String = world.one("select last_error from catchword.dead_job").await;
    assert!(error.contains("illegal_state_exception"), "{error}");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_such_documents_in_a_full_batch_are_found_and_another_collection_does_not_wait() {
    let (poison, world) = poisoned(Layout::default()).await;
    for _ in 0..5 {
        add_good(&world, 499).await;
        world.annotate("acct:bad", "poison").await;
    }
    poison.bear_no("_bulk", &["poison"], Harm::Fails);
    world.sql("insert into bystander (id, text) values (77, 'another collection')").await;
    world.sql("update catchword.job set scheduled_at = now() where collection = 'bystander' and key = '77'").await;

    world.catchword.drain("test", &[]).await.unwrap();
    assert_eq!(world.found("annotation").await.len(), 5 * 499);
    assert_eq!(world.version("bystander", "77").await, Some(world.one("select catchword_revision from bystander where id = 77").await));
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'annotation' and attempts = 1").await, 5);
    assert_eq!(world.jobs().await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_fails_for_everybody_charges_nobody() {
    // its looks are answered, and so is a bulk that writes nothing: only documents fail, all of them
    let (poison, world) = poisoned(Layout::default()).await;
    add_good(&world, GOOD).await;
    poison.bear_no("_bulk", &["acct:"], Harm::Fails);
    for _ in 0..6 {
        world.make_due().await;
        let outcome = tick(&world).await;
        assert_eq!((outcome.settled, outcome.pushed_back, outcome.buried), (0, 0, 0), "{outcome}");
    }
    // and here nothing is answered at all
    poison.bear_no("", &["_id", "ids"], Harm::Fails);
    for _ in 0..6 {
        world.make_due().await;
        let outcome = tick(&world).await;
        assert_eq!((outcome.settled, outcome.pushed_back, outcome.buried), (0, 0, 0), "{outcome}");
    }
    assert_eq!(charged(&world).await, Vec::<String>::new());

    poison.bear_all();
    eventually("everything is indexed", async || {
        world.make_due().await;
        tick(&world).await;
        world.jobs().await == 0
    })
    .await;
    assert_eq!(world.found("annotation").await.len() as i64, GOOD);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_makes_suspects_and_charges_none_of_them() {
    let (poison, world) = poisoned(Layout::default()).await;
    add_good(&world, GOOD).await;
    poison.bear_no("_bulk", &["\"acct:7\""], Harm::Fails);
    tick(&world).await;
    assert_eq!(world.found("annotation").await.len() as i64, GOOD - 1);
    poison.bear_all();
    world.make_due().await;
    tick(&world).await;
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.found("annotation").await.len() as i64, GOOD);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_somebody_else_deleted_is_healed_at_once() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "deleted by somebody else").await;
    let before = world.version("annotation", &key).await.unwrap();
    // by a script without a version: Elasticsearch remembers a number above ours for a minute
    let (status, _) = world.http("DELETE", &format!("/{}/_doc/{key}", world.index("annotation")), None).await;
    assert_eq!(status, 200);
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;
    tick(&world).await;
    assert!(world.version("annotation", &key).await.unwrap() > before);
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("deleted by somebody else"));

    // the same for a tombstone
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    tick(&world).await;
    world.http("DELETE", &format!("/{}/_doc/{key}", world.index("annotation")), None).await;
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;
    tick(&world).await;
    assert!(world.version("annotation", &key).await.is_some_and(|version| version % 2 == 1));
    assert_eq!(world.jobs().await, 0);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_too_high_to_be_true_is_given_up_and_the_others_are_repaired() {
    let world = World::new().await;
    let absurd = world.in_step("acct:a", "absurd").await;
    let ahead = world.in_step("acct:b", "ahead").await;
    let revision: i64 = world.revision(&absurd).await;
    assert_eq!(world.put("annotation", &absurd, (1 << 61) - 2, json!({ "userid": "acct:x" })).await, 200);
    assert_eq!(world.put("annotation", &ahead, revision + 4_000, json!({ "userid": "acct:x" })).await, 200);
    world.sql(&format!("select catchword.schedule('annotation', array['{absurd}', '{ahead}'])")).await;

    let drained = tokio::time::timeout(Duration::from_secs(60), tick(&world)).await;
    drained.expect("it ends");
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.all::<String>("select key || ' ' || reason from catchword.dead_job").await, [format!("{absurd} ahead")]);
    assert_eq!(world.version("annotation", &ahead).await, Some(world.revision(&ahead).await));
    assert_eq!(world.revision(&absurd).await, revision, "nothing was drawn for it");
    let last: i64 = world.one("select last_value from catchword.revision").await;
    assert!(last < 1 << 53, "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_ends_just_below_the_highest_version_too() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "absurd").await;
    assert_eq!(world.put("annotation", &key, (1 << 61) - 100_000, json!({ "userid": "acct:x" })).await, 200);
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;
    let (code, out, err) = tokio::time::timeout(Duration::from_secs(60), world.run(&["sync", "--drain"])).await.expect("it ends");
    assert!(code < 2, "{out}{err}");
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_write_of_a_document_that_hangs_does_not_hold_up_the_others_again() {
    let (poison, world) = poisoned(Layout::default()).await;
    let bad = world.annotate("acct:bad", "poison").await;
    poison.bear_no("_bulk", &["poison"], Harm::Hangs);
    tick(&world).await;
    assert_eq!(charged(&world).await, [format!("{bad} 1")]);

    add_good(&world, GOOD).await;
    world.sql(&format!("update annotation set text = 'poison again' where id = '{bad}'")).await;
    let began = Instant::now();
    tick(&world).await;
    assert_eq!(world.found("annotation").await.len() as i64, GOOD);
    assert!(began.elapsed() < Duration::from_secs(14), "the others were sent without it: {:?}", began.elapsed());

    poison.bear_all();
    world.make_due().await;
    tick(&world).await;
    assert_eq!((world.jobs().await, world.source("annotation", &bad).await.unwrap()["text"].clone()), (0, json!("poison again")));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_find_it_together() {
    let (poison, world) = poisoned(Layout { batch: 200, ..Layout::default() }).await;
    for _ in 0..4 {
        add_good(&world, GOOD).await;
        world.annotate("acct:bad", "poison").await;
    }
    poison.bear_no("_bulk", &["poison"], Harm::Fails);
    let other = world.another().await;
    let (one, two) = tokio::join!(tick(&world), async { other.drain("test", &["annotation"]).await.unwrap() });
    assert_eq!((one.buried, two.buried), (0, 0));
    tick(&world).await;
    assert_eq!(world.found("annotation").await.len() as i64, 4 * GOOD);
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'annotation' and attempts > 0").await, 4);
    assert_eq!(world.jobs().await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_buried_by_hand_and_the_journal_says_by_whom() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "known to do harm").await;
    let other = world.annotate("acct:b", "fine").await;
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;
    let words = ["dead", "bury", "annotation", &key.to_uppercase(), "--why", "it kills the node"];
    let with = |more: &[&'static str]| {
        words.iter().map(|word| word.to_string()).chain(more.iter().map(|word| word.to_string())).collect::<Vec<_>>()
    };
    let run = async |words: Vec<String>| world.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).await;

    let (code, _, complained) = run(with(&[])).await;
    assert!(code == 2 && complained.contains("--yes"), "it asks first: {complained}");
    let (code, out, _) = run(with(&["--dry-run", "--json"])).await;
    assert_eq!((code, serde_json::from_str::<serde_json::Value>(&out).unwrap()), (0, json!({ "count": 2, "dry_run": true })));
    assert_eq!(world.jobs().await, 3, "nothing was changed");
    let (code, out, err) = run(with(&["--yes"])).await;
    assert!(code == 0 && out.starts_with("buried: 2 of annotation"), "{out}{err}");
    assert_eq!(run(with(&["--yes"])).await.0, 1, "there is none left");

    let letters = "select key || ' ' || reason || ' ' || last_error from catchword.dead_job";
    assert_eq!(world.all::<String>(letters).await, [format!("{key} by_hand it kills the node")]);
    assert_eq!(world.one::<i64>("select count from catchword.journal where what = 'bury' and detail like '%kills the node'").await, 2);
    tick(&world).await;
    assert_eq!(world.found("annotation").await, [other]);
    assert_eq!(world.run(&["dead", "replay", "--reason", "by_hand"]).await.0, 0);
    tick(&world).await;
    assert_eq!((world.found("annotation").await.len(), world.one::<i64>("select count(*) from catchword.dead_job").await), (2, 0));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_buried_again_has_one_dead_letter() {
    let world = World::new().await;
    for _ in 0..3 {
        world.sql("insert into catchword.job (collection, key, priority, tag) select 'annotation', 'no uuid', 1, 'test' from generate_series(1, 2)").await;
        tick(&world).await;
        assert_eq!(world.jobs().await, 0);
        assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_only_the_new_index_cannot_bear_is_found_too() {
    let (poison, world) = poisoned(Layout::default()).await;
    world.second_index().await;
    add_good(&world, GOOD).await;
    let bad = world.annotate("acct:bad", "poison").await;
    poison.bear_no("annotation-000002-write/_bulk", &["poison"], Harm::Fails);

    tick(&world).await;
    assert_eq!(world.found("annotation").await.len() as i64, GOOD + 1, "readers find it, and all others");
    assert_eq!(charged(&world).await, [format!("{bad} 1")]);
    assert_eq!(world.jobs().await, 1, "the others agree in both");
    poison.bear_all();
    world.make_due().await;
    tick(&world).await;
    assert_eq!(world.jobs().await, 0);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_makes_the_next_batches_smaller() {
    let world = World::with(Layout { gated: true, batch: 200, ..Layout::default() }).await;
    let gate = world.gate.as_ref().unwrap();
    add_good(&world, 800).await;
    gate.hold("_bulk");
    let outcome = world.pass().await;
    assert_eq!(
        (outcome.batches, outcome.settled, outcome.pushed_back, outcome.suspected),
        (2, 0, 0, 0),
        "two in flight, both in vain: {outcome}"
    );
    gate.pass();
    gate.late_requests_are_answered().await;
    world.make_due().await;
    let outcome = world.pass().await;
    assert_eq!(outcome.pushed_back, 0, "{outcome}");
    let each = outcome.claimed / outcome.batches;
    assert!(each < 150, "they are smaller than 200: {} batches for {} jobs", outcome.batches, outcome.claimed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_index_that_fails_for_everybody_holds_up_no_reader_and_charges_nobody() {
    let (poison, world) = poisoned(Layout::default()).await;
    world.second_index().await;
    add_good(&world, GOOD).await;
    poison.bear_no("annotation-000002-write/_bulk", &["acct:"], Harm::Fails);
    for _ in 0..4 {
        world.make_due().await;
        let outcome = tick(&world).await;
        assert!(outcome.breaker.is_none(), "{outcome}");
    }
    assert_eq!(world.found("annotation").await.len() as i64, GOOD);
    assert_eq!(charged(&world).await, Vec::<String>::new());
    assert_eq!(world.jobs().await, GOOD, "no job is settled by one index alone");
}
