//! A real Elasticsearch, frozen with SIGSTOP under a service's traffic: writes go on, and wait for it only until the breaker opens.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use catchword::Part;
use catchword::{Catchword, Direct, Error, Stored};
use sqlx::PgConnection;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::common::{Layout, Server, World, eventually};

/// As many write through the service's HTTP, and as many as its handlers do.
const WRITERS: usize = 4;
/// How long a direct write may wait.
const LIMIT: Duration = Duration::from_secs(1);
/// How long p99 may be higher: until the breaker opens.
const RISE: Duration = Duration::from_secs(5);
/// What the rest of the machine may add to a p99, where times are judged.
const NOISE: Duration = Duration::from_millis(300);

#[derive(Clone, Copy)]
struct Write {
    started: Instant,
    took: Duration,
    /// It is known to have waited for the frozen one until its limit.
    in_vain: bool,
}

type Writes = Arc<Mutex<Vec<Write>>>;

/// Times are judged by `make test-faults`, which has the machine for itself and freezes for a minute; elsewhere counts are.
fn frozen_for() -> (Duration, bool) {
    let given = std::env::var("CATCHWORD_FREEZE_SECONDS").map(|seconds| seconds.parse().unwrap());
    (Duration::from_secs(given.clone().unwrap_or(8)), given.is_ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_elasticsearch_slows_a_service_by_a_second_and_only_until_the_breaker_opens() {
    let server = Server::start("").await;
    let world = World::with(Layout { elasticsearch: Some(server.url.clone()), tick: "* * * * * *", ..Layout::default() }).await;
    let opened = annotations::serve::open(world.catchword.config().clone(), &world.environment, Part::Worker).await.unwrap();
    let (catchword, stop) = (opened.catchword.clone(), CancellationToken::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api/annotations", listener.local_addr().unwrap());
    tokio::spawn(annotations::serve::serve(listener, opened, stop.clone()));
    // the loop shares the breakers of the service
    tokio::spawn(work(catchword.clone(), stop.clone()));

    // the writers end before the service does: one between two writes would find it gone
    let over = CancellationToken::new();
    let (writes, mut writers) = (Writes::default(), JoinSet::new());
    for _ in 0..WRITERS {
        writers.spawn(post(world.client.clone(), url.clone(), writes.clone(), over.clone()));
        writers.spawn(store(catchword.clone(), writes.clone(), over.clone()));
    }
    let (frozen_for, times_are_judged) = frozen_for();
    let calm = if times_are_judged { Duration::from_secs(10) } else { Duration::from_secs(2) };
    // a server that has just started is slow anyway
    for _ in 0..5 {
        let warm = world.annotate("acct:before", "the frost").await;
        eventually("direct writes are quick", async || catchword.index_now("annotation", [&warm]).await == Direct::Indexed).await;
    }
    writes.lock().unwrap().clear();
    let began = Instant::now();
    eventually("a while of calm", async || began.elapsed() > calm).await;

    let frozen = server.freeze();
    let at = Instant::now();
    eventually("a while of frost", async || at.elapsed() > frozen_for).await;
    drop(frozen);
    eventually("direct writes are indexed again", async || {
        let key = world.annotate("acct:after", "the frost").await;
        catchword.index_now("annotation", [key]).await == Direct::Indexed
    })
    .await;
    over.cancel();
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    stop.cancel();

    let all = writes.lock().unwrap().clone();
    // what was under way when it froze has met it
    let (before, during): (Vec<Write>, Vec<Write>) = all.into_iter().partition(|write| write.started + write.took < at);
    let during: Vec<Write> = during.into_iter().filter(|write| write.started < at + frozen_for).collect();
    let in_vain = during.iter().filter(|write| write.in_vain).count();
    let normal = p99(&before);
    println!("{} writes in {calm:?} of calm, p99 {normal:?}; {} in {frozen_for:?} of frost, {in_vain} in vain", before.len(), during.len());
    assert!(during.len() > 10 * WRITERS, "writes go on");
    // a bulk fails before its callers give up, so each caller meets three failures at most; without a breaker it were one a second each
    assert!(in_vain <= 3 * WRITERS, "{in_vain} writes waited for a frozen cluster");
    let mut raised = Duration::ZERO;
    for second in 0..frozen_for.as_secs() {
        let (from, to) = (at + Duration::from_secs(second), at + Duration::from_secs(second + 1));
        let within: Vec<Write> = during.iter().filter(|write| (from..to).contains(&write.started)).copied().collect();
        let p99 = p99(&within);
        if p99 > normal + NOISE {
            println!("second {second} of the frost: {} writes, p99 {p99:?}", within.len());
            raised = Duration::from_secs(second + 1);
        }
        assert!(!times_are_judged || p99 <= normal + LIMIT + NOISE, "second {second}: p99 {p99:?}");
    }
    assert!(!times_are_judged || raised <= RISE, "p99 was raised for {raised:?}");
    world.settle_and_compare().await;
}

async fn work(catchword: Catchword, stop: CancellationToken) {
    catchword.worker("test", &["annotation"]).run(stop).await.unwrap();
}

/// A client of the service.
async fn post(client: reqwest::Client, url: String, writes: Writes, stop: CancellationToken) {
    let body = r#"{"userid":"acct:a","target_uri":"https://test.example/page","text":"by HTTP"}"#;
    let mut clock = clock();
    while !stop.is_cancelled() {
        clock.tick().await;
        let started = Instant::now();
        let answer = client.post(&url).body(body).send().await.unwrap();
        assert_eq!(answer.status(), 201);
        writes.lock().unwrap().push(Write { started, took: started.elapsed(), in_vain: false });
    }
}

/// What a handler of the service does.
async fn store(catchword: Catchword, writes: Writes, stop: CancellationToken) {
    let insert =
        "insert into annotation (userid, text, target_uri, target_uri_normalized) values ('acct:b', 'stored', 'u', 'u') returning id";
    let mut clock = clock();
    while !stop.is_cancelled() {
        clock.tick().await;
        let started = Instant::now();
        let kept = catchword.store_and_schedule("annotation", async |tx: &mut PgConnection| {
            let key: uuid::Uuid = sqlx::query_scalar(insert).fetch_one(tx).await?;
            Ok::<_, Error>(Stored::new(Instant::now(), [key]))
        });
        let kept = kept.await.unwrap();
        // a breaker that is open repeats why it opened, but at once
        let waited = kept.value.elapsed() >= LIMIT / 2;
        let in_vain = waited && matches!(kept.direct, Direct::Left(why) if why.contains("no answer"));
        writes.lock().unwrap().push(Write { started, took: started.elapsed(), in_vain });
    }
}

/// Twenty times a second, or as often as it can.
fn clock() -> tokio::time::Interval {
    let mut clock = tokio::time::interval(Duration::from_millis(50));
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    clock
}

fn p99(writes: &[Write]) -> Duration {
    let mut took: Vec<Duration> = writes.iter().map(|write| write.took).collect();
    took.sort_unstable();
    took.get((took.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}
