//! The history: what each minute was like, written by heartbeats.

use std::time::Duration;

use catchword::history::{self, Minute};
use serde_json::Value;

use crate::common::{Layout, World, eventually, launch};

/// A worker that has been there for an hour.
const WORKER: &str = "insert into catchword.worker (id, host, version, collections, started_at, seen_at)
                      values (gen_random_uuid(), 'test', '1', '{annotation}', now() - interval '1 hour', now())";

impl World {
    /// With a worker that was just seen, and nothing counted yet. All that is told from here on happens in one minute of Postgres' clock.
    async fn attended(&self) {
        eventually("enough of the minute is left", async || self.one("select extract(second from clock_timestamp()) < 40").await).await;
        self.sql("delete from catchword.freshness").await;
        self.sql(WORKER).await;
        self.beat().await;
    }

    /// What each heartbeat does for the history.
    async fn beat(&self) {
        self.sql("select catchword.note_history()").await;
    }

    /// As if all of it had been a minute earlier.
    async fn a_minute_later(&self) {
        for table in ["history", "history_mark", "freshness"] {
            // in two steps: a minute must not meet the one before it
            self.sql(&format!("update catchword.{table} set minute = minute + interval '1000 years'")).await;
            self.sql(&format!("update catchword.{table} set minute = minute - interval '1000 years' - interval '1 minute'")).await;
        }
        self.sql("update catchword.worker set seen_at = seen_at - interval '1 minute', started_at = started_at - interval '1 minute'")
            .await;
    }

