//! A worker that dies in the middle of a batch.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use tokio::process::Command;

use crate::common::{Gate, Traffic, World, eventually, launch};
use crate::{a_new_worker_finishes, end_of, quick, repetitions};

const ABORTED: i32 = 6;
const KILLED: i32 = 9;

#[tokio::test(flavor = "multi_thread")]
async fn after_the_claim() {
    at("after-claim").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_look() {
    at("after-look").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_answer_to_the_bulk() {
    at("bulk-answered").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settled_and_not_committed() {
    at("settled-before-commit").await;
}

async fn at(point: &str) {
    let world = Arc::new(World::with(quick()).await);
    for _ in 0..repetitions() {
        let traffic = Traffic::start(&world);
        let mut worker = launch(world.binary().env("CATCHWORD_CRASH", point)).await;
        assert_eq!(end_of(&mut worker.child).await.signal(), Some(ABORTED));
        world.intent_is_durable().await;
        assert!(traffic.end().await > 0);
        a_new_worker_finishes(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_pass_ends_neither_the_worker_nor_the_work() {
    let world = Arc::new(World::with(quick()).await);
    let key = world.annotate("acct:a", "x").await;
    let mut worker = launch(world.binary().env("CATCHWORD_PANIC", "after-look")).await;
    eventually("the pass panicked, and the next one worked", async || world.version("annotation", &key).await.is_some()).await;
    eventually("settled", async || world.jobs().await == 0).await;
    let (_, metrics) = worker.get(&world, "/metrics").await;
    assert!(metrics.lines().any(|line| line.starts_with("catchword_pass_panics_total") && line.ends_with(" 1")), "{metrics}");
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    worker.signal("-TERM").await;
    assert_eq!(end_of(&mut worker.child).await.code(), Some(0));
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buried_and_not_committed() {
    let world = Arc::new(World::with(quick()).await);
    let both = "select (select count(*) from catchword.job where key = 'no uuid'), (select count(*) from catchword.dead_job)";
    let job_and_letter = async || sqlx::query_as::<_, (i64, i64)>(both).fetch_one(&world.pool).await.unwrap();
    for _ in 0..repetitions() {
        let traffic = Traffic::start(&world);
        world.sql("insert into catchword.job (collection, key, priority, tag) values ('annotation', 'no uuid', 1, 'test')").await;
        let mut worker = launch(world.binary().env("CATCHWORD_CRASH", "buried-before-commit")).await;
        assert_eq!(end_of(&mut worker.child).await.signal(), Some(ABORTED));
        assert_eq!(job_and_letter().await, (1, 0), "as if it had never been buried");
        world.intent_is_durable().await;
        traffic.end().await;

        world.catchword.drain("test", &["annotation"]).await.unwrap();
        assert_eq!(job_and_letter().await, (0, 1), "buried once");
        world.sql("delete from catchword.dead_job").await;
        a_new_worker_finishes(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bulk_is_sent_and_no_answer_comes() {
    let world = Arc::new(World::with(quick()).await);
    for _ in 0..repetitions() {
        let gate = Gate::before(&world.elasticsearch).await;
        let mut command = world.binary();
        command.env("ELASTICSEARCH_URL", &gate.url);
        let traffic = Traffic::start(&world);
        killed_without_an_answer(&world, &gate, &["_bulk"], &mut command).await;
        traffic.end().await;
        a_new_worker_finishes(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commit_is_sent_and_no_answer_comes() {
    let world = Arc::new(World::with(quick()).await);
    for _ in 0..repetitions() {
        let mut url = url::Url::parse(&world.database_url).unwrap();
        let gate = Gate::before(&format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())).await;
        let port = url::Url::parse(&gate.url).unwrap().port();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(port).unwrap();
        let mut command = world.binary();
        command.env("DATABASE_URL", url.as_str());
        // in step already, so that the first batch has something to settle
        let key = world.in_step("acct:b", "x").await;
        world.sql(&format!("select catchword.schedule('annotation', array['{key}'], 'unheard')")).await;
        let traffic = Traffic::start(&world);
        killed_without_an_answer(&world, &gate, &["delete from catchword.job where id = any", "COMMIT"], &mut command).await;
        let unheard = "select count(*) from catchword.job where tag = 'unheard'";
        assert_eq!(world.one::<i64>(unheard).await, 0, "settled, though the worker never knew");
        traffic.end().await;
        a_new_worker_finishes(&world).await;
    }
}

/// The server has done what it was asked, and the worker dies before it hears of it.
async fn killed_without_an_answer(world: &World, gate: &Gate, requests: &'static [&'static str], command: &mut Command) {
    gate.swallow(requests);
    let mut worker = launch(command).await;
    gate.swallowed_something().await;
    worker.signal("-KILL").await;
    assert_eq!(end_of(&mut worker.child).await.signal(), Some(KILLED));
    world.intent_is_durable().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_panics_is_found_and_charged_and_nobody_else_waits() {
    let world = Arc::new(World::with(quick()).await);
    let insert =
        "insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 100) i";
    world.sql(insert).await;
    let bad = world.annotate("acct:bad", "x").await;
    world.sql(insert).await;
    world.sql("insert into bystander (id, text) values (78, 'another collection')").await;
    world.sql("update catchword.job set scheduled_at = now() where collection = 'bystander' and key = '78'").await;
    let mut worker = launch(world.binary().env("CATCHWORD_PANIC_AT", &bad)).await;
    let charged = async || world.all::<String>("select key || ' ' || attempts from catchword.job where attempts > 0").await;
    for attempts in 1..5 {
        eventually("it is charged", async || charged().await == [format!("{bad} {attempts}")]).await;
        eventually("the others are there", async || world.found("annotation").await.len() == 200 && world.jobs().await == 1).await;
        assert!(world.version("bystander", "78").await.is_some());
        world.make_due().await;
    }
    eventually("it is buried", async || world.jobs().await == 0).await;
    let letter: String = world.one("select key || ' ' || reason || ' ' || last_error from catchword.dead_job").await;
    assert_eq!(letter, format!("{bad} unanswered catchword panicked: a key that panics"));
    worker.signal("-TERM").await;
    assert_eq!(end_of(&mut worker.child).await.code(), Some(0));
    world.noise_is_untouched().await;
}
