//! The queue: what is claimed, in which order, and by whom.

use std::collections::HashSet;

use catchword::database;
use catchword::job::{Cursor, claim};

use crate::common::{Layout, World};

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_of_a_key_are_looked_at_once_and_settled_together() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "x").await;
    for _ in 0..9 {
        world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;
    }
    let first = world.pass().await;
    assert_eq!((first.claimed, first.written, first.verdicts), (10, 1, [("missing", 1)].into()));
    let second = world.pass().await;
    assert_eq!((second.settled, second.verdicts), (10, [("current", 1)].into()));
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_job_waits_and_a_due_one_does_not() {
    let world = World::with(Layout { annotation: "delay = \"60s\"", ..Layout::default() }).await;
    let key = world.annotate("acct:a", "x").await;
    assert_eq!(world.pass().await.claimed, 0);
    let delayed: bool =
        world.one("select scheduled_at = enqueued_at + interval '60 seconds' from catchword.job where collection = 'annotation'").await;
    assert!(delayed);
    world.make_due().await;
    assert_eq!(world.pass().await.written, 1);
    assert!(world.version("annotation", &key).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_job_that_was_never_refused_is_worked_like_any_other() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "x").await;
    world.sql("update catchword.job set expires_at = now() - interval '1 day' where collection = 'annotation'").await;
    let outcome = world.pass().await;
    assert_eq!((outcome.expired, outcome.written, outcome.buried), (1, 1, 0));
    assert_eq!(world.pass().await.settled, 1);
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_job_that_was_refused_before_gets_a_last_look_and_is_buried() {
    let world = World::new().await;
    world.sql("alter table annotation drop constraint annotation_names_length").await;
    // Elasticsearch takes keywords of up to 32,766 bytes
    world.sql("insert into annotation (userid, target_uri, target_uri_normalized) values (repeat('x', 40000), 'u', 'u')").await;
    world.sql("update catchword.job set expires_at = now() - interval '1 day', attempts = 1 where collection = 'annotation'").await;
    let outcome = world.pass().await;
    assert_eq!((outcome.expired, outcome.buried), (1, 1), "{outcome}");
    assert_eq!(world.all::<String>("select reason from catchword.dead_job").await, ["expired"]);
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_has_its_turn_before_live_jobs_end_and_live_jobs_have_most() {
    let world = World::with(Layout { batch: 10, ..Layout::default() }).await;
    world
        .sql(
            "create table settled (n serial, priority integer);
             create function note_settled() returns trigger language plpgsql as $$ begin insert into public.settled (priority) values (old.priority); return null; end $$;
             create trigger note after delete on catchword.job for each row when (old.collection = 'annotation') execute function note_settled();
             insert into catchword.job (collection, key, priority, tag)
             select 'annotation', gen_random_uuid(), priority, 'test' from (values (1, 200), (1000, 45)) as given (priority, jobs), generate_series(1, jobs)",
        )
        .await;
    let outcome = world.pass().await;
    assert_eq!((outcome.claimed, outcome.settled), (245, 245), "each is claimed once: {outcome}");
    // a batch in four, and of those that are under way at the same time any may be the first
    let early: i64 = world.one("select count(*) from settled where priority = 1000 and n <= 120").await;
    assert!((20..=40).contains(&early), "{early} of the first 120 are the bulk's");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_waited_and_bulks_have_their_turns_before_quick_jobs_end() {
    let world = World::with(Layout { batch: 10, ..Layout::default() }).await;
    world
        .sql(
            "create table settled (n serial, priority integer);
             create function note_settled() returns trigger language plpgsql as $$ begin insert into public.settled (priority) values (old.priority); return null; end $$;
             create trigger note after delete on catchword.job for each row when (old.collection = 'annotation') execute function note_settled();
             insert into catchword.job (collection, key, priority, tag)
             select 'annotation', gen_random_uuid(), priority, 'test' from (values (0, 200), (1, 45), (1000, 45)) as given (priority, jobs), generate_series(1, jobs)",
        )
        .await;
    let outcome = world.pass().await;
    assert_eq!((outcome.claimed, outcome.settled), (290, 290), "each is claimed once: {outcome}");
    // a batch in four each, and of those that are under way at the same time any may be the first
    for priority in [1, 1000] {
        let early: i64 = world.one(&format!("select count(*) from settled where priority = {priority} and n <= 120")).await;
        assert!((20..=40).contains(&early), "{early} of the first 120 have priority {priority}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_of_missing_documents_among_live_jobs_keeps_none_of_them_from_being_settled() {
    let world = World::with(Layout { batch: 10, ..Layout::default() }).await;
    let add = |rows| {
        format!(
            "insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || n, 'u', 'u' from generate_series(1, {rows}) n"
        )
    };
    world.sql(&add(100)).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let live = "insert into catchword.job (collection, key, priority, tag) select 'annotation', id, 1, 'test' from annotation";
    world.sql(live).await;
    world.sql(&add(15)).await;
    world.sql("update catchword.job set priority = 1000 where collection = 'annotation' and tag <> 'test'").await;
    let outcome = world.pass().await;
    assert_eq!((outcome.claimed, outcome.settled, outcome.written, outcome.conflicts), (115, 100, 15, 0), "{outcome}");
    let outcome = world.pass().await;
    assert_eq!((outcome.claimed, outcome.settled), (15, 15), "{outcome}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_claimed_by_priority_then_age_up_to_the_limit() {
    let world = World::new().await;
    let keys: Vec<String> = (0..6).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    for (n, (priority, minutes)) in [(100, 50), (1, 10), (1, 20), (1000, 90), (100, 60), (1, 5)].into_iter().enumerate() {
        world
            .sql(&format!(
                "insert into catchword.job (collection, key, priority, tag, enqueued_at) values ('annotation', '{}', {priority}, 'test', now() - interval '{minutes} minutes')",
                keys[n]
            ))
            .await;
    }
    let mut transaction = database::begin(world.catchword.pool()).await.unwrap();
    let first = claim(&mut transaction, "annotation", Cursor::TOP, 4).await.unwrap();
    let order: Vec<usize> = first.iter().map(|job| keys.iter().position(|key| *key == job.key).unwrap()).collect();
    assert_eq!(order, [2, 1, 5, 4]);
    let rest = claim(&mut transaction, "annotation", Cursor::behind(first.last().unwrap()), 4).await.unwrap();
    let order: Vec<usize> = rest.iter().map(|job| keys.iter().position(|key| *key == job.key).unwrap()).collect();
    assert_eq!(order, [0, 3], "the walk goes on behind the cursor");
}

#[tokio::test(flavor = "multi_thread")]
async fn four_workers_on_one_queue_never_share_a_job() {
    let world = World::new().await;
    world.sql("select catchword.schedule('annotation', array(select gen_random_uuid()::text from generate_series(1, 400)))").await;
    let mut transactions = Vec::new();
    let mut seen = HashSet::new();
    for _ in 0..4 {
        let mut transaction = database::begin(world.catchword.pool()).await.unwrap();
        let jobs = claim(&mut transaction, "annotation", Cursor::TOP, 100).await.unwrap();
        assert_eq!(jobs.len(), 100);
        for job in jobs {
            assert!(seen.insert(job.id), "job {} was claimed twice", job.id);
        }
        transactions.push(transaction);
    }
    // a claim is a row lock: a worker that dies frees its jobs at once
    drop(transactions.pop());
    let mut transaction = database::begin(world.catchword.pool()).await.unwrap();
    assert_eq!(claim(&mut transaction, "annotation", Cursor::TOP, 1000).await.unwrap().len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_and_four_workers_drain_one_queue_together() {
    for workers in [2, 4] {
        let world = World::with(Layout { batch: 50, ..Layout::default() }).await;
        world.sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 900) i").await;
        let mut running = Vec::new();
        for _ in 0..workers {
            let worker = world.another().await;
            running.push(tokio::spawn(async move { worker.drain("test", &["annotation"]).await.unwrap() }));
        }
        let mut settled = 0;
        for worker in running {
            settled += worker.await.unwrap().settled;
        }
        settled += world.catchword.drain("test", &["annotation"]).await.unwrap().settled;
        assert_eq!(settled, 900, "each job is settled once, by one of {workers}");
        assert_eq!(world.jobs().await, 0);
        assert_eq!(world.found("annotation").await.len(), 900);
        world.noise_is_untouched().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_collection_is_left_alone_and_its_jobs_stay() {
    let world = World::new().await;
    world.sql("insert into catchword.pause (collection, reason) values ('annotation', 'a test')").await;
    let key = world.annotate("acct:a", "x").await;
    assert_eq!(world.pass().await.claimed, 0);
    assert_eq!(world.jobs().await, 1);
    world.sql("delete from catchword.pause").await;
    world.catchword.drain("test", &[]).await.unwrap();
    assert!(world.version("annotation", &key).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_goes_through_a_long_queue_in_batches() {
    let world = World::with(Layout { batch: 100, ..Layout::default() }).await;
    world.sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 950) i").await;
    let outcome = world.pass().await;
    assert_eq!((outcome.claimed, outcome.written, outcome.batches), (950, 950, 10), "{outcome}");
    let outcome = world.pass().await;
    assert_eq!((outcome.settled, outcome.written), (950, 0));
}

/// A bulk may take long; whoever writes meanwhile does not wait for its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_among_bulks_ends_when_a_live_job_is_due() {
    let world = World::with(Layout { batch: 1, ..Layout::default() }).await;
    world.sql("insert into catchword.job (collection, key, priority, tag) select 'annotation', gen_random_uuid(), 1000, 'test' from generate_series(1, 5000)").await;
    let passing = tokio::spawn({
        let catchword = world.catchword.clone();
        async move { catchword.sync("test", &[]).await.unwrap() }
    });
    crate::common::eventually("the bulk is being worked on", async || {
        world.one::<i64>("select count(*) from catchword.job where priority = 1000").await < 5000
    })
    .await;
    world.sql("update catchword.job set scheduled_at = now() where collection = 'bystander'; insert into catchword.job (collection, key, priority, tag) values ('bystander', '1', 1, 'test')").await;
    let outcome = passing.await.unwrap();
    assert!(outcome.claimed < 5000, "{outcome}");
    assert!(outcome.took < std::time::Duration::from_secs(10), "it did not go on until its own end: {outcome}");
    let outcome = world.catchword.sync("test", &["bystander"]).await.unwrap();
    assert!(outcome.claimed > 0, "{outcome}");
}
