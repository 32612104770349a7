//! The real binary, from its first line to its exit code.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::world::{World, annotation, client, eventually, send};

const ANNOTATION_API: &str = env!("CARGO_BIN_EXE_annotation-api");

/// The running binary, and where it listens.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    async fn start(world: &World, more: &[&str]) -> Running {
        Running::start_program(world.program(ANNOTATION_API), more).await
    }

    async fn start_program(mut program: Command, more: &[&str]) -> Running {
        program.args(["serve", "--listen", "127.0.0.1:0"]).args(more);
        let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(Duration::from_secs(30), lines.next_line()).await;
        let line = line.expect("says where it listens").unwrap().expect("did not start");
        let url = line.strip_prefix("listening on ").unwrap().to_owned();
        Running { child, url }
    }

    async fn terminate(&self) {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    }

    /// Its exit code, and what it logged.
    async fn end(mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        let (status, _) =
            tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(self.child.wait(), stderr.read_to_string(&mut log)) })
                .await
                .expect("ends");
        (status.unwrap().code(), log)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_the_request_under_way_end_and_exits_0() {
    let world = World::new().await;
    let id = world.save(json!({})).await;
    let running = Running::start(&world, &[]).await;
    let path = format!("/api/annotations/{id}");

    // a change that waits for a row that is held, so that the stop comes in its middle
    let mut holder = world.scratch.connect().await.unwrap();
    sqlx::raw_sql("begin; update annotation set text = 'held'").execute(&mut holder).await.unwrap();
    let request = tokio::spawn({
        let (url, path) = (running.url.clone(), path.clone());
        async move { send(&client(), &url, "PATCH", &path, Some(br#"{ "text": "changed" }"#.to_vec())).await }
    });
    eventually("the request waits for the row", async || {
        let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        world.number(waiting).await == 1
    })
    .await;
    running.terminate().await;
    eventually("no new connection is taken", async || {
        tokio::net::TcpStream::connect(running.url.trim_start_matches("http://")).await.is_err()
    })
    .await;
    assert!(!request.is_finished());
    sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();

    let answer = request.await.unwrap();
    assert_eq!((answer.status, &answer.body["text"]), (200, &json!("changed")));
    let (code, log) = running.end().await;
    assert_eq!(code, Some(0), "{log}");
    world.settle_everything().await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_with_sync_runs_sync_annotations_itself_and_its_log_says_so() {
    let world = World::new().await;
    let running = Running::start(&world, &["--sync"]).await;
    world
        .sql("insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:psql@test', 'https://test.example', 'https://test.example/')")
        .await;
    eventually("it is found, though nobody here ran a pass", async || world.found("user=acct:psql@test").await.len() == 1).await;
    eventually("its job is settled", async || world.jobs().await == 0).await;
    running.terminate().await;
    let (code, log) = running.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("this worker keeps the quick lane"), "{log}");
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_without_sync_leaves_the_jobs_to_a_worker() {
    let world = World::new().await;
    let running = Running::start(&world, &[]).await;
    let saved = send(&client(), &running.url, "POST", "/api/annotations", Some(annotation(json!({})).to_string().into())).await;
    assert_eq!(saved.status, 201);
    assert_eq!(world.jobs().await, 1);
    running.terminate().await;
    let (code, log) = running.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("sync_annotations"), "{log}");
    assert_eq!(world.jobs().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_while_elasticsearch_is_away_and_writes_succeed() {
    let world = World::new().await;
    let mut program = world.program(ANNOTATION_API);
    world.gate.close();
    program.env("ELASTICSEARCH_URL", format!("http://{}", world.gate.address()));
    let running = Running::start_program(program, &[]).await;
    let saved = send(&client(), &running.url, "POST", "/api/annotations", Some(annotation(json!({})).to_string().into())).await;
    assert_eq!((saved.status, saved.header("catchword-direct")), (201, Some("left")));
    let search = send(&client(), &running.url, "GET", "/api/search", None).await;
    assert_eq!(search.status, 503);
    world.gate.open();
    eventually("the direct path begins automatically", async || {
        let body = annotation(json!({})).to_string().into();
        let saved = send(&client(), &running.url, "POST", "/api/annotations", Some(body)).await;
        saved.header("catchword-direct") == Some("indexed")
    })
    .await;
    running.terminate().await;
    assert_eq!(running.end().await.0, Some(0));
    world.settle_everything().await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_cannot_do_is_said_on_standard_error_with_exit_code_2() {
    let world = World::new().await;
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let usual = world.scratch.database_url.as_str();
    let nobody = "postgres://nobody:wrong@127.0.0.1:1/x";
    for (words, database_url, said) in [
        (&["serve", "--listen", &address][..], usual, "cannot listen on"),
        (&["serve", "--config", "/nowhere/catchword.toml"], usual, "/nowhere/catchword.toml"),
        (&["migrate"], nobody, "cannot reach the database"),
    ] {
        let mut program = world.program(ANNOTATION_API);
        let ended = program.args(words).env("DATABASE_URL", database_url).output().await.unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(said) && !stderr.contains("wrong"), "{words:?}: {stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrate_twice_changes_nothing_and_generate_twice_writes_nothing_new() {
    let world = World::new().await;
    let run = async |words: &[&str]| {
        let ended = world.program(ANNOTATION_API).args(words).output().await.unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    };
    assert!(run(&["migrate"]).await.contains("up to date"));
    let generate = ["generate", "--count", "700", "--seed", "3", "--edits", "0.2", "--deletes", "0.05"];
    assert!(run(&generate).await.starts_with("seed 3: inserted 700, edited"));
    let count = async || world.number("select count(*) from annotation").await;
    let before = count().await;
    assert!(run(&generate).await.starts_with("seed 3: inserted 0 (700 were there already)"));
    assert_eq!(count().await, before);
    world.settle_everything().await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_scrape_shows_the_direct_path_and_what_is_not_its_own_is_not_there() {
    let world = World::new().await;
    let running = Running::start(&world, &[]).await;
    let scrape = async || client().get(format!("{}/metrics", running.url)).send().await.unwrap().text().await.unwrap();
    let value = |text: &str, series: &str| text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse::<f64>().ok());
    let indexed = "catchword_direct_total{collection=\"annotation\",outcome=\"indexed\"}";
    assert_eq!(value(&scrape().await, indexed), Some(0.0), "it is there before its first event");
    eventually("one is indexed at once", async || {
        let body = annotation(json!({})).to_string().into();
        send(&client(), &running.url, "POST", "/api/annotations", Some(body)).await.header("catchword-direct") == Some("indexed")
    })
    .await;
    let text = scrape().await;
    assert_eq!(value(&text, indexed), Some(1.0), "{text}");
    assert_eq!(value(&text, "catchword_documents_written_total{collection=\"annotation\",path=\"direct\"}"), Some(1.0));
    assert_eq!(value(&text, "catchword_freshness_seconds_count{collection=\"annotation\",path=\"direct\"}"), Some(1.0));
    assert!(value(&text, "catchword_direct_duration_seconds_count{collection=\"annotation\"}") >= Some(1.0));
    for server in ["postgres", "elasticsearch"] {
        assert_eq!(value(&text, &format!("catchword_up{{server=\"{server}\"}}")), Some(1.0), "{server}");
    }
    // the queue is the worker's to report
    assert!(!text.contains("catchword_jobs"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trace_of_a_request_travels_in_its_job() {
    let world = World::new().await;
    let mut program = world.program(ANNOTATION_API);
    // nobody is there to receive it: that keeps nobody from writing
    program.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let running = Running::start_program(program, &[]).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let posted = client()
        .post(format!("{}/api/annotations", running.url))
        .header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"))
        .body(annotation(json!({})).to_string());
    assert_eq!(posted.send().await.unwrap().status().as_u16(), 201);
    let carried = format!(
        "select count(*) from catchword.job where traceparent like '00-{trace}-%-01' and traceparent not like '%00f067aa0ba902b7%'"
    );
    assert_eq!(world.number(&carried).await, 1, "the same trace, the request's own span");
    running.terminate().await;
    assert_eq!(running.end().await.0, Some(0));
}
