//! The world of a test: a fresh database, fresh indices, the service on a free port, and others' annotations around it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use annotations::demo::{Clock, Gate, Scratch, compare};
use annotations::generate::Generator;
use annotations::serve::{open, serve};
use annotations::sync::sync_annotations;
use catchword::Part;
use catchword::config::{Config, Environment, Tls};
use catchword::{Catchword, Direct, Outcome};
use reqwest::header::HeaderMap;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Jobs are due at once; the tick matters only to a program that runs the loop itself.
pub const AT_ONCE: Clock = Clock::Fast { delay: "0s", tick: "* * * * * *" };

/// Annotations of others, on other pages: no test is about them.
const NOISE: usize = 5;

pub struct World {
    // the first to be dropped: the service's connections end before its database does
    service: Service,
    pub catchword: Catchword,
    /// Before Elasticsearch.
    pub gate: Gate,
    /// Before Postgres.
    pub postgres_gate: Gate,
    pub client: reqwest::Client,
    pub scratch: Scratch,
}

/// The service inside this process.
struct Service {
    url: String,
    stop: CancellationToken,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    pub async fn new() -> World {
        let given = Environment::from_process(Tls::Verified).unwrap_or_else(|error| panic!("{error}; run the tests with: make test"));
        let scratch = Scratch::create(&given, "test", AT_ONCE).await.unwrap();
        let gate = Gate::before(&authority(&given.elasticsearch.url)).await.unwrap();
        let postgres_gate = Gate::before(&authority(given.database_url.expose())).await.unwrap();

        let config = Config::read(&scratch.config()).unwrap();
        let environment = environment(&scratch, &gate, &postgres_gate);
        annotations::migrate(&sqlx::PgPool::connect(scratch.database_url.as_str()).await.unwrap()).await.unwrap();
        Catchword::open(config.clone(), &environment).unwrap().migrate().await.unwrap();
        let opened = open(config, &environment, Part::Application).await.unwrap();
        let catchword = opened.catchword.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = Service { url: format!("http://{}", listener.local_addr().unwrap()), stop: CancellationToken::new() };
        tokio::spawn(serve(listener, opened, service.stop.clone()));
        let world = World { service, catchword, gate, postgres_gate, client: client(), scratch };
        let mut connection = world.scratch.connect().await.unwrap();
        Generator::new(7).insert_many(&mut connection, NOISE).await.unwrap();
        world.settle_everything().await;
        world.warm_up().await;
        world
    }

    /// Waits until Elasticsearch answers a write and a search in time: one that has just started, on a busy machine, does not.
    async fn warm_up(&self) {
        let mut connection = self.scratch.connect().await.unwrap();
        let key: uuid::Uuid = sqlx::query_scalar("select id from annotation limit 1").fetch_one(&mut connection).await.unwrap();
        eventually("a direct write and a search are answered in time", async || {
            self.catchword.index_now("annotation", [key]).await == Direct::Indexed
                && self.send("GET", "/api/search?limit=1", None).await.status == 200
        })
        .await;
    }

    /// Where the service is.
    pub fn url(&self) -> &str {
        &self.service.url
    }

