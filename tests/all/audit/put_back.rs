//! A database that was put back on the same server gives its numbers again; a copy of one has no business in the original's indices.

use catchword::Catchword;
use catchword::upkeep::Upkeep;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio_util::sync::CancellationToken;

use crate::common::{World, environment, eventually};

/// A copy of a world's database on the same server. It is dropped with this, also after a panic.
struct Copy {
    name: String,
    url: String,
}

impl Copy {
    async fn of(world: &World) -> Copy {
        let name = format!("{}_copy", database(world).await);
        let mut url = url::Url::parse(&world.database_url).unwrap();
        url.set_path(&name);
        let copy = Copy { url: url.to_string(), name };
        let original = database(world).await;
        let mut server = server().await;
        // a database is copied while nobody is in it
        eventually("the database is copied", async || {
            run(&mut server, &format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{original}'"))
                .await
                .unwrap();
            run(&mut server, &format!("create database {} template {original}", copy.name)).await.is_ok()
        })
        .await;
        eventually("the original is reached again", async || world.catchword.drain("test", &["annotation"]).await.is_ok()).await;
        copy
    }

    /// In the place of the original, which is dropped.
    async fn put_back(self, world: &World) {
        let original = database(world).await;
        let mut server = server().await;
        run(&mut server, &format!("drop database {original} with (force)")).await.unwrap();
        run(&mut server, &format!("alter database {} rename to {original}", self.name)).await.unwrap();
    }

    fn environment(&self, world: &World, prefix: &str) -> catchword::config::Environment {
        environment(&self.url, &world.elasticsearch, prefix)
    }

    async fn sql(&self, sql: &str) {
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
    }

    async fn binary(&self, world: &World, prefix: &str, words: &[&str]) -> (i32, String) {
        let output =
            world.binary().env("DATABASE_URL", &self.url).env("CATCHWORD_INDEX_PREFIX", prefix).args(words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap(), said)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let name = self.name.clone();
        let swept = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                run(&mut server().await, &format!("drop database if exists {name} with (force)")).await.unwrap();
            });
        });
        _ = swept.join();
    }
}

async fn server() -> PgConnection {
    PgConnection::connect(&std::env::var("DATABASE_URL").unwrap()).await.unwrap()
}

async fn run(server: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(server).await.map(|_| ())
}

async fn database(world: &World) -> String {
    url::Url::parse(&world.database_url).unwrap().path().trim_start_matches('/').to_owned()
}

