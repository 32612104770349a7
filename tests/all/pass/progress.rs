//! Whether work moves: said by everybody who is asked, within two minutes and whatever the cause; and never where it does move.

use serde_json::{Value, json};
use sqlx::Connection;

use crate::common::{Layout, Running, World, eventually, start};

/// A minute passes for those who judge by it.
const LATER: &str = "update catchword.standstill set since = since - interval '61 seconds'";

impl World {
    /// What `check` finds wrong, in words.
    async fn unwell(&self) -> (i32, String) {
        let (code, words, _) = self.run(&["check"]).await;
        (code, words)
    }

    /// A tick of a worker that serves `annotation`, without a pass: what it says of those that stand still.
    async fn ticked(&self, moved: &[&str], stood: Value) -> Option<Value> {
        let tick = "select standing_still from catchword.tick('00000000-0000-4000-8000-000000000001', 'h', '1', '{annotation}', '{}', 'closed', true, null, null, $1, $2)";
        sqlx::query_scalar(tick).bind(moved).bind(stood).fetch_one(&self.pool).await.unwrap()
    }

    /// For how long nothing has moved, as `check` would judge it.
    async fn still(&self) -> Option<f64> {
        self.ticked(&[], json!({})).await.and_then(|still| still["annotation"]["seconds"].as_f64())
    }

    async fn due_job(&self) {
        self.sql("insert into catchword.job (collection, key, priority, tag) values ('annotation', gen_random_uuid()::text, 1, 't')").await;
    }
}

/// Everybody who can be asked says that nothing moves, and why.
async fn everybody_says_so(world: &World, worker: &Running, why: &str) {
    eventually("check says so", async || {
        world.sql(LATER).await;
        let (code, words) = world.unwell().await;
        code == 1 && words.contains(why)
    })
    .await;
    let ready = async || worker.get(world, "/readyz").await;
    eventually("/readyz says so", async || ready().await.0 == 503 && ready().await.1.contains(why)).await;
    let (code, words, _) = world.run(&["status"]).await;
    assert!(code == 1 && words.contains(why), "{words}");
    let logged = |line: &String| line.contains("\"ERROR\"") && line.contains(why);
    eventually("the log says so", async || worker.lines().iter().any(logged)).await;
    assert!(worker.get(world, "/metrics").await.1.contains("catchword_no_progress_seconds{collection=\"annotation\"} "), "no metric");
}

