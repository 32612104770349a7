//! Postgres put back, failed over, restarted: on a server of the test's own, because the others share theirs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catchword::Stored;
use serde_json::{Value, json};
use sqlx::PgConnection;
use tokio::process::{Child, Command};
use uuid::Uuid;

use crate::common::{Layout, World, eventually};

/// A Postgres whose data folder the test may copy and put back.
pub struct Server {
    state: PathBuf,
    pub url: String,
}

impl Server {
    pub async fn start() -> Server {
        let state = std::env::temp_dir().join(format!("catchword-restore-{}", Uuid::new_v4().simple()));
        let mut server = Server { state, url: String::new() };
        server.up().await;
        server.url = server.recall("postgres.url");
        server
    }

    pub async fn up(&self) {
        self.services(&["up", "--only", "postgres"]).await;
    }

    pub async fn down(&self) {
        self.services(&["down", "--only", "postgres"]).await;
    }

    /// Stops both and makes this one a standby of the other, under settings that follow its address; only the other is started again.
    pub async fn follow(&self, primary: &Server, settings: &str) {
        self.down().await;
        primary.down().await;
        std::fs::remove_dir_all(self.data()).unwrap();
        run("cp", &["-a".as_ref(), primary.data().as_os_str(), self.data().as_os_str()]).await;
        primary.up().await;
        std::fs::copy(primary.state.join("postgres.password"), self.state.join("postgres.password")).unwrap();
        run("touch", &[self.data().join("standby.signal").as_os_str()]).await;
        let conf = self.data().join("postgresql.auto.conf");
        let before = std::fs::read_to_string(&conf).unwrap();
        std::fs::write(&conf, format!("{before}\nprimary_conninfo = '{}'\n{settings}\n", primary.url)).unwrap();
    }

    async fn services(&self, words: &[&str]) {
        let output = self.command(words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "scripts/services {words:?}: {said}");
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/services"));
        command.args(words).env("CATCHWORD_SERVICES", &self.state).env_remove("DATABASE_URL");
        // an ordinary process also where Docker is: a container's data folder is out of reach
        command.env("DOCKER_HOST", "tcp://127.0.0.1:1");
        command
    }

    pub fn recall(&self, name: &str) -> String {
        std::fs::read_to_string(self.state.join(name)).unwrap().trim().to_owned()
    }

    fn data(&self) -> PathBuf {
        Path::new(&self.recall("servers")).join(format!("postgres-{}", self.recall("postgres.version")))
    }

    fn kept(&self) -> PathBuf {
        self.data().with_extension("kept")
    }

    /// Copies the data of the stopped server.
    async fn keep(&self) {
        run("cp", &["-a".as_ref(), self.data().as_os_str(), self.kept().as_os_str()]).await;
    }

    /// Puts the copy in the place of the stopped server's data.
    async fn put_back(&self) {
        std::fs::remove_dir_all(self.data()).unwrap();
        std::fs::rename(self.kept(), self.data()).unwrap();
    }
}

async fn run(program: &str, words: &[&std::ffi::OsStr]) {
    assert!(Command::new(program).args(words).status().await.unwrap().success(), "{program} {words:?}");
}

/// Ends the server and deletes its data, also after a panic.
impl Drop for Server {
    fn drop(&mut self) {
        _ = self.command(&["down", "--wipe", "--only", "postgres"]).as_std_mut().status();
        _ = std::fs::remove_dir_all(&self.state);
    }
}

/// A worker of the real binary, with what it has said so far.
struct Worker {
    child: Child,
    log: PathBuf,
}

impl Worker {
    fn start(world: &World) -> Worker {
        let log = world.folder.join(format!("worker-{}.log", Uuid::new_v4().simple()));
        let mut command = world.binary();
        command.args(["worker", "--listen", "127.0.0.1:0", "--log", "json"]);
        command.stderr(Stdio::from(std::fs::File::create(&log).unwrap()));
        Worker { child: command.spawn().unwrap(), log }
    }

    /// How many lines it has said with this text.
    fn said(&self, text: &str) -> usize {
        self.log().lines().filter(|line| line.contains(text)).count()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The most memory it ever had, in MB.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }
}

async fn succeeds(world: &World, words: &[&str]) -> String {
    let (code, said, wrong) = world.run(words).await;
    assert_eq!(code, 0, "catchword {words:?}: {said}{wrong}");
    said
}

async fn dead(world: &World) -> Vec<String> {
    world.all("select concat_ws(' ', key, reason, last_error) from catchword.dead_job").await
}