/// Rounds and passes until every audit that was asked for has come to its end and nothing is left to do.
async fn healed(world: &World) {
    let mut upkeep = world.catchword.upkeep(&["annotation"]);
    eventually("the audits have come to their end", async || {
        world.sql("update catchword.sentinel set renewed_at = renewed_at - interval '1 minute'").await;
        upkeep.round(&CancellationToken::new()).await.unwrap();
        world.catchword.drain("test", &["annotation"]).await.unwrap();
        world.one::<i64>("select count(*) from catchword.audit where finished_at is null and collection = 'annotation'").await == 0
            && world.jobs().await == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_put_back_on_its_server_gives_no_number_twice_for_long() {
    let world = World::new().await;
    let mut keys = Vec::new();
    for n in 0..20 {
        keys.push(world.annotate("acct:a", &format!("first {n}")).await);
    }
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let copy = Copy::of(&world).await;
    world.sql("update annotation set text = 'WRONG'").await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let wrong = world.version("annotation", &keys[0]).await;

    copy.put_back(&world).await;
    world.sql("update annotation set text = 'RIGHT'").await;
    assert_eq!(Some(world.revision(&keys[0]).await), wrong, "the same number for another document");
    eventually("it is reached again", async || world.catchword.drain("test", &["annotation"]).await.is_ok()).await;
    let journal: Vec<String> = world.all("select detail from catchword.journal where what = 'raise'").await;
    assert!(journal.iter().any(|detail| detail.starts_with("the database was put back: its oid is ")), "{journal:?}");
    let asked: bool = world.one("select bool_and(content and repair and whole) from catchword.audit where reason = 'another server'").await;
    assert!(asked);
    healed(&world).await;
    for key in &keys {
        assert_eq!(world.source("annotation", key).await.unwrap()["text"], json!("RIGHT"));
    }
    // it is noticed once
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.one::<i64>("select count(*) from catchword.journal where detail like '%put back%'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_that_is_put_back_into_its_database_is_noticed_by_the_oid_of_our_tables() {
    let world = World::new().await;
    world.in_step("acct:a", "x").await;
    // as it stands after a dump: the row remembers the table that it was in
    world.sql("update catchword.installation set relation_oid = relation_oid::bigint + 1").await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let why: String = world.one("select detail from catchword.journal where what = 'raise' order by id desc limit 1").await;
    assert!(why.starts_with("the schema catchword was put back"), "{why}");
    assert!(world.one::<bool>("select exists (select from catchword.audit where content and reason = 'another server')").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_that_this_database_never_sent_tells_that_it_went_back() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    let mut upkeep = world.catchword.upkeep(&["annotation"]);
    let round = async |upkeep: &mut Upkeep| {
        world.sql("update catchword.sentinel set renewed_at = renewed_at - interval '1 minute'").await;
        upkeep.round(&CancellationToken::new()).await.unwrap();
    };
    round(&mut upkeep).await;
    round(&mut upkeep).await;
    let doubts = "select count(*) from catchword.installation where doubt is not null";
    let raises = "select count(*) from catchword.journal where what = 'raise' and detail like '%never sent%'";

    // what was sent and not acknowledged in time is known all the same
    world.sql("update catchword.sentinel set tried = array[revision], revision = revision - 2").await;
    round(&mut upkeep).await;
    assert_eq!(world.one::<i64>(doubts).await, 0);

    // as if the last minute of Postgres were gone: other content stands under the number that the row draws again
    world.sql("update catchword.sentinel set tried = '{}', revision = revision - 2").await;
    let version = world.version("annotation", &key).await.unwrap();
    world.http("DELETE", &format!("/{}/_doc/{key}", world.index("annotation")), None).await;
    let other = json!({ "userid": "acct:b", "text": "from a time that is gone" });
    assert!(matches!(world.put("annotation", &key, version + 1_000_000, other).await, 200 | 201));
    round(&mut upkeep).await;
    assert_eq!(world.one::<i64>(doubts).await, 1);
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!((world.one::<i64>(doubts).await, world.one::<i64>(raises).await), (0, 1));
    healed(&world).await;
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("x"));
    round(&mut upkeep).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.one::<i64>(raises).await, 1, "it is noticed once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_database_writes_nothing_to_the_originals_index() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "original").await;
    let copy = Copy::of(&world).await;
    copy.sql(&format!("update annotation set text = 'copy' where id = '{key}'")).await;
    let refused = Catchword::connect(world.catchword.config().clone(), &copy.environment(&world, &world.prefix)).await.err().unwrap();
    let original = database(&world).await;
    assert!(refused.to_string().contains(&format!("is a copy of the database {original}")), "{refused}");
    for words in
        [&["sync", "--drain"][..], &["migrate"], &["audit", "annotation", "--repair"], &["rebuild", "annotation", "--yes"], &["status"]]
    {
        let (code, said) = copy.binary(&world, &world.prefix, words).await;
        assert!(
            code > 0 && said.contains("migrate --new-installation") && said.contains("migrate --take-over"),
            "{words:?}: {code} {said}"
        );
    }
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("original"));
    // the original goes on
    world.sql(&format!("update annotation set text = 'newer' where id = '{key}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("newer"));
    let (code, said, _) = world.run(&["migrate", "--take-over"]).await;
    assert_eq!(code, 2, "it is no copy: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_gets_indices_of_its_own() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "original").await;
    let copy = Copy::of(&world).await;
    copy.sql(&format!("update annotation set text = 'copy' where id = '{key}'")).await;
    // under the same names there is no room
    let (code, said) = copy.binary(&world, &world.prefix, &["migrate", "--new-installation"]).await;
    assert_eq!(code, 2, "{said}");
    let prefix = format!("{}staging-", world.prefix);
    let (code, said) = copy.binary(&world, &prefix, &["migrate"]).await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(copy.binary(&world, &prefix, &["reindex", "annotation", "--all", "--yes"]).await.0, 0);
    assert_eq!(copy.binary(&world, &prefix, &["sync", "--drain"]).await.0, 0);
    let (_, found) = world.http("GET", &format!("/{prefix}annotation-000001/_doc/{key}"), None).await;
    assert_eq!(found["_source"]["text"], json!("copy"), "{found}");
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("original"));
    let (code, said, _) = world.run(&["status"]).await;
    assert_eq!(code, 0, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_takes_over_writes_and_the_original_no_longer_does() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "original").await;
    let copy = Copy::of(&world).await;
    world.sql(&format!("update annotation set text = 'late' where id = '{key}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let (code, said) = copy.binary(&world, &world.prefix, &["migrate", "--take-over"]).await;
    assert_eq!(code, 0, "{said}");

    world.sql(&format!("update annotation set text = 'too late' where id = '{key}'")).await;
    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert!(outcome.blocked["annotation"].contains("installation"), "{outcome}");
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("late"));

    let taken = Catchword::connect(world.catchword.config().clone(), &copy.environment(&world, &world.prefix)).await.unwrap();
    let mut upkeep = taken.upkeep(&["annotation"]);
    eventually("what the original wrote since the copy is repaired", async || {
        taken.drain("test", &["annotation"]).await.unwrap();
        upkeep.round(&CancellationToken::new()).await.unwrap();
        world.source("annotation", &key).await.is_some_and(|source| source["text"] == "original")
    })
    .await;
    assert_eq!(copy.binary(&world, &world.prefix, &["migrate"]).await.0, 0, "once is enough");
}
