//! An application that may do nothing but connect takes every advisory lock that catchword uses. Nothing that must go on waits for it, and
//! what waits says who it is.

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::common::{Layout, World, eventually, launch};
use crate::operate::roles::{INSERT, Roles};

#[tokio::test(flavor = "multi_thread")]
async fn an_application_cannot_stop_anything_with_a_lock() {
    let roles = Roles::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let world = &roles.world;
    let mut application = PgConnection::connect(&roles.url("application")).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(INSERT)).execute(&mut application).await.unwrap();
    // an audit that a worker is to run
    world.sql("select catchword.ask_audit('annotation', false, 'another server')").await;
    let audit: i64 = world.one("select max(id) from catchword.audit").await;
    for key in [
        "catchword.revision".to_owned(),
        "catchword.attach".to_owned(),
        "catchword.migrate".to_owned(),
        "catchword.rebuild annotation".to_owned(),
        format!("catchword.audit.{audit}"),
    ] {
        sqlx::query("select pg_advisory_lock(hashtextextended($1, 0))").bind(key).execute(&mut application).await.unwrap();
    }
    let holder = format!("of role {}", roles.names.of("application"));

    let worker = launch(world.binary().env("DATABASE_URL", roles.url("worker"))).await;
    eventually("ticks go on", async || world.jobs().await == 0 && worker.get(world, "/readyz").await.0 == 200).await;
    eventually("the worker names who holds its audit", async || {
        worker.lines().iter().any(|line| line.contains(&format!("audit {audit} waits")) && line.contains(&holder))
    })
    .await;

    let run = async |role: &str, words: &[&str]| {
        let output = world.binary().env("DATABASE_URL", roles.url(role)).args(words).output().await.unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout))
    };
    for words in [
        &["sync", "--drain"][..],
        &["reindex", "annotation", "--all", "--rewrite", "--yes"],
        &["sync", "--drain"],
        &["audit", "annotation"],
    ] {
        let (code, said) = run("worker", words).await;
        assert_eq!(code, Some(0), "{words:?}: {said}");
    }
    // a number above all that were given: the sequence is raised although "its" lock is held
    sqlx::query("select catchword.raise_revision(1000)").execute(&world.pool).await.unwrap();
    for (role, words) in [("worker", &["rebuild", "annotation", "--keep", "0s", "--yes"][..]), ("migrator", &["migrate"])] {
        let (code, said) = run(role, words).await;
        assert!(code == Some(2) && said.contains(&holder) && said.contains("pg_terminate_backend"), "{words:?}: {code:?} {said}");
    }
    drop(application);
    eventually("migrate goes on when the lock is free", async || run("migrator", &["migrate"]).await.0 == Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_migrates_take_turns() {
    let world = World::with(Layout { migrated: false, ..Layout::default() }).await;
    let (one, two) = tokio::join!(world.run(&["migrate"]), world.run(&["migrate"]));
    assert_eq!((one.0, two.0), (0, 0), "{one:?} {two:?}");
}
