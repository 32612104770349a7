//! The Postgres side: every way of writing leaves its jobs and its numbers, in the writer's own transaction.
//!
//! These worlds have no index: what is promised here holds while Elasticsearch is away.

pub mod again;
pub mod column_names;
pub mod encoding;
pub mod foreign;
pub mod locks;
pub mod names;
pub mod numbers;
pub mod planted;
pub mod properties;
pub mod recipe;
pub mod related;
pub mod search_alias;
pub mod settings;
pub mod several;
pub mod together;
pub mod writes;

use catchword::collection;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::common::{Layout, World, eventually};

/// A world whose tables are attached, without indices: the example's, and the table `item` with a key of type bigint.
pub async fn attached() -> World {
    attached_with("").await
}

/// The same with more lines for the collection `item`, and a table `label` that it may refer to.
async fn attached_with(lines: &str) -> World {
    attach(Layout {
        sql: format!(
            "{} create table label (name text primary key, colour text); alter table item add column label text;",
            item("item", "bigint")
        ),
        more: collection_lines("item", lines),
        ..Layout::default()
    })
    .await
}

pub async fn attach(layout: Layout) -> World {
    let world = World::with(Layout { migrated: false, schema: true, ..layout }).await;
    for config in &world.catchword.config().collections {
        collection::attach(&world.pool, config).await.unwrap();
    }
    world
}

/// A table with a key of this type, and its view.
pub fn item(name: &str, key_type: &str) -> String {
    format!(
        "create table {name} (id {key_type} primary key, text text, catchword_revision bigint);
         comment on column {name}.catchword_revision is 'catchword: revision';
         create view {name}_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from {name};"
    )
}

pub fn collection_lines(name: &str, lines: &str) -> String {
    format!(
        "[[collection]]\nname = \"{name}\"\ntable = \"{name}\"\nkey = \"id\"\nview = \"{name}_document\"\nmapping = \"bystander.json\"\n{lines}\n"
    )
}

/// The configuration of `item`, to be changed and attached again.
fn config_of_item(world: &World) -> catchword::config::Collection {
    let collections = &world.catchword.config().collections;
    collections.iter().find(|collection| collection.name == "item").unwrap().clone()
}

/// The keys of the jobs of `item`, sorted.
async fn keys(world: &World) -> Vec<String> {
    keys_of(world, "item").await
}

async fn keys_of(world: &World, collection: &str) -> Vec<String> {
    let sql = format!("select key from catchword.job where collection = '{collection}' order by key collate \"C\", id");
    world.all(&sql).await
}

/// Takes all jobs away, as if they were settled.
async fn forget(world: &World) {
    world.sql("delete from catchword.job").await;
}

async fn floor(world: &World) -> i64 {
    world.one("select floor from catchword.collection where name = 'item'").await
}

async fn number(world: &World, id: i64) -> i64 {
    world.one(&format!("select catchword_revision from item where id = {id}")).await
}

/// The highest number that was recorded for a key, if there is one.
async fn record(world: &World, key: &str) -> Option<i64> {
    let sql = format!("select revision from catchword.record where collection = 'item' and key = '{key}' order by revision");
    world.all(&sql).await.pop()
}

/// The version that the row's document gets.
async fn version(world: &World, id: i64) -> i64 {
    let recorded = record(world, &id.to_string()).await.unwrap_or(0);
    number(world, id).await.max(floor(world).await).max(recorded + recorded % 2)
}

/// A session of its own, for tests in which several transactions overlap.
struct Session {
    connection: PgConnection,
    pid: i32,
}

impl Session {
    async fn open(world: &World) -> Session {
        let mut connection = world.pool.acquire().await.unwrap().detach();
        let pid = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut connection).await.unwrap();
        Session { connection, pid }
    }

    async fn sql(&mut self, sql: &str) {
        self.attempt(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The SQLSTATE, if it fails.
    async fn attempt(&mut self, sql: &str) -> Result<(), String> {
        let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.connection).await;
        done.map(|_| ()).map_err(|error| match error.as_database_error() {
            Some(database) => database.code().unwrap().into_owned(),
            None => error.to_string(),
        })
    }

    /// Runs it in the background and comes back as soon as it waits for a lock.
    async fn waits_for(mut self, world: &World, sql: &str) -> tokio::task::JoinHandle<(Session, Result<(), String>)> {
        let (pid, owned) = (self.pid, sql.to_owned());
        let waiting = tokio::spawn(async move {
            let done = self.attempt(&owned).await;
            (self, done)
        });
        let blocked = format!("select cardinality(pg_blocking_pids({pid})) > 0");
        eventually(sql, async || world.one(&blocked).await).await;
        waiting
    }
}
