//! The real service, ended without warning around its direct write; then a restart, and both sides agree.
//!
//! CATCHWORD_REPEAT says how often each; once, if it says nothing.

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../../../../tests/all/common/gate.rs"]
mod gate;
#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../api/world.rs"]
mod world;

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use gate::Gate;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use world::{World, annotation, client, eventually};

const ANNOTATION_API: &str = env!("CARGO_BIN_EXE_annotation-api");

fn repetitions() -> u32 {
    std::env::var("CATCHWORD_REPEAT").map_or(1, |times| times.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn committed_and_not_yet_indexed() {
    let world = World::new().await;
    for _ in 0..repetitions() {
        let before = world.number("select count(*) from annotation").await;
        let (mut service, url) = start(world.program(ANNOTATION_API).env("CATCHWORD_CRASH", "after-commit"), &[]).await;
        let clients = save_at_once(&url);
        assert_eq!(end_of(&mut service).await.signal(), Some(6));
        clients.join_all().await;
        assert!(world.number("select count(*) from annotation").await > before, "one at least was committed");
        a_new_service_finishes(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_direct_write_is_sent_and_no_answer_comes() {
    let world = World::new().await;
    let elasticsearch = std::env::var("ELASTICSEARCH_URL").unwrap();
    for _ in 0..repetitions() {
        let gate = Gate::before(&elasticsearch).await;
        let (mut service, url) = start(world.program(ANNOTATION_API).env("ELASTICSEARCH_URL", &gate.url), &[]).await;
        gate.swallow(&["_bulk"]);
        let clients = save_at_once(&url);
        gate.swallowed_something().await;
        service.start_kill().unwrap();
        assert_eq!(end_of(&mut service).await.signal(), Some(9));
        clients.join_all().await;
        a_new_service_finishes(&world).await;
    }
}

/// Starts the service on a free port.
async fn start(program: &mut Command, more: &[&str]) -> (Child, String) {
    program.args(["serve", "--listen", "127.0.0.1:0"]).args(more).stdout(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().expect("it says where it listens");
    (child, line.strip_prefix("listening on ").unwrap().to_owned())
}

/// Some clients save, and do not mind that nobody answers.
fn save_at_once(url: &str) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for n in 0..10 {
        let body = annotation(json!({ "text": format!("number {n}") })).to_string();
        let request = client().post(format!("{url}/api/annotations")).body(body);
        clients.spawn(async move { _ = request.send().await });
    }
    clients
}

async fn end_of(child: &mut Child) -> ExitStatus {
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
    ended.expect("it never came to the point").unwrap()
}

/// What was committed and is not in the index has a job; and the next service, which runs the loop, brings it there.
async fn a_new_service_finishes(world: &World) {
    let mut connection = world.scratch.connect().await.unwrap();
    let without_job =
        "select id::text, catchword_revision from annotation where not exists (select from catchword.job where key = annotation.id::text)";
    for (key, revision) in sqlx::query_as::<_, (String, i64)>(without_job).fetch_all(&mut connection).await.unwrap() {
        let seen = world.scratch.index.version(&key).await.unwrap();
        assert!(seen >= Some(revision), "{key} is forgotten: {revision} committed, {seen:?} indexed, no job");
    }
    let mut program = world.program(ANNOTATION_API);
    let (mut service, _) = start(&mut program, &["--sync"]).await;
    eventually("nothing is left", async || world.jobs().await == 0).await;
    service.start_kill().unwrap();
    end_of(&mut service).await;
    assert_eq!(world.number("select count(*) from catchword.dead_job").await, 0);
    world.both_sides_agree().await;
}
