//! The demo leaves nothing behind, however it ends, and says the truth. That it ends well is a step of `make test`.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use annotations::demo::Index;
use catchword::config::{Environment, Tls};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::world::{client, eventually};

const ANNOTATION_DEMO: &str = env!("CARGO_BIN_EXE_annotation-demo");

/// Longer than the short demo takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_it_ends_its_programs_and_drops_what_it_made() {
    let mut demo = Demo::start().await;
    demo.until("2. Elasticsearch is down").await;
    let programs = demo.programs();
    assert_eq!(programs.len(), 2, "the service and the worker");
    assert!(demo.is_there().await);

    signal("-INT", demo.child.id().unwrap()).await;
    let left = demo.left();
    let (code, _, stderr) = demo.end().await;
    assert_eq!(code, Some(130), "{stderr}");
    left.is_nothing().await;
    for program in programs {
        eventually("its programs are gone", async || !runs(program)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_its_worker_dies_it_says_so_fails_and_drops_what_it_made() {
    let mut demo = Demo::start().await;
    demo.until("2. Elasticsearch is down").await;
    let worker = demo.programs().into_iter().find(|pid| command_line(*pid).contains("worker")).unwrap();
    signal("-KILL", worker).await;
    let left = demo.left();
    let (code, _, stderr) = demo.end().await;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("catchword ended unexpectedly"), "{stderr}");
    left.is_nothing().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_document_too_many_is_a_disagreement_and_exit_code_1() {
    let mut demo = Demo::start().await;
    demo.until("2. Elasticsearch is down").await;
    // a document that nobody saved, past catchword
    let path = format!("{}annotation-000001/_doc/stranger?version=2&version_type=external", demo.prefix);
    let put = client()
        .put(format!("{}/{path}", environment().elasticsearch.url.trim_end_matches('/')))
        .header("content-type", "application/json")
        .body(json!({ "text": "nobody wrote me" }).to_string());
    assert_eq!(put.send().await.unwrap().status(), 201);

    let left = demo.left();
    let (code, stdout, stderr) = demo.end().await;
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("2,200 rows, 2,201 documents: 0 missing, 1 without a row, 0 of another version"), "{stdout}");
    assert!(stdout.contains("They do not agree."), "{stdout}");
    left.is_nothing().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_refuses_an_elasticsearch_that_its_gate_cannot_stand_before() {
    let ended = Command::new(ANNOTATION_DEMO).env("ELASTICSEARCH_URL", "https://127.0.0.1:9200").output().await.unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(stderr.contains("needs an Elasticsearch without TLS; unset ELASTICSEARCH_URL"), "{stderr}");
}

/// The short demo, running.
struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: String,
    prefix: String,
}

impl Demo {
    async fn start() -> Demo {
        let catchword = Path::new(ANNOTATION_DEMO).with_file_name("catchword");
        assert!(catchword.is_file(), "the demo runs catchword's own binary: cargo build --workspace --bins");
        let mut demo = Command::new(ANNOTATION_DEMO);
        demo.arg("--fast").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = demo.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut demo = Demo { child, lines, seen: String::new(), prefix: String::new() };
        let line = demo.until("indices of its own (").await;
        let named = line.split_once('(').and_then(|(_, rest)| rest.split_once('*'));
        demo.prefix = named.unwrap().0.to_owned();
        demo
    }

    /// Reads on until a line says this.
    async fn until(&mut self, said: &str) -> String {
        let reading = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                self.seen.push_str(&line);
                self.seen.push('\n');
                if line.contains(said) {
                    return line;
                }
            }
            panic!("it ended before it said {said:?}: {}", self.seen)
        };
        tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("never said {said:?}"))
    }

    /// Its exit code, what it said, and what it complained of.
    async fn end(mut self) -> (Option<i32>, String, String) {
        let mut stderr = String::new();
        let mut complaints = self.child.stderr.take().unwrap();
        let ending = async {
            let said = async {
                while let Some(line) = self.lines.next_line().await.unwrap() {
                    self.seen.push_str(&line);
                    self.seen.push('\n');
                }
            };
            let complained = complaints.read_to_string(&mut stderr);
            tokio::join!(said, complained).1.unwrap();
            self.child.wait().await.unwrap().code()
        };
        let code = tokio::time::timeout(PATIENCE, ending).await.expect("ends");
        (code, self.seen, stderr)
    }

    /// The processes it started.
    fn programs(&self) -> Vec<u32> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id().unwrap())).unwrap();
        let children = threads.flat_map(|thread| {
            std::fs::read_to_string(thread.unwrap().path().join("children"))
                .unwrap_or_default()
                .split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect::<Vec<u32>>()
        });
        children.collect()
    }

    fn left(&self) -> Left {
        Left { prefix: self.prefix.clone() }
    }

    async fn is_there(&self) -> bool {
        self.left().databases().await == 1
    }
}

/// What a demo that has ended may have left.
struct Left {
    prefix: String,
}

impl Left {
    async fn is_nothing(&self) {
        assert_eq!(self.databases().await, 0, "its database is dropped");
        let index = Index::new(&environment().elasticsearch, &self.prefix).unwrap();
        assert_eq!(index.names().await.unwrap(), Vec::<String>::new(), "its indices are deleted");
        let folder = std::env::temp_dir().join(format!("catchword-{}", self.prefix.trim_end_matches('-')));
        assert!(!folder.exists(), "its folder is deleted");
    }

    async fn databases(&self) -> i64 {
        let mut server = PgConnection::connect(environment().database_url.expose()).await.unwrap();
        let name = format!("catchword_{}", self.prefix.trim_end_matches('-').replace('-', "_"));
        sqlx::query_scalar("select count(*) from pg_database where datname = $1").bind(name).fetch_one(&mut server).await.unwrap()
    }
}

fn environment() -> Environment {
    Environment::from_process(Tls::Verified).unwrap_or_else(|error| panic!("{error}; run the tests with: make test"))
}

async fn signal(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().await.unwrap().success());
}

fn command_line(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// A process that has ended and was not yet reaped has no command line.
fn runs(pid: u32) -> bool {
    !command_line(pid).is_empty()
}
