//! A server that is down: the API says so, within its time, with what is known.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Api, answer};
use crate::common::{Gate, Layout, World, eventually, listening};

#[tokio::test(flavor = "multi_thread")]
async fn while_postgres_is_down_a_known_key_sees_what_is_known_and_an_unknown_one_is_told_why_not() {
    let world = World::new().await;
    let mut url = url::Url::parse(&world.database_url).unwrap();
    let gate = Gate::before(&format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())).await;
    url.set_port(Some(gate.url.rsplit_once(':').unwrap().1.parse().unwrap())).unwrap();
    let server = listening(world.binary().env("DATABASE_URL", url.as_str()).args(["serve", "--listen", "127.0.0.1:0"])).await;
    let api = Api { world, server };
    let (known, unknown) = (api.key("known", &["--role", "admin"]).await, api.key("unknown", &["--role", "admin"]).await);
    assert_eq!(api.get(&known, "/status").await.0, 200);

    gate.refuse();
    eventually("it says that Postgres is down", async || api.get(&known, "/status").await.0 == 503).await;
    let started = Instant::now();
    let (status, known_of) = api.get(&known, "/status").await;
    assert!(status == 503 && known_of["postgres"].is_string(), "{known_of}");
    assert_eq!(known_of["collections"][0]["name"], "annotation", "what is known is there: {known_of}");
    assert!(known_of["collections"][0]["documents"].is_number(), "Elasticsearch was asked all the same: {known_of}");
    let (status, check) = api.get(&known, "/check").await;
    assert!(status == 503 && check["level"] == "unknown", "{check}");
    for path in ["/journal", "/collections/annotation/keys/7b4dbe6e-6f2c-4d3e-8d2b-0d6f3c1b2a3c", "/collections/annotation/dead-letters"] {
        let (status, problem) = api.get(&known, path).await;
        assert!(status == 503 && problem["remedy"].is_string(), "{path}: {status} {problem}");
    }
    assert!(started.elapsed() < Duration::from_secs(100), "each finishes within its time: {:?}", started.elapsed());
    let (status, problem) = api.get(&unknown, "/status").await;
    assert!(status == 503 && problem["detail"].as_str().unwrap().contains("no API key can be checked"), "{problem}");
    let (status, problem) = api.post(&known, "/collections/annotation/pause", serde_json::json!({ "reason": "x" })).await;
    assert_eq!(status, 503, "whoever cannot be checked may look and nothing else: {problem}");
    assert_eq!(api.get("cwk_nonsense", "/status").await.0, 401);

    gate.pass();
    eventually("it is back", async || api.get(&unknown, "/status").await.0 == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_elasticsearch_is_down_everything_that_postgres_knows_is_told() {
    let api = Api::with(Layout { gated: true, ..Layout::default() }, &[]).await;
    let key = api.key("a", &["--role", "operator"]).await;
    let row = api.world.in_step("acct:a", "x").await;
    api.world.gate.as_ref().unwrap().refuse();
    let (status, seen) = api.get(&key, "/collections/annotation").await;
    assert!(status == 200 && seen["uncounted"].is_string() && seen["due"].is_number(), "{status} {seen}");
    let (status, check) = api.get(&key, "/check").await;
    assert!(status == 200 && check["level"] == "unwell" && check["summary"].as_str().unwrap().contains("Elasticsearch"), "{check}");
    let (status, explained) = api.get(&key, &format!("/collections/annotation/keys/{row}")).await;
    assert!(status == 200 && explained["indices"][0]["unknown"].is_string(), "{explained}");
    let (status, waited) = api.get(&key, &format!("/collections/annotation/keys/{row}/wait?limit=1s")).await;
    assert!(status == 200 && waited["became"] == "waiting" && waited["has_come"] == false, "{status} {waited}");
    let (status, _) = api.post(&key, "/collections/annotation/pause", serde_json::json!({ "reason": "outage" })).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_on_this_machine_while_postgres_is_down_and_says_so() {
    let world = World::new().await;
    let (_, away) = world.postgres_away().await.remove(0);
    let server = listening(world.binary().env("DATABASE_URL", &away).args(["serve", "--listen", "127.0.0.1:0", "--open"])).await;
    let (status, known): (u16, Value) = answer(world.client.get(format!("{}/api/v1/status", server.url()))).await;
    assert!(status == 503 && known["postgres"].is_string(), "{known}");
    let (code, _, said) = {
        let output = world.binary().env("DATABASE_URL", &away).args(["serve", "--listen", "0.0.0.0:0"]).output().await.unwrap();
        (output.status.code(), (), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(code == Some(2) && said.contains("can be reached by others"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_are_slow_or_many_keep_nobody_out() {
    let api = Api::new().await;
    let key = api.key("a", &["--role", "reader"]).await;
    let mut idle = Vec::new();
    for n in 0..600 {
        let mut stream = TcpStream::connect(api.server.address()).await.unwrap();
        let sent: &[u8] = match n % 3 {
            0 => b"",
            1 => b"GET /api/v1/sta",
            _ => b"POST /sign-in HTTP/1.1\r\nhost: localhost\r\nsec-fetch-site: same-origin\r\ncontent-length: 1000\r\n\r\nkey=",
        };
        // those that gave way already are closed
        _ = stream.write_all(sent).await;
        idle.push(stream);
    }
    assert_eq!(api.get(&key, "/status").await.0, 200);
    let mut dripping = TcpStream::connect(api.server.address()).await.unwrap();
    dripping.write_all(b"GET /healthz HTTP/1.1\r\nx: ").await.unwrap();
    eventually("a client that drips is cut off", async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        dripping.write_all(b"a").await.is_err()
    })
    .await;
    drop(idle);
    // one connection, many requests
    let mut kept = TcpStream::connect(api.server.address()).await.unwrap();
    for _ in 0..3 {
        kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut answer = [0; 2048];
        let read = kept.read(&mut answer).await.unwrap();
        assert!(answer[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..read]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sigterm_what_is_under_way_is_answered() {
    let mut api = Api::new().await;
    let key = api.key("a", &["--role", "reader"]).await;
    let row = api.world.annotate("acct:a", "nobody indexes it").await;
    crate::common::eventually("the collections are read", async || {
        api.get(&key, &format!("/collections/annotation/keys/{row}/wait?limit=0s")).await.0 == 200
    })
    .await;
    let waiting = api.world.client.get(api.at(&format!("/api/v1/collections/annotation/keys/{row}/wait?limit=3s")));
    let waiting = tokio::spawn(answer(waiting.header("authorization", format!("Bearer {key}"))));
    // it has begun when it has been seen in the database
    crate::common::eventually("the wait has begun", async || {
        api.world.one("select exists (select from pg_stat_activity where datname = current_database() and query like '%catchword.known%' and application_name = 'catchword')").await
    })
    .await;
    api.server.signal("-TERM").await;
    let (status, waited) = waiting.await.unwrap();
    assert!(status == 200 && waited["became"] == "waiting", "{status} {waited}");
    assert!(api.server.child.wait().await.unwrap().success());
}
