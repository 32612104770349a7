//! Nothing hangs for ever: transactions end, a worker stops when told to, and one that cannot work says so and goes on later.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio_util::sync::CancellationToken;

use crate::common::{Layout, World, eventually, start};

/// On a server before 17 nothing but the worker itself ends a transaction that goes from one slow statement to the next. The newer
/// server's own limit lies behind the worker's, so that it is the worker's that is seen here.
#[tokio::test(flavor = "multi_thread")]
async fn no_transaction_is_older_than_a_minute_when_every_row_is_slow() {
    let world = World::with(Layout {
        sql: "create table slow (id integer primary key, catchword_revision bigint);
              comment on column slow.catchword_revision is 'catchword: revision';
              create view slow_document as select id as key, catchword_revision as revision,
                json_build_object('text', pg_sleep(3)::text) as body from slow;"
            .into(),
        more: "[[collection]]\nname = \"slow\"\ntable = \"slow\"\nkey = \"id\"\nview = \"slow_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n".into(),
        ..Layout::default()
    })
    .await;
    world.sql("insert into slow select generate_series(1, 50)").await;
    let working = world.catchword.clone();
    let pass = tokio::spawn(async move { working.sync("test", &["slow"]).await });
    let age = "select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8 from pg_stat_activity
                where datname = current_database() and application_name = 'catchword'";
    let mut oldest: f64 = 0.0;
    eventually("the pass ends", async || {
        oldest = oldest.max(world.one::<f64>(age).await);
        pass.is_finished()
    })
    .await;
    let outcome = pass.await.unwrap().expect("the server did not have to end it");
    println!("the oldest transaction was {oldest:.0} s old; {outcome}");
    assert!(oldest < 60.0, "{oldest} s");
    // what was found is charged and out of the way; what there was no time for is not
    assert!(outcome.pushed_back > 0 && outcome.left > 0, "{outcome}");
    assert_eq!((outcome.pushed_back + outcome.left, outcome.settled), (50, 0), "{outcome}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_a_batch_that_hangs_within_25_seconds_and_a_second_one_at_once() {
    let world = World::with(Layout { gated: true, tick: "* * * * * *", ..Layout::default() }).await;
    let gate = world.gate.as_ref().unwrap();
    let (mut patient, mut hurried) = (start(&world).await, start(&world).await);
    for worker in [&patient, &hurried] {
        eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    }
    gate.hold("_bulk");
    // for a second: every transaction is idle for a moment
    let claimed = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'catchword' and state = 'idle in transaction' and state_change < now() - interval '1 second'";
    for n in 1..=2 {
        world.annotate("acct:a", "x").await;
        eventually("a batch hangs", async || world.one::<i64>(claimed).await >= n).await;
    }
    patient.signal("-TERM").await;
    // two signals that come together are one: so it is told again and again
    eventually("the second signal ends it", async || {
        let ended = hurried.child.try_wait().unwrap();
        match ended {
            Some(status) => status.code() == Some(0),
            None => {
                hurried.signal("-TERM").await;
                false
            }
        }
    })
    .await;
    assert!(patient.child.try_wait().unwrap().is_none(), "one signal lets a batch finish");
    let ended = tokio::time::timeout(Duration::from_secs(40), patient.child.wait()).await;
    assert_eq!(ended.expect("25 s, and as much for a busy machine").unwrap().code(), Some(0));
    eventually("its jobs are free", async || world.one::<i64>(claimed).await == 0).await;
    gate.pass();
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_takes_every_connection_it_is_given_stops_no_worker() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let (worker, stop) = (world.catchword.worker("test", &["annotation"]), CancellationToken::new());
    let running = tokio::spawn({
        let (worker, stop) = (worker.clone(), stop.clone());
        async move { worker.run(stop).await }
    });
    eventually("it works", async || worker.trouble().is_none()).await;
    let mut taken = Vec::new();
    while let Ok(Ok(connection)) = tokio::time::timeout(Duration::from_secs(3), world.catchword.pool().acquire()).await {
        taken.push(connection);
    }
    let key = world.annotate("acct:a", "x").await;
    eventually("it goes on", async || world.version("annotation", &key).await.is_some()).await;
    assert!(worker.is_alive() && !running.is_finished());
    drop(taken);
    stop.cancel();
    running.await.unwrap().unwrap();
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_more_connections_stops_no_worker() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let mut worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    let (database, given) = (world.one::<String>("select current_database()::text").await, std::env::var("DATABASE_URL").unwrap());
    let mut server = PgConnection::connect(&given).await.unwrap();
    let mut takes_connections = async |yes: bool| {
        let sql = format!("alter database {database} allow_connections {yes}");
        sqlx::query(AssertSqlSafe(sql)).execute(&mut server).await.unwrap();
    };
    let key = world.annotate("acct:a", "x").await;
    takes_connections(false).await;
    // from outside: the world's own connections may be gone too
    let mut outside = PgConnection::connect(&given).await.unwrap();
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = $1 and application_name = 'catchword'";
    eventually("cut off, and it says so", async || {
        sqlx::query(cut).bind(&database).execute(&mut outside).await.unwrap();
        worker.get(&world, "/readyz").await.0 == 503
    })
    .await;
    assert!(worker.child.try_wait().unwrap().is_none(), "it never exits");
    takes_connections(true).await;
    eventually("ready again", async || worker.get(&world, "/readyz").await.0 == 200).await;
    eventually("and at work", async || world.version("annotation", &key).await.is_some()).await;
    world.settle_and_compare().await;
}