    async fn history(&self) -> Vec<Minute> {
        history::read(&mut self.pool.acquire().await.unwrap(), "annotation", Duration::from_secs(3_600)).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_tells_what_came_what_was_done_and_what_is_left() {
    let world = World::new().await;
    world.attended().await;
    for _ in 0..3 {
        world.annotate("acct:a", "there").await;
    }
    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!((outcome.written, outcome.settled), (3, 3), "{outcome}");
    world.sql("insert into catchword.job (collection, key, priority, tag) values ('annotation', 'no uuid', 1, 'test')").await;
    assert_eq!(world.pass().await.buried, 1);
    for _ in 0..2 {
        world.annotate("acct:a", "open").await;
    }
    world.sql("select catchword.schedule('annotation', array[gen_random_uuid()::text], 'test', 1, interval '1 hour')").await;
    world.a_minute_later().await;
    world.beat().await;
    let told = world.history().await;
    let last = told.last().unwrap();
    assert_eq!((last.scheduled, last.settled, last.written, last.pushed_back, last.buried), (7, 3, 3, 0, 1), "{last:?}");
    assert_eq!((last.due, last.waiting), (2, 1), "{last:?}");
    assert!(last.oldest_seconds.is_some_and(|seconds| (0.0..60.0).contains(&seconds)), "{last:?}");
    let (half, most) = (last.fresh_p50.unwrap(), last.fresh_p99.unwrap());
    assert!(0.0 < half && half <= most && most < 60.0, "{last:?}");

    // a minute in which nothing happens is a zero, and what is left is told again
    world.a_minute_later().await;
    world.sql("update catchword.worker set seen_at = now() - interval '30 seconds'").await;
    world.beat().await;
    let last = world.history().await.pop().unwrap();
    assert_eq!((last.scheduled, last.settled, last.due, last.waiting), (0, 0, 2, 1), "{last:?}");
    assert_eq!((last.fresh_p50, last.fresh_p99), (None, None));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_counts_of_several_workers_add_up_and_one_of_them_writes_the_minute() {
    let world = World::with(Layout { batch: 5, ..Layout::default() }).await;
    world.attended().await;
    for n in 0..60 {
        world.annotate("acct:a", &n.to_string()).await;
    }
    let others = [world.another().await, world.another().await, world.another().await];
    let drained = futures_util::future::join_all(others.iter().map(|other| other.drain("test", &["annotation"]))).await;
    let settled: u64 = drained.into_iter().map(|outcome| outcome.unwrap().settled).sum();
    assert_eq!(settled, 60);
    world.a_minute_later().await;
    let before = world.history().await.len();
    let beats = (0..8).map(|_| sqlx::query("select catchword.note_history()").execute(&world.pool));
    for beat in futures_util::future::join_all(beats).await {
        beat.unwrap();
    }
    let told = world.history().await;
    assert_eq!(told.len(), before + 1, "{told:?}");
    let last = told.last().unwrap();
    assert_eq!((last.scheduled, last.settled, last.due), (60, 60, 0), "{last:?}");
    let sessions: i64 = world.one("select count(distinct session) from catchword.freshness where collection = 'annotation'").await;
    assert!(sessions > 1, "several counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_without_a_worker_is_a_gap_and_no_zero() {
    let world = World::new().await;
    world.attended().await;
    let began = world.history().await.len();
    for _ in 0..3 {
        world.a_minute_later().await;
    }
    // the one that was there was last seen three minutes ago; another one comes now
    world.beat().await;
    let ago = "select round(extract(epoch from date_trunc('minute', now()) - minute) / 60)::integer from catchword.history where collection = 'annotation' order by minute";
    assert_eq!(world.all::<i32>(ago).await.last(), Some(&3), "the minute in which it was last seen, and none since");
    assert_eq!(world.history().await.len(), began + 1);
    world.sql("update catchword.worker set seen_at = now()").await;
    world.annotate("acct:a", "scheduled while somebody is there").await;
    world.a_minute_later().await;
    world.beat().await;
    assert_eq!(world.all::<i32>(ago).await[began..], [4, 1]);
    assert_eq!(world.history().await.last().unwrap().scheduled, 1);
    // a worker whose first heartbeat this is says nothing of the minute before it came
    world.sql("truncate catchword.history, catchword.history_mark, catchword.worker, catchword.freshness").await;
    world.sql("select catchword.renew_worker(gen_random_uuid(), 'test', '1', '{}', '{}', 'closed', false, null, null, '{}', '{}')").await;
    assert_eq!(world.history().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_ends_in_the_next_minute_is_added_to_its_own() {
    let world = World::new().await;
    world.attended().await;
    world.annotate("acct:a", "open").await;
    world.a_minute_later().await;
    world.beat().await;
    assert_eq!(world.history().await.last().unwrap().settled, 0);
    world.sql("update catchword.worker set seen_at = now()").await;
    // its batch began a minute ago, and is committed now
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.sql("update catchword.freshness set minute = minute - interval '1 minute' where collection = 'annotation'").await;
    world.a_minute_later().await;
    world.beat().await;
    let told = world.history().await;
    let [.., own, next] = &told[..] else { panic!("{told:?}") };
    assert_eq!((own.scheduled, own.settled, own.due), (1, 1, 1), "what was due then stays told: {told:?}");
    assert_eq!((next.scheduled, next.settled, next.due), (0, 0, 0), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_clock_that_was_ahead_wrote_is_written_again_when_its_time_comes() {
    let world = World::new().await;
    world.attended().await;
    world.sql("delete from catchword.history; update catchword.history_mark set minute = minute + interval '1 hour'").await;
    world
        .sql("insert into catchword.history select date_trunc('minute', now()) + make_interval(mins => n), 'annotation', 9, 9, 9, 9, 9, 9, 9, 9, 9, 9 from generate_series(0, 59) n")
        .await;
    world.sql("insert into catchword.freshness (minute, collection, session, changes, slow, settled) values (date_trunc('minute', now()) + interval '5 minutes', 'annotation', 1, 9, 0, 9)").await;
    world.annotate("acct:a", "open").await;
    world.beat().await;
    let last = world.history().await.pop().unwrap();
    assert_eq!((last.settled, last.due), (0, 1), "{last:?}");
    let ahead = "select (select count(*) from catchword.history where minute >= date_trunc('minute', now())) + (select count(*) from catchword.freshness where minute > now())";
    assert_eq!(world.one::<i64>(ahead).await, 0);
    // and it goes on
    world.a_minute_later().await;
    world.sql("update catchword.worker set seen_at = now() - interval '30 seconds'").await;
    world.beat().await;
    assert_eq!(world.history().await.pop().unwrap().due, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_collection_has_no_history_and_begins_a_new_one_when_it_comes_back() {
    let world = World::new().await;
    world.attended().await;
    world.annotate("acct:a", "open").await;
    world.a_minute_later().await;
    world.beat().await;
    assert!(!world.history().await.is_empty());
    assert_eq!(world.run(&["detach", "annotation", "--yes"]).await.0, 0);
    world.a_minute_later().await;
    world.sql("update catchword.worker set seen_at = now() - interval '30 seconds'").await;
    world.beat().await;
    assert_eq!(world.history().await, [], "also while a worker still has it in its configuration");
    assert_eq!(world.one::<i64>("select count(*) from catchword.history where collection = 'bystander'").await, 3);

    world.sql("alter table annotation add column if not exists catchword_revision bigint").await;
    let (code, out, err) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{out}{err}");
    world.a_minute_later().await;
    world.sql("update catchword.worker set seen_at = now() - interval '30 seconds'").await;
    world.beat().await;
    let told = world.history().await;
    assert_eq!((told.len(), told[0].scheduled), (1, 0), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_too_long_to_be_counted_is_told_about_and_what_came_by_the_sequence() {
    let world = World::new().await;
    world.attended().await;
    world
        .sql("insert into catchword.job (collection, key, priority, tag, scheduled_at) select 'annotation', i::text, 1000, 'test', now() + case when i % 10 = 0 then interval '1 hour' else interval '0' end from generate_series(1, 40000) i")
        .await;
    world.a_minute_later().await;
    for known in ["", "analyze catchword.job"] {
        world.sql(known).await;
        world.sql("update catchword.history_mark set minute = date_trunc('minute', now()) - interval '2 minutes'").await;
        world.sql("delete from catchword.history where minute = date_trunc('minute', now()) - interval '1 minute'").await;
        world.beat().await;
        let last = world.history().await.pop().unwrap();
        assert!((30_000..44_000).contains(&last.due) && (2_500..6_000).contains(&last.waiting), "{known}: {last:?}");
        // once: the second time nothing came since
        assert_eq!(last.scheduled, if known.is_empty() { 40_000 } else { 0 }, "{last:?}");
    }
    // and when it is short again, it is counted
    world.sql("delete from catchword.job where tag = 'test' and key::integer > 20").await;
    world.a_minute_later().await;
    world.sql("update catchword.worker set seen_at = now() - interval '30 seconds'").await;
    world.beat().await;
    let last = world.history().await.pop().unwrap();
    assert_eq!((last.due, last.waiting, last.scheduled), (18, 2, 0), "{last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_write_it_with_their_heartbeats() {
    let world = World::with(Layout { tick: "* * * * * *", quick: "25ms", ..Layout::default() }).await;
    let _workers = [launch(&mut world.binary()).await, launch(&mut world.binary()).await];
    eventually("both have shown themselves", async || {
        world.one("select count(*) = 2 and count(distinct minute) = 1 from catchword.worker, (select max(minute) as minute from catchword.history_mark) m").await
    })
    .await;
    let key = world.annotate("acct:a", "by the quick lane").await;
    eventually("it is settled", async || world.jobs().await == 0).await;
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    world.a_minute_later().await;
    eventually("the minute is written", async || world.history().await.iter().any(|minute| minute.settled == 1)).await;
    let told = world.history().await;
    let minute = told.iter().find(|minute| minute.settled == 1).unwrap();
    assert_eq!((minute.written, minute.due, minute.waiting), (1, 0, 0), "{told:?}");
    assert!(minute.fresh_p99.is_some_and(|seconds| seconds < 30.0), "{minute:?}");
    let twice: i64 =
        world.one("select count(*) from (select from catchword.history group by minute, collection having count(*) > 1) t").await;
    assert_eq!(twice, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_kept_for_eight_days_and_takes_a_few_megabytes() {
    let world = World::new().await;
    world
        .sql("insert into catchword.history select date_trunc('minute', now()) - make_interval(mins => n), 'annotation', 10, 10, 10, 0, 0, 100, 100, 1, 0.1, 0.2 from generate_series(1, 9 * 1440) n")
        .await;
    let mut upkeep = world.catchword.upkeep(&[]);
    upkeep.round(&tokio_util::sync::CancellationToken::new()).await.unwrap();
    let (left, oldest): (i64, f64) = (
        world.one("select count(*) from catchword.history").await,
        world.one("select extract(epoch from now() - min(minute))::float8 / 86400 from catchword.history").await,
    );
    assert!((11_515..=11_525).contains(&left) && (7.9..=8.0).contains(&oldest), "{left} rows, {oldest} days");
    world.sql("vacuum full catchword.history").await;
    let bytes: i64 = world.one("select pg_total_relation_size('catchword.history')").await;
    assert!(bytes < 2_000_000, "{bytes} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn percentiles_are_read_from_buckets() {
    let world = World::new().await;
    let of = async |buckets: &str, share: f64| -> Option<f64> {
        let seconds: Option<f64> = world.one(&format!("select catchword.percentile('{buckets}', {share})")).await;
        seconds.map(|seconds| (seconds * 10_000.0).round() / 10_000.0)
    };
    assert_eq!(of("{}", 0.5).await, None);
    assert_eq!(of("{10}", 0.5).await, Some(0.005), "half of the first bucket, which ends at 10 ms");
    assert_eq!(of("{0,0,10}", 1.0).await, Some(0.02), "the third ends at 20 ms");
    assert_eq!(of("{50,0,50}", 0.5).await, Some(0.01));
    assert_eq!(of("{98,0,0,0,2}", 0.99).await, Some(0.0341), "in the middle of the fifth, from 28 to 40 ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_numbers_and_bars_and_every_minute_as_json() {
    let world = World::new().await;
    let (code, out, _) = world.run(&["history"]).await;
    assert!(code == 1 && out.contains("annotation: no history of the last 3h; a worker writes it, once a minute"), "{out}");
    world
        .sql("insert into catchword.history select date_trunc('minute', now()) - make_interval(mins => n), 'annotation', 1, 2, 3, 4, 5, 10 * n, 7, n, 0.04, 1.5 from generate_series(1, 60) n where n <> 30")
        .await;
    let (code, out, err) = world.run(&["history", "annotation", "--span", "1h"]).await;
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.starts_with("annotation, the last 1h: 59 minutes with a worker; a bar is 2 minutes\n"), "{out}");
    let line = |name: &str| out.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    let words = |name: &str| line(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words("due")[..4], ["due", "10", "305", "600"]);
    assert!(line("due").ends_with('▂') && line("due").contains("  █"), "{out}");
    assert_eq!(words("pushed back")[2..5], ["4", "4", "4"]);
    assert_eq!(words("fresh p50")[2..6], ["40", "ms", "40", "ms"]);
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let (code, out, _) = world.run(&["history", "annotation", "--span", "10m", "--json"]).await;
    let json: Value = serde_json::from_str(&out).unwrap();
    let minutes = json[0]["minutes"].as_array().unwrap();
    assert_eq!((code, &json[0]["collection"], minutes.len()), (0, &Value::from("annotation"), 10), "{out}");
    assert_eq!((&minutes[9]["due"], &minutes[9]["fresh_p99"]), (&Value::from(10), &Value::from(1.5)), "the newest comes last: {out}");
    for words in [&["history", "nonsense"][..], &["history", "--span", "9d"], &["history", "--span", "soon"], &["history", "--span", "1s"]]
    {
        let (code, out, err) = world.run(words).await;
        assert!(code == 2 && out.is_empty() && err.len() > 20, "{words:?}: {err}");
    }
}
