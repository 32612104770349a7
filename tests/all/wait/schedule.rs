//! `catchword.schedule` takes what makes sense, and says what to write instead of the rest.

use catchword::job::{Cursor, claim};

use super::refusal;
use crate::common::World;

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_scheduled_is_refused_and_leaves_nothing() {
    let world = World::new().await;
    let key = "'00000000-0000-0000-0000-000000000001'";
    for (asked, says, hint) in [
        (format!("'nobody', array[{key}]"), "there is no collection 'nobody'", "select name from catchword.collection"),
        (format!("'annotation', array[{key}, null]"), "a key is null", "leave it out"),
        ("'annotation', null".into(), "the list of keys is null", "coalesce(array_agg(…), '{}')"),
        (format!("'annotation', array[array[{key}]]"), "a list of lists", "give one list"),
        (
            format!("'annotation', array[{key}, 'x']"),
            "not a key of annotation, whose keys are of type uuid",
            "write 01234567-89ab-cdef-0123-456789abcdef",
        ),
        (format!("'annotation', array[{key}], 'x', 0"), "there is no priority 0", "write 1 (live), 100 (part) or 1000 (whole)"),
        (format!("'annotation', array[{key}], 'x', 2000"), "there is no priority 2000", "write 1 (live)"),
        (format!("'annotation', array[{key}], 'x', null"), "there is no priority null", "write 1 (live)"),
        (format!("'annotation', array[{key}], 'x', 1, '-1 second'"), "a delay of -00:00:01", "write 0 for at once"),
        (format!("'annotation', array[{key}], 'x', 1, '25 hours'"), "longer than a day", "schedule it when it is due"),
        (format!("'annotation', array[{key}], 'x', 1, null"), "a delay of null", "write 0 for at once"),
        (
            "'annotation', array(select gen_random_uuid()::text from generate_series(1, 100001))".into(),
            "100001 keys are too many at once",
            "at most 100000 in a call",
        ),
    ] {
        let (message, with_hint) = refusal(&world, &format!("select catchword.schedule({asked})")).await;
        assert!(message.contains(says) && with_hint.contains(hint), "{asked}: {message}; {with_hint}");
        assert_eq!(world.jobs().await, 0, "{asked}");
    }
    for priority in [1, 100, 1000] {
        world.sql(&format!("select catchword.schedule('annotation', array[{key}], null, {priority}, '1 hour')")).await;
    }
    let scheduled: Vec<String> =
        world.all("select priority || tag from catchword.job where collection = 'annotation' order by priority").await;
    assert_eq!(scheduled, ["1manual", "100manual", "1000manual"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_thousand_keys_stand_behind_live_writes_and_between_other_bulks() {
    let world = World::new().await;
    let schedule = async |keys: i64, tag: &str| {
        let keys = format!("array(select gen_random_uuid()::text from generate_series(1, {keys}))");
        world.sql(&format!("select catchword.schedule('annotation', {keys}, '{tag}')")).await;
    };
    schedule(5_000, "first").await;
    schedule(1_001, "second").await;
    schedule(1_000, "live").await;
    let mut transaction = world.pool.begin().await.unwrap();
    let claimed: Vec<String> =
        claim(&mut transaction, "annotation", Cursor::TOP, 1_200).await.unwrap().into_iter().map(|job| job.tag).collect();
    let of = |tag: &str, from: usize| claimed[from..].iter().filter(|found| *found == tag).count();
    assert!(claimed[..1_000].iter().all(|tag| tag == "live"), "live writes go first");
    let (first, second) = (of("first", 1_000), of("second", 1_000));
    assert!(first + second == 200 && first.abs_diff(second) <= 2, "two bulks take turns: {first} and {second}");
}

/// A thousand users are reindexed at once, one of them with many rows: nobody waits for another's.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_reindexes_at_once_take_turns() {
    let world = World::new().await;
    world
        .sql(
            "insert into annotation (userid, target_uri, target_uri_normalized)
             select 'acct:' || case when n <= 5000 then 0 else n % 1000 end, 'u', 'u' from generate_series(1, 8000) n;
             delete from catchword.job where collection = 'annotation'",
        )
        .await;
    world
        .sql("select catchword.reindex('annotation', 'user', 'acct:' || n, p_tag => 'reindex.' || n) from generate_series(0, 999) n")
        .await;
    assert_eq!(world.jobs().await, 8_000);
    let mut transaction = world.pool.begin().await.unwrap();
    let claimed = claim(&mut transaction, "annotation", Cursor::TOP, 2_500).await.unwrap();
    let mut counts = std::collections::HashMap::<&str, usize>::new();
    for job in &claimed {
        *counts.entry(&job.tag).or_default() += 1;
    }
    assert_eq!(counts.len(), 1_000, "each has jobs in the first batch");
    let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
    assert!((2..=3).contains(least) && (2..=3).contains(most), "{least} to {most} of each");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_for_tomorrow_waits_and_is_not_taken_for_one_of_a_clock_that_was_ahead() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'], p_delay => '1 day')")).await;
    let waits = "select scheduled_at > now() + interval '23 hours' from catchword.job where collection = 'annotation'";
    assert_eq!(world.one::<i64>("select catchword.bring_back(array['annotation'])").await, 0);
    assert!(world.one::<bool>(waits).await);
    assert!(!world.run(&["doctor"]).await.1.contains("dated in the future,"));
    // one that was put off by a clock a day ahead looks much the same, and is brought back
    world.sql("update catchword.job set expires_at = enqueued_at + interval '30 days' where collection = 'annotation'").await;
    assert_eq!(world.one::<i64>("select catchword.bring_back(array['annotation'])").await, 1);
    assert!(!world.one::<bool>(waits).await);
}
