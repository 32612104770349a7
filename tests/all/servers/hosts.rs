//! Several hosts in DATABASE_URL: a primary and its standby, which takes over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catchword::{Catchword, Error, Stored};
use sqlx::{PgConnection, PgPool};
use url::Url;
use uuid::Uuid;

use crate::common::{Layout, World, environment, eventually, launch};
use crate::faults::restore::Server;

/// The world's database on one server.
fn on(server: &Server, world: &World) -> Url {
    let mut url = Url::parse(&server.url).unwrap();
    // the standby has the primary's passwords
    let of_the_world = Url::parse(&world.database_url).unwrap();
    url.set_password(of_the_world.password()).unwrap();
    url.set_path(of_the_world.path());
    url
}

/// Several addresses that differ in their hosts, as one.
fn all(urls: &[&Url]) -> String {
    let hosts: Vec<String> = urls.iter().map(|url| format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())).collect();
    let first = &hosts[0];
    urls[0].to_string().replace(&format!("@{first}/"), &format!("@{}/", hosts.join(",")))
}

async fn run(world: &World, url: &str, words: &[&str]) -> (i32, String) {
    let output = world.binary().env("DATABASE_URL", url).args(words).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    (output.status.code().unwrap(), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_hosts_the_one_that_can_be_written_to_is_used_and_after_a_failover_the_other() {
    let (primary, standby) = (Server::start().await, Server::start().await);
    let layout = Layout { postgres: Some(primary.url.clone()), tick: "* * * * * *", quick: "25ms", ..Layout::default() };
    let world = World::with(layout).await;
    let key = world.in_step("acct:a", "before").await;
    world.pool.close().await;
    standby.follow(&primary, "").await;
    standby.up().await;
    let (one, two) = (on(&primary, &world), on(&standby, &world));
    let given = all(&[&nobody_like(&one), &two, &one]) + "?target_session_attrs=read-write&connect_timeout=3";

    // nobody is at the first, the second is a standby
    for words in [&["status"][..], &["sync"], &["check"], &["journal"]] {
        let (code, said) = run(&world, &given, words).await;
        assert!(code < 2, "{words:?}: {said}");
    }
    let (code, said) = run(&world, &given, &["doctor", "--all"]).await;
    assert!(code == 0 && said.contains("it is the primary"), "{code} {said}");
    let (code, said) = run(&world, &all(&[&nobody_like(&one), &two]), &["journal"]).await;
    assert!(code == 2 && said.contains("no host of DATABASE_URL can be written to: ") && said.contains("is a standby"), "{code} {said}");

    let worker = launch(world.binary().env("DATABASE_URL", &given)).await;
    let there = environment(&given, &world.elasticsearch, &world.prefix);
    let catchword = Catchword::connect(world.catchword.config().clone(), &there).await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn(write(catchword, over.clone()));
    let before = PgPool::connect(one.as_str()).await.unwrap();
    let rows = async |pool: &PgPool| sqlx::query_scalar::<_, i64>("select count(*) from annotation").fetch_one(pool).await.unwrap();
    eventually("rows are written", async || rows(&before).await > 30).await;
    let kept = async || worker.lines().iter().filter(|line| line.contains("keeps the quick lane")).count();
    eventually("the quick lane is kept", async || kept().await == 1).await;
    // a server that is stopped sends a standby all that it has first
    let streams = "select count(*) from pg_stat_replication where state = 'streaming'";
    eventually("the standby follows", async || sqlx::query_scalar::<_, i64>(streams).fetch_one(&before).await.unwrap() == 1).await;
    before.close().await;
    primary.down().await;

    let after = PgPool::connect(two.as_str()).await.unwrap();
    assert!(sqlx::query_scalar::<_, bool>("select pg_promote()").fetch_one(&after).await.unwrap());
    let count = rows(&after).await;
    eventually("rows are written to the other", async || rows(&after).await > count + 30).await;
    eventually("the quick lane is kept there", async || kept().await == 2).await;
    over.store(true, Ordering::Relaxed);
    let stored = writing.await.unwrap();
    let open = "select count(*) from catchword.job where collection = 'annotation'";
    eventually("everything is settled", async || sqlx::query_scalar::<_, i64>(open).fetch_one(&after).await.unwrap() == 0).await;
    eprintln!("{stored} stored");
    let found = format!("/{}annotation/_search?q=_id:{key}", world.prefix);
    let (_, found) = world.http("GET", &found, None).await;
    assert_eq!(found["hits"]["total"]["value"], 1, "{found}");
    // the worker's own audit, which the other server asked for, may be under way
    eventually("both sides agree", async || run(&world, &given, &["audit", "annotation"]).await.0 == 0).await;
    let (code, said) = run(&world, &given, &["status"]).await;
    assert!(code < 2, "{said}");
    let moved = worker.lines().iter().filter(|line| line.contains("is used from now on")).count();
    assert_eq!(moved, 1, "once after the failover: {:#?}", worker.lines());
    // the world is swept away where it was made
    after.close().await;
    primary.up().await;
}

/// The same address at a port where nobody is.
fn nobody_like(url: &Url) -> Url {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut url = url.clone();
    url.set_port(Some(free)).unwrap();
    url
}

/// Stores like a service does, whatever Postgres answers; how many were stored.
async fn write(catchword: Catchword, over: Arc<AtomicBool>) -> usize {
    let mut stored = 0;
    while !over.load(Ordering::Relaxed) {
        let kept = catchword.store_and_schedule("annotation", async |tx: &mut PgConnection| {
            let insert = "insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u') returning id";
            let id: Uuid = sqlx::query_scalar(insert).fetch_one(tx).await?;
            Ok::<_, Error>(Stored::new(id, [id]))
        });
        match kept.await {
            Ok(_) => stored += 1,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    stored
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connect_timeout_ends_the_wait_for_a_silent_server() {
    let world = World::new().await;
    let (_, silent) = world.postgres_away().await.into_iter().find(|(kind, _)| *kind == "silent").unwrap();
    for words in [&["journal"][..], &["sync"]] {
        let started = std::time::Instant::now();
        let (code, said) = run(&world, &format!("{silent}?connect_timeout=1"), words).await;
        let took = started.elapsed();
        assert!(code == 2 && said.contains("cannot reach Postgres: no answer in time"), "{code} {said}");
        assert!(took < Duration::from_secs(8), "{words:?} took {took:?}, and without connect_timeout it would be 10 s");
    }
    // a silent host is left for the next one
    let (silent, good) = (Url::parse(&silent).unwrap(), Url::parse(&world.database_url).unwrap());
    let (code, said) = run(&world, &format!("{}?connect_timeout=1", all(&[&silent, &good])), &["status"]).await;
    assert!(code < 2, "{said}");
}