    /// A request to the service: method, path, and a body if there is one.
    pub async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.send_bytes(method, path, body.map(|body| body.to_string().into_bytes())).await
    }

    /// The same with a body as it is.
    pub async fn send_bytes(&self, method: &str, path: &str, body: Option<Vec<u8>>) -> Answer {
        send(&self.client, &self.service.url, method, path, body).await
    }

    /// Saves an annotation, which must succeed; returns its id. `more` gives some fields; the rest is anything.
    pub async fn save(&self, more: Value) -> String {
        let saved = self.send("POST", "/api/annotations", Some(annotation(more))).await;
        assert_eq!(saved.status, 201, "{}", saved.body);
        saved.body["id"].as_str().unwrap().to_owned()
    }

    /// The ids that a search finds now, in its order. A busy machine may take longer than the service waits: then it is asked again.
    pub async fn found(&self, query: &str) -> Vec<String> {
        let mut found = self.send("GET", &format!("/api/search?{query}"), None).await;
        for _ in 0..10 {
            if found.status != 503 {
                break;
            }
            found = self.send("GET", &format!("/api/search?{query}"), None).await;
        }
        assert_eq!(found.status, 200, "{}", found.body);
        ids(&found.body)
    }

    /// Waits until a search finds exactly these, in this order.
    pub async fn finds(&self, query: &str, wanted: &[&str]) {
        eventually(&format!("a search for {query} finds {wanted:?}"), async || self.found(query).await == wanted).await;
    }

    /// One statement, as somebody would type it in psql.
    pub async fn sql(&self, statement: &str) {
        let mut connection = self.scratch.connect().await.unwrap();
        sqlx::query(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
    }

    pub async fn number(&self, statement: &str) -> i64 {
        let mut connection = self.scratch.connect().await.unwrap();
        number(&mut connection, statement).await
    }

    pub async fn jobs(&self) -> i64 {
        self.number("select count(*) from catchword.job").await
    }

    pub async fn pass(&self) -> Outcome {
        sync_annotations(&self.catchword).await.unwrap()
    }

    /// Passes until no job is left; also after an outage, when the breaker has to close first.
    pub async fn settle_everything(&self) {
        eventually("no job is left", async || {
            // the pool may still hold connections that were cut
            if let Err(error) = sync_annotations(&self.catchword).await {
                println!("{error}");
            }
            self.jobs().await == 0
        })
        .await;
    }

    /// Every row has its document and every document its row, the noise's too.
    pub async fn both_sides_agree(&self) {
        let compared = compare(&self.scratch.rows().await.unwrap(), &self.scratch.index.documents().await.unwrap());
        assert!(compared.agree(), "{compared}: {compared:?}");
        assert!(compared.rows >= NOISE);
    }

    /// A program of this package, in this world; without a gate.
    pub fn program(&self, path: &str) -> Command {
        let mut program = Command::new(path);
        program
            .env("DATABASE_URL", self.scratch.database_url.as_str())
            .env("CATCHWORD_INDEX_PREFIX", &self.scratch.prefix)
            .env("CATCHWORD_CONFIG", self.scratch.config())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        program
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Null if it was no JSON.
    pub body: Value,
    pub took: Duration,
    headers: HeaderMap,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

pub async fn send(client: &reqwest::Client, service: &str, method: &str, path: &str, body: Option<Vec<u8>>) -> Answer {
    send_with(client, service, method, path, HeaderMap::new(), body).await
}

/// The same with headers.
pub async fn send_with(
    client: &reqwest::Client,
    service: &str,
    method: &str,
    path: &str,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
) -> Answer {
    let started = Instant::now();
    let mut request = client.request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{service}{path}")).headers(headers);
    if let Some(body) = body {
        request = request.body(body);
    }
    let response: Response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.unwrap();
    Answer { status, headers, body: serde_json::from_slice(&bytes).unwrap_or_default(), took: started.elapsed() }
}

pub fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// An annotation as a client sends it: what `more` names, and a user and a page if it names none.
pub fn annotation(more: Value) -> Value {
    let mut whole = json!({ "userid": "acct:mina@test", "target_uri": "https://test.example/page" });
    for (name, value) in more.as_object().unwrap() {
        whole[name] = value.clone();
    }
    whole
}

fn ids(found: &Value) -> Vec<String> {
    let rows = found["rows"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

pub async fn number(connection: &mut PgConnection, statement: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(statement.to_owned())).fetch_one(connection).await.unwrap()
}

/// Waits until `condition` holds; a test that waits in vain fails after 30 s with `what`.
pub async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(30), async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

fn environment(scratch: &Scratch, gate: &Gate, postgres_gate: &Gate) -> Environment {
    let mut database_url = scratch.database_url.clone();
    database_url.set_host(Some("127.0.0.1")).unwrap();
    database_url.set_port(Some(postgres_gate.address().port())).unwrap();
    let get = |name: &str| match name {
        "DATABASE_URL" => Some(database_url.to_string()),
        "ELASTICSEARCH_URL" => Some(format!("http://{}", gate.address())),
        "CATCHWORD_INDEX_PREFIX" => Some(scratch.prefix.clone()),
        _ => None,
    };
    Environment::from_lookup(get, Tls::Verified).unwrap()
}

fn authority(url: &str) -> String {
    let url = url::Url::parse(url).unwrap();
    format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())
}