const EVERY_SECOND: &str = "* * * * * *";

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_lost_commits_is_overtaken_and_no_number_is_given_twice() {
    let server = Server::start().await;
    let world = World::with(Layout { postgres: Some(server.url.clone()), ..Layout::default() }).await;
    let reused = world.in_step("acct:a", "its next number will be given twice").await;
    let updated = world.in_step("acct:a", "before").await;
    let deleted = world.in_step("acct:a", "deleted, but that is lost").await;
    let hidden = world.in_step("acct:a", "hidden, and shown again, but that is lost").await;
    let back = world.in_step("acct:a", "deleted, and inserted again, but that is lost").await;
    let calm = world.in_step("acct:a", "nothing happens to it").await;
    world.sql(&format!("update annotation set deleted = true where id = '{hidden}'; delete from annotation where id = '{back}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();

    server.down().await;
    server.keep().await;
    server.up().await;
    // from here on everything is lost: first what direct writes bring to the index, then what a worker does
    world.sql(&format!("update annotation set text = 'lost' where id = '{reused}'")).await;
    world.catchword.index_now("annotation", [&reused]).await;
    world
        .sql(&format!(
            "update annotation set text = 'lost' where id = '{updated}';
             delete from annotation where id = '{deleted}';
             update annotation set deleted = false where id = '{hidden}';
             insert into annotation (id, userid, target_uri, target_uri_normalized) values ('{back}', 'acct:a', 'u', 'u')"
        ))
        .await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let never = [world.annotate("acct:a", "lost").await, world.annotate("acct:a", "lost").await];
    world.catchword.index_now("annotation", &never).await;
    world.sql(&format!("update annotation set text = 'lost again' where id = '{updated}'")).await;
    world.catchword.index_now("annotation", [&updated]).await;
    let seen = world.everything_in_the_index().await;

    server.down().await;
    server.put_back().await;
    server.up().await;
    for (key, (version, _)) in &seen {
        let before: i64 = world.one(&format!("select coalesce(max(catchword_revision), 0) from annotation where id = '{key}'")).await;
        assert!(*version > before || *key == calm, "{key}: the index is ahead");
    }
    // an application that was faster than the worker draws a number that was given before: equal numbers, other documents
    world.sql(&format!("update annotation set text = 'after the restore' where id = '{reused}'")).await;
    assert_eq!(world.revision(&reused).await, seen[&reused].0);

    // from the first tick on no number is given twice, although a worker has jumped from the same number before
    succeeds(&world, &["sync", "annotation"]).await;
    let highest = seen.values().map(|(version, _)| *version).max().unwrap();
    world.sql(&format!("update annotation set text = 'after the tick' where id = '{calm}'")).await;
    assert!(world.revision(&calm).await > highest);

    // Ahead, with a row and without one. A document whose row never was is found by nothing but an audit: its key is named by hand.
    succeeds(&world, &["reindex", "annotation", "--all", "--hidden", "--yes"]).await;
    succeeds(&world, &["reindex", "annotation", "--ids", &never[0], &never[1], "--hidden", "--yes"]).await;
    let said: Value = serde_json::from_str(&succeeds(&world, &["sync", "annotation", "--drain", "--json"]).await).unwrap();
    assert_eq!((&said["verdicts"]["ahead"], &said["buried"]), (&json!(4), &json!(0)), "{said}");
    for key in [&updated, &deleted, &calm] {
        assert_eq!(world.version("annotation", key).await, Some(world.revision(key).await));
    }
    let mut found = vec![reused.clone(), updated.clone(), deleted.clone(), calm.clone()];
    found.sort();
    assert_eq!(world.found("annotation").await, found, "what was never committed is gone");
    assert_eq!(world.source("annotation", &reused).await.unwrap()["text"], "lost", "no comparison of numbers can see it");

    // so an operator is told to write everything again, under numbers that were never given
    succeeds(&world, &["reindex", "annotation", "--all", "--rewrite", "--hidden", "--yes"]).await;
    succeeds(&world, &["sync", "annotation", "--drain"]).await;
    world.both_sides_agree().await;
    assert_eq!(world.jobs().await, 0);
    assert_eq!(dead(&world).await, Vec::<String>::new());

    for key in [&reused, &updated, &deleted, &hidden, &calm] {
        world.sql(&format!("update annotation set text = 'a new write' where id = '{key}'")).await;
        assert!(world.revision(key).await > highest);
    }
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.both_sides_agree().await;
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_refused_and_a_switched_timeline_raises_the_sequence_once() {
    let server = Server::start().await;
    let world = World::with(Layout { postgres: Some(server.url.clone()), tick: EVERY_SECOND, ..Layout::default() }).await;
    let key = world.in_step("acct:a", "before").await;
    let mut worker = Worker::start(&world);
    eventually("it shows itself", async || world.one::<i64>("select count(*) from catchword.worker").await == 1).await;
    let before: i64 = world.one("select last_value from catchword.revision").await;

    // the same address now leads to a standby
    server.down().await;
    run("touch", &[server.data().join("standby.signal").as_os_str()]).await;
    server.up().await;
    const SENTENCE: &str = "this Postgres is a standby; set DATABASE_URL to the primary";
    for words in
        [&["migrate"][..], &["sync"], &["status"], &["reindex", "annotation", "--all", "--yes"], &["worker", "--listen", "127.0.0.1:0"]]
    {
        let (code, _, said) = world.run(words).await;
        assert!(code == 2 && said.contains(SENTENCE), "{words:?}: {code} {said}");
    }
    let (code, said, _) = world.run(&["check"]).await;
    assert!(code == 2 && said.contains("unknown  CatchwordPostgresDown: ") && said.contains(SENTENCE), "{code} {said}");
    let (code, said, _) = world.run(&["doctor"]).await;
    assert!(code == 1 && said.lines().any(|line| line.contains("primary") && line.contains("this is a standby")), "{code} {said}");
    eventually("the worker that runs says so too", async || worker.said(SENTENCE) > 0).await;
    assert_eq!(world.one::<i64>("select last_value from catchword.revision").await, before);

    assert!(world.one::<bool>("select pg_promote()").await);
    let raised = "select count(*) from catchword.journal where what = 'raise' and detail like 'another server or timeline%'";
    eventually("the worker notices", async || world.one::<i64>(raised).await == 1).await;
    let after = world.annotate("acct:a", "after").await;
    let revision = world.revision(&after).await;
    assert!(revision > before + (1 << 40) && revision % 2 == 0, "{before} -> {revision}");
    let first: f64 = world.one("select extract(epoch from seen_at)::float8 from catchword.installation").await;
    eventually("further ticks", async || {
        world.one::<f64>("select extract(epoch from seen_at)::float8 from catchword.installation").await > first + 1.5
    })
    .await;
    assert_eq!(world.one::<i64>(raised).await, 1);
    assert!(worker.runs());
    assert_eq!(worker.said("commits may be lost"), 1, "{}", worker.log());
    assert_eq!(worker.said(SENTENCE), 1, "{}", worker.log());

    succeeds(&world, &["reindex", "annotation", "--all", "--rewrite", "--hidden", "--yes"]).await;
    eventually("everything is written again", async || world.jobs().await == 0).await;
    assert!(world.version("annotation", &key).await > Some(before + (1 << 40)));
    world.both_sides_agree().await;
    assert_eq!(dead(&world).await, Vec::<String>::new());
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_that_is_raised_while_writers_draw_gives_no_number_twice() {
    let world = World::new().await;
    let over = Arc::new(AtomicBool::new(false));
    let mut raising = Vec::new();
    for _ in 0..4 {
        let pool = world.pool.clone();
        raising.push(tokio::spawn(async move {
            for _ in 0..150 {
                // below, at and above what was drawn last
                let sql = "select v, catchword.raise_revision(v), nextval('catchword.revision')
                             from (select last_value + (random() * 4000000)::bigint - 2000000 as v from catchword.revision) as somewhere";
                let (above, raised, next): (i64, bool, i64) = sqlx::query_as(sql).fetch_one(&pool).await.unwrap();
                assert!(raised && next > above, "{next} after a raise above {above}");
            }
        }));
    }
    let mut drawing = Vec::new();
    for _ in 0..8 {
        let (pool, over) = (world.pool.clone(), over.clone());
        drawing.push(tokio::spawn(async move {
            let mut session = pool.acquire().await.unwrap();
            let mut drawn: Vec<i64> = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let sql = "select nextval('catchword.revision') from generate_series(1, 50)";
                drawn.extend(sqlx::query_scalar::<_, i64>(sql).fetch_all(&mut *session).await.unwrap());
            }
            drawn
        }));
    }
    for raising in raising {
        raising.await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    for drawing in drawing {
        let drawn = drawing.await.unwrap();
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]), "it went back within a session");
        all.extend(drawn);
    }
    let count = all.len();
    assert!(count > 1_000 && all.iter().all(|number| number % 2 == 0));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "numbers were given twice");
    eprintln!("{count} numbers drawn, 600 raises");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_restarts_under_a_worker_and_direct_writers_loses_nothing() {
    let server = Server::start().await;
    let world = World::with(Layout { postgres: Some(server.url.clone()), tick: EVERY_SECOND, ..Layout::default() }).await;
    let mut worker = Worker::start(&world);
    let over = Arc::new(AtomicBool::new(false));
    let writing: Vec<_> = (0..4).map(|_| tokio::spawn(write(world.catchword.clone(), over.clone()))).collect();
    let rows = "select count(*) from annotation";
    eventually("rows are written", async || world.one::<i64>(rows).await > 50).await;

    server.services(&["restart", "postgres"]).await;
    let before: i64 = world.one(rows).await;
    eventually("rows are written again", async || world.one::<i64>(rows).await > before + 50).await;
    world.intent_is_durable().await;

    // away for longer than a tick waits for a connection
    server.down().await;
    eventually("the worker says what is wrong", async || worker.said("no connection to Postgres within 10 s") > 0).await;
    server.up().await;
    let before: i64 = world.one(rows).await;
    eventually("rows are written again", async || world.one::<i64>(rows).await > before + 50).await;
    eventually("the worker resumes", async || worker.said("ticks succeed again") > 0).await;
    over.store(true, Ordering::Relaxed);
    let mut stored = 0;
    for writing in writing {
        stored += writing.await.unwrap();
    }

    eventually("everything is settled", async || world.jobs().await == 0).await;
    assert!(worker.runs());
    let log = worker.log();
    let troubles: Vec<&str> = log.lines().filter(|line| line.contains("the tick failed")).collect();
    assert!(troubles.len() <= 6, "{troubles:#?}");
    eprintln!("{stored} stored; {troubles:#?}");
    world.both_sides_agree().await;
    assert_eq!(dead(&world).await, Vec::<String>::new());
    world.noise_is_untouched().await;
}

/// Inserts, updates and deletes like a service does, whatever Postgres answers; how many were stored.
async fn write(catchword: catchword::Catchword, over: Arc<AtomicBool>) -> usize {
    let (mut stored, mut n) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        n += 1;
        let sql = match n % 5 {
            0 => {
                "delete from annotation where id = (select id from annotation order by random() limit 1 for update skip locked) returning id"
            }
            1 | 2 => {
                "update annotation set text = text || '.' where id = (select id from annotation order by random() limit 1 for update skip locked) returning id"
            }
            _ => "insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u') returning id",
        };
        let kept = catchword.store_and_schedule("annotation", async |connection: &mut PgConnection| {
            let ids: Vec<Uuid> = sqlx::query_scalar(sql).fetch_all(connection).await.map_err(catchword::Error::from)?;
            Ok::<_, catchword::Error>(Stored::new((), ids))
        });
        match kept.await {
            Ok(_) => stored += 1,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    stored
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_150_mb_among_others_costs_the_worker_no_memory() {
    let world = World::with(Layout { tick: EVERY_SECOND, ..Layout::default() }).await;
    world
        .sql("insert into annotation (userid, text, target_uri, target_uri_normalized)
              select 'acct:' || i, case when i = 300 then repeat('0123456789', 15000000) when i % 7 < 2 then repeat('abcdefghi ', 20000) else 'small' end, 'u', 'u'
                from generate_series(1, 701) i")
        .await;
    let mut worker = Worker::start(&world);
    let rest = "select count(*) from catchword.job j join annotation a on a.id::text = j.key where a.userid <> 'acct:300'";
    for left in [400, 0] {
        eventually("the rest flows", async || world.one::<i64>(rest).await <= left).await;
    }
    assert!(worker.runs());
    let large = "select concat_ws(' ', reason, userid) from catchword.dead_job d join annotation a on a.id::text = d.key";
    eventually("the large one is refused", async || world.all::<String>(large).await == ["too_large acct:300"]).await;
    let charged = "select count(*) from catchword.job where collection = 'annotation' and attempts > 0";
    assert_eq!(world.one::<i64>(charged).await, 0);
    assert_eq!(world.found("annotation").await.len(), 700);
    let peak = worker.peak();
    eprintln!("peak of the worker: {peak} MB");
    assert!(peak < 200, "{peak} MB");
    world.noise_is_untouched().await;
}
