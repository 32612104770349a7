//! The quick lane: what is written by plain SQL is indexed and settled without a tick, and somebody always keeps the lane.

use std::time::Instant;

use sqlx::{Connection, PgConnection};

use crate::common::{Layout, Running, World, eventually, launch, start};
use crate::operate::roles::Roles;

/// A tick that no test lives to see: but for the one at the start, whatever is done is done by the lane.
pub const NEVER: &str = "0 0 0 1 1 *";

pub fn quick() -> Layout {
    Layout { tick: NEVER, quick: "25ms", ..Layout::default() }
}

impl Running {
    pub fn keeps_the_lane(&self) -> bool {
        self.lines().iter().any(|line| line.contains("this worker keeps the quick lane"))
    }
}

/// A worker that keeps the lane, and whose tick at the start is over.
async fn keeper(world: &World) -> Running {
    let worker = start(world).await;
    eventually("ready", async || worker.get(world, "/readyz").await.0 == 200).await;
    eventually("somebody keeps the lane", async || worker.keeps_the_lane()).await;
    worker
}

impl World {
    pub async fn is_in_step(&self, key: &str) {
        eventually("settled without a tick", async || self.jobs().await == 0).await;
        assert_eq!(self.version("annotation", key).await, Some(self.revision(key).await));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_inserts_updates_deletes_and_changes_of_related_rows_are_settled_without_a_tick() {
    let (world, since) = (World::with(quick()).await, Instant::now());
    let worker = keeper(&world).await;
    world.sql("insert into document (title, web_uri) values ('old', 'http://a/')").await;
    let key = world.annotate("acct:a", "from psql").await;
    world.is_in_step(&key).await;
    world.sql(&format!("update annotation set text = 'changed', document_id = 1 where id = '{key}'")).await;
    world.is_in_step(&key).await;
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], "changed");
    world.sql("update document set title = 'new' where id = 1").await;
    world.is_in_step(&key).await;
    assert!(world.source("annotation", &key).await.unwrap().to_string().contains("new"));
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    eventually("settled without a tick", async || world.jobs().await == 0).await;
    assert!(world.found("annotation").await.is_empty());
    // what waits for its direct write is the loop's
    world.sql("begin; set local catchword.delay = '1'; insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u'); commit").await;
    let key = world.annotate("acct:a", "once more").await;
    eventually("indexed", async || world.version("annotation", &key).await.is_some()).await;
    eventually("the other one is due", async || {
        world
            .one("select scheduled_at < now() - interval '1 second' from catchword.job where priority = 1 and collection = 'annotation'")
            .await
    })
    .await;
    for n in 0..20 {
        world.annotate("acct:a", &format!("again {n}")).await;
        eventually("all but the other one are settled", async || world.jobs().await == 1).await;
    }
    assert_eq!(world.one::<i32>("select priority from catchword.job where collection = 'annotation'").await, 1);
    let told = worker.lines().iter().filter(|line| line.contains("quick lane: ")).count() as u64;
    assert!(told <= since.elapsed().as_secs() / 10 + 1, "one line for the passes of ten seconds: {told}");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_lane_has_not_seen_is_written_without_a_look_and_settled_by_one_that_nobody_waits_for() {
    let world = World::with(Layout { gated: true, ..quick() }).await;
    let gate = world.gate.as_ref().unwrap();
    let _worker = keeper(&world).await;
    let first = world.annotate("acct:a", "x").await;
    world.is_in_step(&first).await;
    gate.hold("_mget");
    let key = world.annotate("acct:a", "y").await;
    eventually("written", async || world.version("annotation", &key).await.is_some()).await;
    gate.holds_something().await;
    assert_eq!(world.jobs().await, 1, "a write is never proof");
    let meanwhile = world.annotate("acct:a", "z").await;
    eventually("written beside the look", async || world.version("annotation", &meanwhile).await.is_some()).await;
    assert_eq!(world.jobs().await, 2);
    gate.pass();
    world.is_in_step(&key).await;
    world.is_in_step(&meanwhile).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_write_in_vain_the_lane_looks_first_once_and_no_more() {
    let world = World::with(Layout { gated: true, ..quick() }).await;
    let gate = world.gate.as_ref().unwrap();
    let _worker = keeper(&world).await;
    let gone = world.annotate("acct:a", "gone").await;
    world.is_in_step(&gone).await;
    world.sql(&format!("delete from annotation where id = '{gone}'")).await;
    eventually("settled", async || world.jobs().await == 0).await;
    assert_eq!(world.found("annotation").await, [""; 0], "a tombstone is written after a look");
    gate.hold("_mget");
    let key = world.annotate("acct:a", "x").await;
    eventually("written without a look", async || world.version("annotation", &key).await.is_some()).await;
    gate.pass();
    world.is_in_step(&key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_is_killed_frozen_or_cut_off_is_followed_by_another_and_nothing_is_lost() {
    for fault in ["-KILL", "-STOP", "cut off"] {
        let world = World::with(quick()).await;
        let keeper = keeper(&world).await;
        let other = start(&world).await;
        eventually("ready", async || other.get(&world, "/readyz").await.0 == 200).await;
        let before = world.annotate("acct:a", "before").await;
        world.is_in_step(&before).await;
        assert!(!other.keeps_the_lane(), "one keeper at a time");
        let since = Instant::now();
        if fault == "cut off" {
            world.sql("select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database where l.locktype = 'advisory' and d.datname = current_database()").await;
        } else {
            keeper.signal(fault).await;
        }
        let key = world.annotate("acct:a", "after").await;
        world.is_in_step(&key).await;
        println!("{fault}: settled after {:?}", since.elapsed());
        if fault == "-STOP" {
            assert!(other.keeps_the_lane());
            keeper.signal("-CONT").await;
            // whoever it is, both go on
            let key = world.annotate("acct:a", "thawed").await;
            world.is_in_step(&key).await;
            assert_eq!(keeper.get(&world, "/healthz").await.0, 200);
        }
        world.settle_and_compare().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lane_heeds_a_pause_and_keeps_nobody_else_waiting() {
    // known to the tick at the start, or not: there is no other
    for (before, id) in [(true, "1001"), (false, "1002")] {
        let world = World::with(quick()).await;
        let pause = "select catchword.pause('bystander', 'test', 'a test')";
        if before {
            world.sql(pause).await;
        }
        let _keeper = keeper(&world).await;
        if !before {
            world.sql(pause).await;
        }
        world.sql(&format!("begin; set local catchword.delay = '0'; insert into bystander (id, text) values ({id}, 'x'); commit")).await;
        let key = world.annotate("acct:a", "x").await;
        world.is_in_step(&key).await;
        assert_eq!(world.version("bystander", id).await, None);
        world.sql("select catchword.resume('bystander', 'test')").await;
        eventually("it goes on", async || world.version("bystander", id).await.is_some()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_another_session_has_locked_holds_up_no_other() {
    let world = World::with(quick()).await;
    let _keeper = keeper(&world).await;
    world.sql("select catchword.pause('annotation', 'test', 'so that it can be locked')").await;
    let locked = world.annotate("acct:a", "locked").await;
    let mut session = world.pool.acquire().await.unwrap();
    sqlx::raw_sql("begin; select from catchword.job for update").execute(&mut *session).await.unwrap();
    world.sql("select catchword.resume('annotation', 'test')").await;
    for _ in 0..3 {
        let key = world.annotate("acct:a", "free").await;
        eventually("the others are settled", async || world.jobs().await == 1).await;
        assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    }
    assert_eq!(world.version("annotation", &locked).await, None);
    sqlx::raw_sql("rollback").execute(&mut *session).await.unwrap();
    world.is_in_step(&locked).await;
}

/// A job has its id long before its transaction commits, so the sequence of ids rests when it becomes due.
#[tokio::test(flavor = "multi_thread")]
async fn what_commits_while_no_job_is_scheduled_is_found_all_the_same() {
    let world = World::with(quick()).await;
    let _worker = keeper(&world).await;
    for seconds in [0.1, 0.7, 3.0] {
        let mut slow = PgConnection::connect(&world.database_url).await.unwrap();
        sqlx::raw_sql("begin").execute(&mut slow).await.unwrap();
        let insert = "insert into annotation (userid, text, target_uri, target_uri_normalized) values ('acct:a', 'slow', 'u', 'u') returning id::text";
        let key: String = sqlx::query_scalar(insert).fetch_one(&mut slow).await.unwrap();
        let last: i64 = world.one("select last_value from catchword.job_id_seq").await;
        sqlx::query("select pg_sleep($1)").bind(seconds).execute(&mut slow).await.unwrap();
        assert_eq!(world.one::<i64>("select last_value from catchword.job_id_seq").await, last, "nobody else schedules anything");
        sqlx::raw_sql("commit").execute(&mut slow).await.unwrap();
        world.is_in_step(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_in_repeatable_read_is_served_like_any_other() {
    let world = World::with(quick()).await;
    let _keeper = keeper(&world).await;
    for level in ["repeatable read", "serializable"] {
        let insert = "insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u')";
        for write in [insert, &format!("update annotation set text = '{level}'")] {
            world.sql(&format!("begin isolation level {level}; select count(*) from annotation; {write}; commit")).await;
            eventually("settled", async || world.jobs().await == 0).await;
            world.both_sides_agree().await;
        }
    }
    assert_eq!(world.found("annotation").await.len(), 2);
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_outage_is_found_within_seconds_and_the_loop_goes_on_at_once() {
    let world = World::with(Layout { gated: true, ..quick() }).await;
    let gate = world.gate.as_ref().unwrap();
    let worker = keeper(&world).await;
    gate.refuse();
    let mut saved = 0;
    eventually("nothing is sent any more", async || {
        world.annotate("acct:a", "x").await;
        saved += 1;
        worker.lines().iter().any(|line| line.contains("nothing is sent to elasticsearch for a while"))
    })
    .await;
    // these are the loop's, and its next tick is far away; the first ones were put off for up to half a minute, as all of these are
    world.sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 500) i").await;
    let put_off = "update catchword.job set priority = 1, scheduled_at = now() + interval '29 seconds' where collection = 'annotation'";
    world.sql(put_off).await;
    gate.pass();
    let since = Instant::now();
    eventually("written", async || !world.found("annotation").await.is_empty()).await;
    println!("written {:?} after the outage", since.elapsed());
    eventually("drained", async || world.jobs().await == 0).await;
    assert_eq!(world.found("annotation").await.len(), saved + 500);
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 0);
}

/// Without a lane, too: somebody looks for the end of an outage every two seconds. A breaker alone waits longer after each probe, and has not
/// come to eight of them when the test gives up.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_lane_the_end_of_an_outage_is_looked_for_as_often() {
    let world = World::with(Layout { gated: true, tick: "* * * * * *", ..Layout::default() }).await;
    let gate = world.gate.as_ref().unwrap();
    let worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    // requests go through, and nobody hears the answer: so they can be counted
    gate.cut(0);
    let key = world.annotate("acct:a", "x").await;
    eventually("nothing is sent any more", async || {
        worker.lines().iter().any(|line| line.contains("nothing is sent to elasticsearch for a while"))
    })
    .await;
    eventually("eight probes", async || gate.probes() >= 8).await;
    assert!(!worker.lines().iter().any(|line| line.contains("elasticsearch answers again")));
    gate.pass();
    world.is_in_step(&key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_holds_the_lock_of_the_lane_is_named_and_the_loop_works_all_the_same() {
    let roles = Roles::with(Layout { tick: "* * * * * *", quick: "25ms", ..Layout::default() }).await;
    let world = &roles.world;
    let worker = async || launch(world.binary().env("DATABASE_URL", roles.url("worker"))).await;
    let mut first = worker().await;
    eventually("somebody keeps the lane", async || first.keeps_the_lane()).await;
    let lock = "select (l.classid::bigint << 32) | l.objid::bigint from pg_locks l join pg_database d on d.oid = l.database where l.locktype = 'advisory' and d.datname = current_database()";
    let lock: i64 = world.one(lock).await;
    first.signal("-TERM").await;
    first.child.wait().await.unwrap();

    let mut stranger = PgConnection::connect(&roles.url("application")).await.unwrap();
    let taken: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(lock).fetch_one(&mut stranger).await.unwrap();
    assert!(taken, "nobody has it any more");
    let second = worker().await;
    let named = format!("the quick lane waits for a lock that is held by process {}", pid(&mut stranger).await);
    eventually("the stranger is named", async || second.lines().iter().any(|line| line.contains(&named))).await;
    let key = world.annotate("acct:a", "by the loop").await;
    eventually("settled by the loop", async || world.jobs().await == 0).await;
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    assert!(!second.keeps_the_lane());
    // whoever asks hears that writes are slower than was promised
    let lane = "cannot keep the quick lane, so writes wait for its tick";
    let warning = async || world.run(&["check"]).await.1.lines().any(|line| line.contains("CatchwordPassFailing") && line.contains(lane));
    eventually("check warns of it", warning).await;
    assert!(world.run(&["status"]).await.1.contains(lane));
    stranger.close().await.unwrap();
    eventually("the lane is taken", async || second.keeps_the_lane()).await;
    eventually("and nobody warns any more", async || !warning().await).await;
}

async fn pid(connection: &mut PgConnection) -> i32 {
    sqlx::query_scalar("select pg_backend_pid()").fetch_one(connection).await.unwrap()
}
