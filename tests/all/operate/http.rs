//! The worker's own server: slow, hostile and many clients, by raw sockets.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{Gate, Layout, Running, World, eventually, launch, start};
use crate::operate::metrics::scrape;

/// Sends these bytes and reads to the end: the head's first line, and all.
async fn raw(worker: &Running, bytes: &[u8]) -> (String, String) {
    let mut stream = TcpStream::connect(worker.address()).await.unwrap();
    // a server that has said no may close before everything is sent
    _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.lines().next().unwrap_or_default().to_owned(), answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_get_their_status() {
    let world = World::new().await;
    let worker = start(&world).await;
    let long = format!("GET /metrics HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "a".repeat(100_000));
    for (request, status) in [
        ("GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n", "404"),
        ("GET /metrics/ HTTP/1.1\r\nhost: x\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", "405"),
        ("DELETE /healthz HTTP/1.1\r\nhost: x\r\n\r\n", "405"),
        ("GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n", "413"),
        ("POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 2000\r\n\r\n", "413"),
        (&long, "431"),
        ("nonsense\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", "200"),
        ("HEAD /metrics HTTP/1.1\r\nhost: x\r\n\r\n", "200"),
    ] {
        let (first, all) = raw(&worker, request.as_bytes()).await;
        assert!(first.contains(&format!(" {status} ")), "{request:.60}: {all:.300}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_are_slow_or_many_keep_nobody_out() {
    let world = World::new().await;
    let worker = start(&world).await;
    let mut idle = Vec::new();
    for n in 0..300 {
        let mut stream = TcpStream::connect(worker.address()).await.unwrap();
        match n % 3 {
            0 => {}
            1 => stream.write_all(b"GET /metr").await.unwrap(),
            _ => stream.write_all(b"POST /metrics HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab").await.unwrap(),
        }
        idle.push(stream);
    }
    assert_eq!(worker.get(&world, "/healthz").await.0, 200);
    assert!(scrape(&world, &worker).await.value("catchword_process_resident_memory_bytes") > 0.0);
    // each connection is closed by the worker, also one that goes on sending a byte now and then
    let mut dripping = TcpStream::connect(worker.address()).await.unwrap();
    dripping.write_all(b"GET /healthz HTTP/1.1\r\nx: ").await.unwrap();
    eventually("a client that drips is cut off", async || {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        dripping.write_all(b"a").await.is_err()
    })
    .await;
    for mut stream in idle {
        let mut rest = Vec::new();
        _ = stream.read_to_end(&mut rest).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_answers_and_says_so_while_postgres_is_away() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let mut url = url::Url::parse(&world.database_url).unwrap();
    let gate = Gate::before(&format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())).await;
    url.set_port(Some(gate.url.rsplit_once(':').unwrap().1.parse().unwrap())).unwrap();
    let worker = launch(world.binary().env("DATABASE_URL", url.as_str())).await;
    let up = "catchword_up{server=\"postgres\"}";
    let jobs = "catchword_jobs{collection=\"annotation\",state=\"due\"}";
    let seen = scrape(&world, &worker).await;
    assert_eq!((seen.value(up), seen.get(jobs)), (1.0, Some(0.0)));

    gate.refuse();
    eventually("a scrape says that Postgres is away", async || scrape(&world, &worker).await.value(up) == 0.0).await;
    let seen = scrape(&world, &worker).await;
    assert_eq!(seen.get(jobs), None, "what is not known is not said");
    assert_eq!(seen.get("catchword_jobs_scheduled_total"), None);
    assert!(seen.get("catchword_jobs_settled_total{class=\"live\",collection=\"annotation\"}").is_some());
    assert_eq!(worker.get(&world, "/healthz").await.0, 200);
    eventually("ticks fail", async || scrape(&world, &worker).await.value("catchword_passes_failed_total") > 0.0).await;
    assert_eq!(worker.get(&world, "/readyz").await.0, 503);

    gate.pass();
    eventually("it is back", async || scrape(&world, &worker).await.value(up) == 1.0).await;
    assert_eq!(scrape(&world, &worker).await.get(jobs), Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_waits_neither_for_elasticsearch_nor_for_a_lock_on_the_queue() {
    let world = World::with(Layout { gated: true, tick: "* * * * * *", ..Layout::default() }).await;
    let worker = start(&world).await;
    let elasticsearch = "catchword_up{server=\"elasticsearch\"}";
    eventually("one tick is through", async || worker.get(&world, "/readyz").await.0 == 200).await;
    assert_eq!(scrape(&world, &worker).await.value(elasticsearch), 1.0);
    world.gate.as_ref().unwrap().refuse();
    world.annotate("acct:a", "x").await;
    eventually("a scrape says that Elasticsearch is away", async || scrape(&world, &worker).await.value(elasticsearch) == 0.0).await;
    let open = "catchword_breaker_state{scope=\"cluster\"}";
    eventually("its breaker opens", async || scrape(&world, &worker).await.value(open) == 1.0).await;
    world.gate.as_ref().unwrap().pass();

    // a lock on the queue's table that is never released: the parts that need it are left out, the rest is there
    let mut blocker = world.pool.begin().await.unwrap();
    sqlx::query("lock table catchword.job in access exclusive mode").execute(&mut *blocker).await.unwrap();
    let jobs = "catchword_jobs{collection=\"annotation\",state=\"due\"}";
    eventually("the queue is left out", async || scrape(&world, &worker).await.get(jobs).is_none()).await;
    let seen = scrape(&world, &worker).await;
    assert_eq!(seen.value("catchword_up{server=\"postgres\"}"), 1.0);
    assert!(seen.get("catchword_paused{collection=\"annotation\"}").is_some());
}
