//! A real Prometheus watches a real worker and a real application: every panel shows something, every alarm can be asked, and faults
//! make alarms fire.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use catchword::Part;
use catchword::config::{Config, Environment, Tls};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::common::{Layout, Prometheus, Running, World, eventually, start};
use crate::repo::{alarms, dashboard};

/// Every second a tick, and jobs that are due at once.
async fn world() -> World {
    World::with(Layout { tick: "* * * * * *", gated: true, canary: true, ..Layout::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_panel_shows_something_and_every_alarm_can_be_asked() {
    let world = world().await;
    let (worker, api) = (start(&world).await, Application::start(&world).await);
    let prometheus = Prometheus::watching(&[("catchword", worker.address()), ("api", &api.address)]).await;

    let asked: Vec<(String, String)> = dashboard::panels().iter().flat_map(asked).collect();
    assert!(asked.len() > 40);
    // one after the other, while both paths work
    for (panel, expression) in &asked {
        eventually(&format!("{panel} shows something: {expression}"), async || {
            world.annotate("acct:loop", "by the loop").await;
            // the canary need not wait for its minute
            world.sql("update catchword.canary set changed_at = '-infinity'").await;
            api.save(&world).await;
            prometheus.ask(expression).await.iter().any(|value| value.is_finite())
        })
        .await;
    }
    for alarm in alarms::alarms().values() {
        prometheus.ask(alarm["expr"].as_str().unwrap()).await;
    }

    let there = documented();
    // what is named anywhere is there, and what is there is shown or watched
    let watched = read("dashboards/catchword.json") + &read("dashboards/alarms.yaml");
    let mut used = names(&watched);
    for file in std::fs::read_dir(root().join("dashboards/runbooks")).unwrap() {
        used.extend(names(&std::fs::read_to_string(file.unwrap().path()).unwrap()));
    }
    for name in &used {
        assert!(there.contains(name), "{name} is in no scrape");
    }
    let shown = names(&watched);
    for name in &there {
        assert!(shown.contains(name), "{name} is on no panel and in no alarm");
    }
}

/// A selection that takes a minute; `make test-alarms` runs all of them.
const SOME_FAULTS: [&str; 8] = [
    "CatchwordJobsExpired",
    "CatchwordPausedTooLong",
    "CatchwordDeadLettersGrowing",
    "CatchwordAhead",
    "CatchwordCollectionBlocked",
    "CatchwordOldestDueJob",
    "CatchwordNoProgress",
    "CatchwordOldestChange",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_makes_its_alarm_fire() {
    let world = world().await;
    world.in_step("acct:a", "a row for the faults").await;
    let worker = start(&world).await;
    let prometheus = Prometheus::watching(&[("catchword", worker.address())]).await;
    eventually("Prometheus sees the worker", async || prometheus.ask("count_over_time(catchword_build_info[1m]) > 2").await.len() == 1)
        .await;
    for name in &chosen_faults() {
        eventually(&format!("{name} does not fire yet"), async || {
            keep_writing(&world, name).await;
            !prometheus.firing().await.contains(name)
        })
        .await;
        fire(&world, &worker, &prometheus, name).await;
        eventually("the worker is well again", async || worker.get(&world, "/readyz").await.0 == 200).await;
    }
    world.catchword.drain("test", &[]).await.unwrap();
    world.noise_is_untouched().await;
}

/// CATCHWORD_FAULTS names them, or says `all`.
fn chosen_faults() -> Vec<String> {
    match std::env::var("CATCHWORD_FAULTS").as_deref() {
        Err(_) => SOME_FAULTS.map(str::to_owned).into(),
        Ok("all") => alarms::alarms().into_keys().collect(),
        Ok(named) => named.split_whitespace().map(str::to_owned).collect(),
    }
}

/// The canary's minute is too long for a window of 15 s, so somebody else has to write: then only the fault ends it.
async fn keep_writing(world: &World, name: &str) {
    if name == "CatchwordProducerStopped" {
        world.annotate("acct:a", "somebody writes").await;
    }
}

/// Makes the fault, waits until Prometheus says that the alarm fires, and undoes it.
async fn fire(world: &World, worker: &Running, prometheus: &Prometheus, name: &str) {
    let closed = world.folder.join("closed");
    let mut faults = Command::new(root().join("scripts/faults"));
    faults.arg(name).kill_on_drop(true).stdin(Stdio::null());
    faults.env("DATABASE_URL", &world.database_url).env("ELASTICSEARCH_URL", &world.elasticsearch);
    faults.env("CATCHWORD_INDEX_PREFIX", &world.prefix).env("CATCHWORD_CONFIG", world.folder.join("catchword.toml"));
    faults.env("CATCHWORD", env!("CARGO_BIN_EXE_catchword")).env("COLLECTION", "annotation");
    faults.env("WORKER_PID", worker.child.id().unwrap().to_string()).env("PROMETHEUS_URL", &prometheus.url);
    faults.env("STOP_ELASTICSEARCH", format!("touch {}", closed.display())).env("START_ELASTICSEARCH", format!("rm {}", closed.display()));
    faults.env("FAULT_SECONDS", "120");
    let mut running = faults.spawn().unwrap();
    // the gate is in this process: it closes as long as the file is there
    let gate = world.gate.as_ref().unwrap();
    let status = loop {
        keep_writing(world, name).await;
        match tokio::time::timeout(std::time::Duration::from_millis(100), running.wait()).await {
            Ok(ended) => break ended.unwrap(),
            Err(_) if closed.exists() => gate.refuse(),
            Err(_) => gate.pass(),
        }
    };
    gate.pass();
    assert!(status.success(), "{name}: {status}");
}

/// A panel's title and what it asks, as Grafana sends it with everything chosen.
fn asked(panel: &serde_json::Value) -> Vec<(String, String)> {
    let filled =
        |expression: &str| expression.replace("$installation", ".*").replace("$collection", ".*").replace("$__rate_interval", "30s");
    let title = panel["title"].as_str().unwrap();
    panel["targets"].as_array().unwrap().iter().map(|target| (title.to_owned(), filled(target["expr"].as_str().unwrap()))).collect()
}

/// The metrics of the documentation.
fn documented() -> BTreeSet<String> {
    let page = read("docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `catchword_"));
    rows.map(|row| format!("catchword_{}", row.split('`').next().unwrap())).collect()
}

/// The metrics that a text names, without a histogram's endings.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let names = words.filter(|word| word.starts_with("catchword_") && word.len() > "catchword_".len());
    let endings = |name: &str| ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned();
    // a column and a document's field
    names.map(endings).filter(|name| !["catchword_revision", "catchword_deleted", "catchword_canary"].contains(&name.as_str())).collect()
}

/// The annotation service, which writes directly: a process of its own, since a process has one set of metrics.
struct Application {
    address: String,
    _child: Child,
}

/// Set, [`the_application`] is one.
const APPLICATION: &str = "CATCHWORD_TEST_APPLICATION";

impl Application {
    async fn start(world: &World) -> Application {
        let like = world.binary();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env_clear().envs(like.as_std().get_envs().filter_map(|(name, value)| Some((name, value?)))).env(APPLICATION, "yes");
        command.args(["--exact", "operate::watched::the_application", "--nocapture"]).kill_on_drop(true);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = lines.next_line().await.unwrap().expect("it says where it listens");
            if let Some((_, address)) = line.split_once("listening on ") {
                // whoever nobody listens to any more dies at its next word
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Application { address: address.to_owned(), _child: child };
            }
        }
    }

    async fn save(&self, world: &World) {
        let annotation = json!({ "userid": "acct:direct", "target_uri": "http://direct.example/" });
        let sent = world.client.request(Method::POST, format!("http://{}/api/annotations", self.address)).json(&annotation).send().await;
        assert_eq!(sent.unwrap().status(), 201);
    }
}

/// Not a test but the service itself, when [`Application`] starts this program once more: the service's own binary may be an older one.
#[tokio::test(flavor = "multi_thread")]
async fn the_application() {
    if std::env::var_os(APPLICATION).is_none() {
        return;
    }
    let config = Config::read(std::env::var("CATCHWORD_CONFIG").unwrap().as_ref()).unwrap();
    let environment = Environment::from_process(Tls::Verified).unwrap();
    let service = annotations::serve::open(config, &environment, Part::Application).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening on {}", listener.local_addr().unwrap());
    annotations::serve::serve(listener, service, CancellationToken::new()).await.unwrap();
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
