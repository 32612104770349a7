//! A reindex to its end: who schedules it, how much is in the queue, and what can be seen of it.

use std::process::Stdio;

use catchword::reindex::State;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::with_numbers;
use crate::common::{Layout, World, eventually, start};

/// As `with_numbers`, with a tick every second.
fn ticking(rows: u32) -> Layout {
    Layout { tick: "* * * * * *", ..with_numbers(rows) }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_100_000_jobs_of_a_reindex_are_open_and_the_next_come_when_there_is_room() {
    let world = World::with(with_numbers(130_000)).await;
    let said = world.reindexed(&["number", "--all", "--yes"]).await;
    assert!(said.contains("10000 of 130000 keys are scheduled; no worker runs"), "{said}");
    assert!(said.contains("catchword sync number --drain"), "{said}");
    assert_eq!(world.fed("number").await, 90_000);
    let id: i64 = world.one("select max(id) from catchword.reindex").await;
    let now = world.progress(id).await;
    assert_eq!((now.state, now.scheduled, now.open, now.settled, now.total()), (State::Running, 100_000, 100_000, 0, Some(130_000)));

    // there is room for less than a chunk, then for one and a half
    let through = "delete from catchword.job where id in (select id from catchword.job where reindex is not null order by id limit";
    let its_time = "update catchword.reindex set next_at = now()";
    for (settled, scheduled) in [(9_999, 0), (5_001, 10_000), (60_000, 20_000)] {
        world.sql(&format!("{through} {settled})")).await;
        world.sql(its_time).await;
        assert_eq!(world.fed("number").await, scheduled);
    }
    let now = world.progress(id).await;
    assert_eq!((now.scheduled, now.all_scheduled, now.settled, now.open), (130_000, true, 75_000, 55_000));
    let again: i64 = world.one("select count(*) - count(distinct key) from catchword.job where collection = 'number'").await;
    assert_eq!(again, 0, "each key once");
    world.sql("delete from catchword.job where reindex is not null").await;
    assert_eq!(world.progress(id).await.state, State::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reindex_from_psql_and_from_sql_keeps_to_the_same_limit() {
    let world = World::with(with_numbers(115_000)).await;
    let id: i64 = world.one("select catchword.reindex_start('number')").await;
    world.sql(&format!("call catchword.run_reindex({id})")).await;
    assert_eq!(world.progress(id).await.open, 100_000);
    assert_eq!(world.one::<i64>("select catchword.reindex('number')").await, 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_schedule_and_settle_a_reindex_whose_terminal_is_closed() {
    let world = World::with(ticking(26_000)).await;
    let before: i64 = world.one("select last_value from catchword.job_id_seq").await;
    let (_one, _other) = (start(&world).await, start(&world).await);
    let id = world.started(&["number", "--all", "--yes"]).await;
    eventually("it has ended", async || world.progress(id).await.ended_at.is_some()).await;
    let now = world.progress(id).await;
    assert_eq!((now.state, now.scheduled, now.settled, now.open, now.dead), (State::Finished, 26_000, 26_000, 0, 0));
    let scheduled = "select last_value - {before} from catchword.job_id_seq".replace("{before}", &before.to_string());
    assert_eq!(world.one::<i64>(&scheduled).await, 26_000, "two workers schedule each key once");
    assert!(world.version("number", "1").await.is_some() && world.version("number", "26000").await.is_some());
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_worker_a_drain_schedules_all_of_it_also_what_is_limited() {
    let world = World::with(with_numbers(23_000)).await;
    let id = world.started(&["number", "--all", "--yes"]).await;
    let slow = world.started(&["number", "--ids", "1,2,3,4,5,6,7", "--rate", "5/s"]).await;
    let rests = world.started(&["number", "--code", "even"]).await;
    // it is paused before a worker came to the rest
    world.sql(&format!("update catchword.reindex set finished_at = null, paused_at = now() where id = {rests}")).await;
    let (code, said, errors) = world.run(&["sync", "number", "--drain"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    for (id, keys) in [(id, 23_000), (slow, 7)] {
        let now = world.progress(id).await;
        assert_eq!((now.state, now.settled), (State::Finished, keys), "{now}");
    }
    assert_eq!(world.progress(rests).await.state, State::Paused);
    assert!(world.version("number", "23000").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_lets_so_many_keys_in_each_second_and_little_lies_ahead() {
    let world = World::with(with_numbers(1_000)).await;
    let id = world.started(&["number", "--all", "--yes", "--rate", "40/s"]).await;
    assert_eq!(world.progress(id).await.rate, Some(40));
    world.sql("update catchword.reindex set rated_at = now(), next_at = now()").await;
    assert!(world.one::<bool>("select limited from catchword.feed_reindexes('{number}')").await, "it waits for its rate");
    let before = world.progress(id).await.scheduled;

    // however long nobody came, a second's worth; then that second is used up. In one transaction, in which no time passes
    let later = "update catchword.reindex set rated_at = now() - interval '1 hour', next_at = now()";
    let its_time = "update catchword.reindex set next_at = now()";
    let feed = "select scheduled from catchword.feed_reindexes('{number}')";
    #[allow(clippy::disallowed_methods)]
    let mut still = world.pool.begin().await.unwrap();
    for (before_it, scheduled) in [(later, 40.min(80 - before)), (its_time, 0)] {
        sqlx::query(before_it).execute(&mut *still).await.unwrap();
        assert_eq!(sqlx::query_scalar::<_, i64>(feed).fetch_one(&mut *still).await.unwrap(), scheduled);
    }
    still.commit().await.unwrap();
    for _ in 0..5 {
        world.sql(later).await;
        world.fed("number").await;
    }
    assert_eq!(world.progress(id).await.open, 80, "two seconds' worth and no more, if nobody works on it");
    assert!(!world.one::<bool>("select limited from catchword.feed_reindexes('{number}')").await, "it waits for room");

    // refused documents wait for minutes, and do not hold it up
    world.sql("update catchword.job set attempts = 1 where collection = 'number'").await;
    world.sql(later).await;
    assert_eq!(world.one::<i64>(feed).await, 40);

    // another rate counts at once, and so does none
    let (code, said, _) = world.run(&["reindex", "rate", &id.to_string(), "7"]).await;
    assert_eq!((code, said.as_str()), (0, &*format!("reindex {id} schedules at most 7 keys a second\n")));
    world.sql("delete from catchword.job where collection = 'number'").await;
    world.sql(later).await;
    assert_eq!(world.one::<i64>(feed).await, 7);
    let (code, said, _) = world.run(&["reindex", "rate", &id.to_string(), "none"]).await;
    assert_eq!((code, said.as_str()), (0, &*format!("reindex {id} has no limit any more\n")));
    world.fed("number").await;
    assert_eq!(world.progress(id).await.scheduled, 1_000);
    let (code, said, _) = world.run(&["reindex", "rate", &id.to_string(), "7/s"]).await;
    assert_eq!((code, said.as_str()), (1, &*format!("all of reindex {id} is scheduled already\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_rested_goes_on_beside_the_others_and_not_before_them() {
    let world = World::with(with_numbers(6_000)).await;
    let first: i64 = world.one("select catchword.reindex_start('number', 'code', 'even')").await;
    world.sql(&format!("select catchword.reindex_chunk({first}, 1000)")).await;
    world.sql(&format!("select catchword.pause_reindex({first})")).await;
    world.sql("select catchword.reindex('number', 'code', 'elven', p_tag => 'other')").await;
    // all of the first is through, and a third of the other
    world.sql("delete from catchword.job where reindex is not null and tag <> 'other'").await;
    world
        .sql("delete from catchword.job where id in (select id from catchword.job where tag = 'other' order by enqueued_at, id limit 1000)")
        .await;
    world.sql(&format!("select catchword.resume_reindex({first})")).await;
    assert_eq!(world.fed("number").await, 2_000);
    let others: Vec<bool> =
        world.all("select tag = 'other' from catchword.job where collection = 'number' order by priority, enqueued_at, id").await;
    let early = others[..1_000].iter().filter(|other| **other).count();
    assert!((490..=510).contains(&early), "{early} of the first 1,000 are the other's");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_no_keys_it_ends_at_once_and_a_paused_or_detached_collection_gets_no_more() {
    let world = World::with(with_numbers(20_000)).await;
    let empty: i64 = world.one("select catchword.reindex_start('number', 'code', 'odd')").await;
    assert_eq!(world.fed("number").await, 0);
    let now = world.progress(empty).await;
    assert_eq!((now.state, now.scheduled, now.total()), (State::Finished, 0, Some(0)));
    assert!(now.ended_at.is_some());

    let id = world.started(&["number", "--all", "--yes"]).await;
    world.sql("select catchword.pause('number', 'test')").await;
    let next: Option<f64> = world.one("select next_seconds from catchword.feed_reindexes('{number}')").await;
    assert_eq!((world.progress(id).await.scheduled, next), (10_000, None), "and nobody asks again before it goes on");
    world.sql("select catchword.resume('number')").await;
    assert_eq!(world.fed("number").await, 10_000);
    assert_eq!(world.run(&["detach", "number", "--yes"]).await.0, 0);
    assert_eq!(world.fed("number").await, 0);
    let (code, _, said) = world.run(&["reindex", "show", &id.to_string()]).await;
    assert!(code == 1 && said.contains(&format!("there is no reindex {id}")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_go_on_says_why_and_holds_up_no_other() {
    let world = World::with(with_numbers(11_000)).await;
    let broken: i64 = world.one("select catchword.reindex_start('number', 'code', 'even')").await;
    let sound: i64 = world.one("select catchword.reindex_start('number', 'parity', 'true')").await;
    world.sql("alter table number rename column code to code2").await;
    assert_eq!(world.fed("number").await, 5_500);
    assert!(world.progress(sound).await.all_scheduled);
    let now = world.progress(broken).await;
    assert_eq!((now.state, now.scheduled), (State::Running, 0));
    assert!(now.trouble.as_ref().is_some_and(|why| why.contains("has no column 'code' any more")), "{now:?}");
    let (_, said, _) = world.run(&["reindex", "show", &broken.to_string()]).await;
    assert!(said.contains("trouble   it cannot go on, and is tried again: table"), "{said}");
    // it goes on when that is corrected
    world.sql("alter table number rename column code2 to code; update catchword.reindex set next_at = now()").await;
    assert_eq!(world.fed("number").await, 5_500);
    assert_eq!(world.progress(broken).await.trouble, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_with_the_last_key_and_exit_1_if_some_were_given_up() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let key = world.in_step("acct:a", "fine").await;
    let bad = world.in_step("acct:a", "bad").await;
    let worker = start(&world).await;
    let (code, said, errors) = world.run(&["reindex", "annotation", "--ids", &key, "--wait"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    assert!(said.contains("finished: 1 settled of 1"), "{said}");
    assert!(!errors.contains('\u{1b}'), "no bar where there is no terminal: {errors}");

    drop(worker);
    let words = ["reindex", "annotation", "--user", "acct:a", "--wait", "--json"];
    let waiting = world.binary().args(words).stdout(Stdio::piped()).spawn().unwrap();
    eventually("both are scheduled", async || world.jobs().await == 2).await;
    assert_eq!(world.one::<i64>(&format!("select catchword.bury('annotation', '{bad}')")).await, 1);
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let output = waiting.wait_with_output().await.unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!((&said["state"], &said["settled"], &said["dead"]), (&Value::from("finished"), &Value::from(1), &Value::from(1)), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_waiting_and_not_the_reindex() {
    let world = World::with(with_numbers(12_000)).await;
    let words = ["reindex", "number", "--all", "--yes", "--wait"];
    let mut child = world.binary().args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    assert_eq!(first, "no worker runs; catchword sync number --drain works on it");
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let last = lines.next_line().await.unwrap().unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(2), "{last}");
    let id: i64 = world.one("select max(id) from catchword.reindex").await;
    assert!(last.contains(&format!("reindex {id} goes on; watch it: catchword reindex show {id}")), "{last}");
    assert_eq!(world.progress(id).await.state, State::Running);
    assert_eq!(world.fed("number").await, 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn status_list_and_show_tell_how_far_each_is() {
    let world = World::with(with_numbers(12_000)).await;
    assert_eq!(world.run(&["reindex", "list"]).await, (0, "there are no reindexes yet\n".into(), String::new()));
    let done = world.started(&["number", "--ids", "1,2"]).await;
    world.sql("delete from catchword.job where collection = 'number'; select catchword.feed_reindexes('{number}')").await;
    let id = world.started(&["number", "--all", "--yes", "--tag", "a\u{1b}[2Jb"]).await;
    world.sql("delete from catchword.job where id in (select id from catchword.job where collection = 'number' limit 4000)").await;

    let (code, said, _) = world.run(&["status"]).await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(&format!("reindex     {id} of number (everything), running: 4000 settled of 12000\n")), "{said}");
    assert!(!said.contains("2 keys"), "one that is over is not shown: {said}");
    let (_, status, _) = world.run(&["status", "--json"]).await;
    let status: Value = serde_json::from_str(&status).unwrap();
    let [one] = status["reindexes"].as_array().unwrap().as_slice() else { panic!("{status}") };
    assert_eq!((&one["scheduled"], &one["settled"], &one["open"]), (&10_000.into(), &4_000.into(), &6_000.into()), "{one}");

    let (code, listed, _) = world.run(&["reindex", "list"]).await;
    assert_eq!(code, 0);
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with(&format!("{id} of number (everything), running: ")), "{listed}");
    assert!(lines[1].starts_with(&format!("{done} of number (2 keys), finished: 2 settled of 2")), "{listed}");
    let (_, json, _) = world.run(&["reindex", "list", "number", "--limit", "1", "--json"]).await;
    let listed: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"], &listed[0]["state"]), (1, &id.into(), &"running".into()));

    let (code, shown, _) = world.run(&["reindex", "show", &id.to_string()]).await;
    assert_eq!(code, 0);
    for line in ["state     running", "scheduled 10000 of 12000", "settled   4000", "open      6000", "dead      0"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains('\u{1b}') && shown.contains(r"a\u{1b}[2Jb"), "{shown}");
    let (code, _, said) = world.run(&["reindex", "show", "999"]).await;
    assert!(code == 1 && said.contains("there is no reindex 999; list them: catchword reindex list"), "{said}");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_types_the_same_again_is_told_that_it_runs() {
    let world = World::with(with_numbers(11_000)).await;
    let first = world.started(&["number", "--all", "--yes"]).await;
    let (code, _, said) = world.reindex(&["number", "--code", "even"]).await;
    assert_eq!((code, said.as_str()), (0, ""));
    let (code, _, said) = world.reindex(&["number", "--all", "--yes"]).await;
    assert_eq!(code, 0);
    assert!(
        said.contains("note: the same reindex runs already: ") && said.contains(&format!("catchword reindex cancel {first}")),
        "{said}"
    );
}

/// A worker that ticks once an hour: whoever begins or resumes a reindex does not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reindex_moves_within_seconds_and_does_not_wait_for_a_tick() {
    let world = World::with(Layout { tick: "0 0 * * * *", quick: "off", ..with_numbers(12_000) }).await;
    world.annotate("acct:a", "a small one").await;
    world.sql("delete from catchword.job").await;
    let worker = start(&world).await;
    let small = world.started(&["annotation", "--user", "acct:a"]).await;
    eventually("what was scheduled whole is settled", async || world.progress(small).await.settled == 1).await;
    let large = world.started(&["number", "--all", "--yes"]).await;
    eventually("what workers schedule is settled", async || world.progress(large).await.settled == 12_000).await;
    drop(worker);
}