async fn all_is_well_again(world: &World, worker: &Running) {
    eventually("the queue is empty", async || world.jobs().await == 0).await;
    eventually("ready", async || worker.get(world, "/readyz").await.0 == 200).await;
    eventually("no row is left", async || world.one::<i64>("select count(*) from catchword.standstill").await == 0).await;
    let (code, words) = world.unwell().await;
    assert_eq!(code, 0, "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_due_and_does_not_move_is_told_by_everybody_whatever_the_cause() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;

    // somebody holds the jobs
    let mut holder = sqlx::PgConnection::connect(&world.database_url).await.unwrap();
    let mut held = holder.begin().await.unwrap();
    sqlx::raw_sql("lock table catchword.dead_job in share mode").execute(&mut *held).await.unwrap();
    world.annotate("acct:a", "its batch waits for a lock").await;
    eventually("a tick saw it", async || world.one::<i64>("select count(*) from catchword.standstill").await == 1).await;
    everybody_says_so(&world, &worker, "lock timeout").await;
    held.rollback().await.unwrap();
    all_is_well_again(&world, &worker).await;
    eventually("that is logged too", async || worker.lines().iter().any(|line| line.contains("jobs move again"))).await;

    // claims fail
    world.annotate("acct:a", "never claimed").await;
    world.sql("alter table catchword.job rename column traceparent to hidden").await;
    eventually("the tick failed", async || world.one::<i64>("select count(*) from catchword.worker where trouble is not null").await == 1)
        .await;
    world.sql("update catchword.worker set passed_at = now() - interval '121 seconds'").await;
    everybody_says_so(&world, &worker, "traceparent").await;
    world.sql("alter table catchword.job rename column hidden to traceparent").await;
    all_is_well_again(&world, &worker).await;
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_somebody_else_has_locked_are_told_and_a_drain_that_did_nothing_fails() {
    let world = World::new().await;
    world.annotate("acct:a", "locked").await;
    let mut holding = world.pool.begin().await.unwrap();
    sqlx::query("select from catchword.job for update").execute(&mut *holding).await.unwrap();
    for words in [&["sync", "--drain"][..], &["sync"]] {
        let (code, out, err) = world.run(words).await;
        assert_eq!(code, 1, "{words:?}: {out} {err}");
        assert!(out.contains("jobs of annotation are due and none moved: another session has locked them"), "{out}");
    }
    let (_, out, _) = world.run(&["sync", "--json"]).await;
    let outcome: Value = serde_json::from_str(&out).unwrap();
    assert!(outcome["stood"]["annotation"].as_str().unwrap().contains("locked"), "{outcome}");
    holding.rollback().await.unwrap();

    world.sql("insert into catchword.pause (collection, by, reason) values ('annotation', 'mina', 'moving')").await;
    let (code, out, _) = world.run(&["sync", "--drain"]).await;
    assert!(code == 1 && out.contains("by mina: moving; resume it with: catchword resume annotation"), "{out}");
    world.sql("delete from catchword.pause").await;
    let (code, out, err) = world.run(&["sync", "--drain"]).await;
    assert_eq!((code, world.jobs().await), (0, 0), "{out} {err}");
    let (code, out, _) = world.run(&["sync", "--drain"]).await;
    assert_eq!(code, 0, "nothing was due: {out}");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_got_no_answer_fails_and_says_so() {
    let world = World::gated().await;
    world.annotate("acct:a", "nobody answers for it").await;
    let gate = world.gate.as_ref().unwrap();
    gate.hold("_mget");
    let (code, out, err) = world.run(&["sync", "annotation", "--drain"]).await;
    assert_eq!(code, 1, "{out} {err}");
    assert!(out.contains(" postponed") && out.contains("jobs of annotation are due and none moved: "), "{out}");
    gate.pass();
    world.make_due().await;
    let (code, out, err) = world.run(&["sync", "annotation", "--drain"]).await;
    assert_eq!((code, world.jobs().await), (0, 0), "{out} {err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_of_a_standstill_is_moved_by_work_and_by_no_postponement() {
    let world = World::new().await;
    assert_eq!(world.still().await, None, "nothing is due");
    world.due_job().await;
    assert!(world.still().await.unwrap() < 1.0, "seen for the first time");
    world.sql(LATER).await;
    assert!(world.still().await.unwrap() > 60.0);

    // postponed again and again: not due at this tick, and not moved either
    world.sql("update catchword.job set scheduled_at = now() + interval '29 seconds' where collection = 'annotation'").await;
    assert!(world.ticked(&[], json!({"annotation": "no answer within 30 s"})).await.is_some());
    let still = world.ticked(&[], json!({})).await.unwrap();
    assert!(still["annotation"]["seconds"].as_f64().unwrap() > 60.0, "{still}");
    assert_eq!(still["annotation"]["why"], json!("no answer within 30 s"));

    // something moved: the clock begins with the next tick that sees due work
    world.sql("update catchword.job set scheduled_at = now() where collection = 'annotation'").await;
    let still = world.ticked(&["annotation"], json!({})).await.unwrap();
    assert!(still["annotation"]["seconds"].as_f64().unwrap() < 1.0, "{still}");
    world.sql(LATER).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.one::<i64>("select count(*) from catchword.standstill").await, 0, "a drain moved it");

    // what was refused and waits for its next try has not moved; others that move begin it again
    world.due_job().await;
    assert!(world.still().await.is_some());
    world.sql(LATER).await;
    world.sql("update catchword.job set attempts = 1, scheduled_at = now() + interval '10 minutes' where collection = 'annotation'").await;
    assert!(world.still().await.unwrap() > 60.0);
    assert_eq!(world.ticked(&["annotation"], json!({})).await, None);
    assert_eq!(world.still().await, None, "nothing is due, and a refusal alone begins nothing");
}

/// Fewer than a batch must have to blame the view or the mapping: each is charged, and nothing moves all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_fails_for_every_row_is_told_however_few_there_are() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    world.sql("create or replace view annotation_document (key, revision, body) as select id, catchword_revision, json_build_object('text', (1 / length(text))::text) from annotation where not deleted").await;
    world.annotate("acct:0", "").await;
    world.make_due().await;
    let (code, out, _) = world.run(&["sync", "--drain"]).await;
    assert!(code == 1 && out.contains("none moved: division by zero"), "{out}");
    let (code, out, _) = world.run(&["sync", "--drain"]).await;
    assert_eq!(code, 0, "nothing is due: {out}");
    assert_eq!(world.all::<String>("select collection || ': ' || why from catchword.standstill").await, ["annotation: division by zero"]);
    let worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    for n in 1..=3 {
        world.annotate(&format!("acct:{n}"), "").await;
    }
    eventually("all are refused", async || world.one::<i64>("select count(*) from catchword.job where attempts = 1").await == 4).await;
    everybody_says_so(&world, &worker, "division by zero").await;
    // one that moves is enough: then the others are single documents that are refused
    world.annotate("acct:fine", "built").await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    world.sql("update annotation set text = 'built'").await;
    world.make_due().await;
    all_is_well_again(&world, &worker).await;
}

/// What another worker did, this one need not do again to be well.
#[tokio::test(flavor = "multi_thread")]
async fn a_touch_that_another_one_carries_out_is_no_trouble_any_more() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    world.sql("insert into document (title, web_uri) values ('old', 'http://a/')").await;
    let worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    let mut holder = world.pool.begin().await.unwrap();
    sqlx::raw_sql("lock table annotation in access exclusive mode").execute(&mut *holder).await.unwrap();
    world.sql("update document set title = 'new'").await;
    eventually("it is told", async || worker.lines().iter().any(|line| line.contains("changes of related tables wait"))).await;
    // carried out by somebody else, and nothing is due any more
    world.sql("delete from catchword.job where collection = 'annotation'").await;
    holder.rollback().await.unwrap();
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
}

/// It is refused alone, as a document would be: its collection is served, and so it is told.
#[tokio::test(flavor = "multi_thread")]
async fn one_touch_that_is_refused_blocks_nothing_and_can_be_buried() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    world.sql("select catchword.touch_later('annotation', 'no_such_column', '7')").await;
    eventually("it is refused and told", async || worker.lines().iter().any(|line| line.contains("changes of related tables wait"))).await;
    let key = world.annotate("acct:a", "x").await;
    eventually("others are worked on", async || world.found("annotation").await.contains(&key)).await;
    let now: String = world.one("select clock_timestamp()::text").await;
    eventually("a heartbeat later", async || world.one::<bool>(&format!("select bool_or(seen_at > '{now}') from catchword.worker")).await)
        .await;
    assert_eq!(worker.get(&world, "/readyz").await.0, 200);
    let (_, said, _) = world.run(&["check"]).await;
    assert!(!said.contains("CatchwordCollectionBlocked"), "{said}");
    let (_, said, _) = world.run(&["status"]).await;
    assert!(!said.contains("blocked"), "{said}");

    let bury = ["dead", "bury", "annotation", "no_such_column=7", "--why", "a typing error", "--yes"];
    let (code, said, errors) = world.run(&bury).await;
    assert!(code == 0 && said.contains("buried: 1 of annotation no_such_column=7"), "{said}{errors}");
    assert_eq!(world.all::<String>("select name || ' ' || reason from catchword.dead_job").await, ["touch by_hand"]);
    assert_eq!(world.run(&bury).await.0, 1, "it has no job any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_told_of_a_standstill_where_there_is_none() {
    let world = World::new().await;
    // waits for its delay, also where there are many
    world.sql("insert into catchword.job (collection, key, priority, tag, scheduled_at) select 'annotation', i::text, 100, 't', now() + interval '50 minutes' from generate_series(1, 2000) i").await;
    assert_eq!(world.still().await, None);
    world.sql("delete from catchword.job where collection = 'annotation'").await;
    // paused, before and after a tick saw it
    world.due_job().await;
    assert!(world.still().await.is_some());
    world.sql("insert into catchword.pause (collection, by, reason) values ('annotation', 'mina', 'moving')").await;
    assert_eq!(world.still().await, None);
    assert_eq!(world.still().await, None);
    world.sql("delete from catchword.pause").await;
    // a worker that has just started is not blamed for a night without one
    assert!(world.still().await.is_some());
    world.sql("update catchword.standstill set since = since - interval '10 hours'; update catchword.worker set seen_at = now() - interval '10 hours'").await;
    assert!(world.still().await.unwrap() < 1.0);
    // others moved it
    world.sql("delete from catchword.job where collection = 'annotation'").await;
    assert_eq!(world.still().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn traffic_that_never_ends_and_a_bulk_behind_it_are_no_standstill() {
    let world = std::sync::Arc::new(World::with(Layout { tick: "* * * * * *", batch: 100, ..Layout::default() }).await);
    world.sql("insert into catchword.job (collection, key, priority, tag) select 'annotation', gen_random_uuid()::text, 1000, 'bulk' from generate_series(1, 4000)").await;
    let worker = start(&world).await;
    let traffic = crate::common::Traffic::start(&world);
    let mut oldest = 0.0_f64;
    eventually("the bulk is through", async || {
        let age: f64 = world.one("select coalesce(max(extract(epoch from now() - since)), 0)::float8 from catchword.standstill").await;
        oldest = oldest.max(age);
        world.one::<i64>("select count(*) from catchword.job where tag = 'bulk'").await == 0
    })
    .await;
    println!("the oldest standstill: {oldest:.1} s");
    assert!(oldest < 55.0, "{oldest}");
    assert!(!worker.lines().iter().any(|line| line.contains("none has moved")), "{:?}", worker.lines());
    traffic.end().await;
    drop(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_age_of_a_change_is_counted_from_the_write_and_no_postponement_makes_it_younger() {
    let world = World::new().await;
    world.annotate("acct:a", "x").await;
    let age = async || {
        let (_, out, _) = world.run(&["status", "--json"]).await;
        let status: Value = serde_json::from_str(&out).unwrap();
        status["collections"][0]["oldest_change_seconds"].as_f64()
    };
    let of = |scheduled: &str, enqueued: &str, attempts: i32| {
        format!(
            "update catchword.job set scheduled_at = now() + interval '{scheduled}', enqueued_at = now() - interval '{enqueued}', attempts = {attempts} where collection = 'annotation'"
        )
    };
    let old = |age: Option<f64>| age.is_some_and(|age| (480.0..500.0).contains(&age));
    // due for 53 s and 8 minutes old; postponed; refused and pushed back
    for (scheduled, attempts) in [("-53 seconds", 0), ("20 seconds", 0), ("8 minutes", 1)] {
        world.sql(&of(scheduled, "480 seconds", attempts)).await;
        assert!(old(age().await), "{scheduled}: {:?}", age().await);
        let (_, words, _) = world.run(&["status"]).await;
        assert!(words.contains("the oldest change is 8m"), "{words}");
    }
    // waits for its delay
    world.sql("update catchword.collection set delay_seconds = 600 where name = 'annotation'").await;
    world.sql(&of("20 seconds", "480 seconds", 0)).await;
    assert_eq!(age().await, None);
    world.sql("update catchword.collection set delay_seconds = 0 where name = 'annotation'").await;
    world.sql(&of("50 minutes", "600 seconds", 0)).await;
    assert_eq!(age().await, None, "a delay of its own");
    // a bulk has another clock
    world.sql(&of("-1 second", "480 seconds", 0)).await;
    world.sql("update catchword.job set priority = 100 where collection = 'annotation'").await;
    assert_eq!(age().await, None);
    let (_, words, _) = world.run(&["status"]).await;
    assert!(words.contains("the first one due 1s ago") || words.contains("the first one due 2s ago"), "{words}");
    // the clock was ahead: nobody is of negative age
    world.sql("update catchword.job set priority = 1, enqueued_at = now() + interval '1 minute', scheduled_at = now() where collection = 'annotation'").await;
    assert_eq!(age().await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn touches_that_fail_are_shown_with_their_error() {
    let world = World::new().await;
    world.sql("insert into catchword.job (name, collection, key, priority, tag, attempts, last_error, enqueued_at, scheduled_at) values ('touch', 'annotation', 'document_id=7', 1, 't', 2, 'relation \"person\" does not exist', now() - interval '31 minutes', now() + interval '2 minutes')").await;
    let (_, words, _) = world.run(&["status"]).await;
    assert!(words.contains("  touches   1 failing, the oldest is 31m") && words.contains("relation \"person\" does not exist"), "{words}");
    let (code, words, _) = world.run(&["check"]).await;
    assert_eq!(code, 1);
    let line =
        words.lines().find(|line| line.starts_with("unwell   CatchwordOldestChange annotation")).unwrap_or_else(|| panic!("{words}"));
    assert!(line.contains("1 change of related rows could not be passed on: relation \"person\" does not exist"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_made_while_the_clock_was_ahead_is_not_due_a_day_later() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let key = world.annotate("acct:a", "from tomorrow").await;
    world.sql("update catchword.job set enqueued_at = now() + interval '1 day', scheduled_at = now() + interval '1 day' where collection = 'annotation'").await;
    // a push-back under the wrong clock, and one that waits rightly
    let pushed = world.annotate("acct:a", "pushed back").await;
    world.sql(&format!("update catchword.job set attempts = 1, scheduled_at = now() + interval '1 day' where key = '{pushed}'")).await;
    let waiting = world.annotate("acct:a", "waits").await;
    world
        .sql(&format!("update catchword.job set attempts = 4, scheduled_at = now() + interval '74 minutes' where key = '{waiting}'"))
        .await;
    let (_, words, _) = world.run(&["doctor"]).await;
    assert!(words.contains("dated in the future"), "{words}");

    let worker = start(&world).await;
    eventually("both are settled", async || world.jobs().await == 1).await;
    assert!(world.version("annotation", &key).await.is_some() && world.version("annotation", &pushed).await.is_some());
    assert!(world.version("annotation", &waiting).await.is_none());
    assert!(worker.lines().iter().any(|line| line.contains("2 jobs were dated in the future")), "{:?}", worker.lines());
    assert_eq!(world.one::<i64>("select count from catchword.journal where what = 'bring back'").await, 2);
    let (_, words, _) = world.run(&["doctor"]).await;
    assert!(!words.contains("dated in the future,"), "{words}");
    let refused = sqlx::query("select catchword.schedule('annotation', '{}', 'x', 1, interval '2 days')").execute(&world.pool).await;
    assert!(refused.unwrap_err().to_string().contains("a day"), "a delay that would be taken for a wrong clock");
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_takes_jobs_that_a_clock_dated_in_the_future_as_a_worker_does() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "from tomorrow").await;
    world.sql("update catchword.job set enqueued_at = now() + interval '1 day', scheduled_at = now() + interval '1 day' where collection = 'annotation'").await;
    let (code, said, errors) = world.run(&["sync", "--drain"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    assert!(world.version("annotation", &key).await.is_some());
    assert_eq!(world.jobs().await, 0);
}
