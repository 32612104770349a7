//! A new index, filled and swapped in: no write lost, no pause, no stale read; undone, gone back, killed at each stage and gone on.

pub mod in_a_row;
pub mod readers;
pub mod refused;
pub mod repaired;
pub mod undone;

use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::Connection;

use crate::common::{World, eventually};

const KEEP: &[&str] = &["rebuild", "annotation"];
const AT_ONCE: &[&str] = &["rebuild", "annotation", "--keep", "0s", "--yes"];

impl World {
    /// Runs a rebuild that must succeed; returns what it said.
    async fn rebuilt(&self, words: &[&str]) -> String {
        let (code, said, errors) = self.run(words).await;
        assert_eq!(code, 0, "{said}{errors}");
        said
    }

    async fn stage(&self) -> Option<String> {
        self.all::<String>("select stage from catchword.rebuild order by id desc limit 1").await.pop()
    }

    /// The indices of `annotation` that are there, whatever Postgres says.
    async fn annotation_indices(&self) -> Vec<String> {
        let (_, listed) = self.http("GET", &format!("/_cat/indices/{}annotation-*?h=index&format=json&s=index", self.prefix), None).await;
        let names = listed.as_array().unwrap().iter();
        names.map(|index| index["index"].as_str().unwrap().trim_start_matches(&self.prefix).to_owned()).collect()
    }

    async fn settings(&self, index: &str) -> Value {
        let index = format!("{}{index}", self.prefix);
        let (_, found) = self.http("GET", &format!("/{index}/_settings?flat_settings=true"), None).await;
        found[&index]["settings"].clone()
    }

    /// The mapping file with `change` made to it; returns its path.
    fn mapping(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut file: Value = serde_json::from_str(&std::fs::read_to_string(self.folder.join("annotation.json")).unwrap()).unwrap();
        change(&mut file);
        let path = self.folder.join("other.json");
        std::fs::write(&path, file.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_fills_a_new_index_and_moves_the_readers() {
    let world = Arc::new(World::new().await);
    let seen = world.in_step("acct:a", "seen").await;
    let deleted = world.in_step("acct:a", "deleted").await;
    let hidden = world.in_step("acct:a", "hidden").await;
    world.sql(&format!("delete from annotation where id = '{deleted}'; update annotation set deleted = true where id = '{hidden}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let mapping = world.mapping(|file| file["mappings"]["properties"]["text"] = json!({ "type": "keyword", "ignore_above": 100 }));

    let said = world.rebuilt(&["rebuild", "annotation", "--mapping", &mapping]).await;
    assert!(said.contains("annotation-000001 is kept in step until") && said.contains("--back"), "{said}");
    assert_eq!(world.targets("annotation").await, ["annotation-000002", "annotation-000001"].map(|n| format!("{}{n}", world.prefix)));
    assert_eq!(world.found("annotation").await, [seen]);
    let (_, found) = world.http("GET", &format!("/{}/_mapping", world.alias("annotation")), None).await;
    let index = format!("{}annotation-000002", world.prefix);
    assert_eq!(found[&index]["mappings"]["properties"]["text"]["type"], "keyword", "{found}");
    let (old, new) = (world.settings("annotation-000001").await, world.settings("annotation-000002").await);
    for setting in ["index.number_of_replicas", "index.refresh_interval"] {
        assert_eq!(old[setting], new[setting], "{setting} is as it was");
    }
    world.settle_and_compare().await;

    assert_eq!(world.stage().await.as_deref(), Some("keep"));
    let (code, _, said) = world.run(KEEP).await;
    assert!(code == 2 && said.contains("--drop"), "{said}");
    world.rebuilt(&["rebuild", "annotation", "--drop", "--yes"]).await;
    assert_eq!(world.annotation_indices().await, ["annotation-000002"]);
    assert_eq!(world.stage().await.as_deref(), Some("done"));
    world.in_step_anywhere("acct:a", "after").await;
    world.settle_and_compare().await;
}

/// What they see next is in the new index only when that one is refreshed: until the alias has moved, they see nothing new.
#[tokio::test(flavor = "multi_thread")]
async fn readers_are_held_while_the_alias_moves() {
    let world = World::gated().await;
    let key = world.in_step("acct:a", "x").await;
    let gate = world.gate.as_ref().unwrap();
    let before = world.settings("annotation-000001").await["index.refresh_interval"].clone();
    gate.hold("POST /_aliases");
    let moving = async {
        gate.holds_something().await;
        let held = world.settings("annotation-000001").await["index.refresh_interval"].clone();
        gate.pass();
        held
    };
    let (said, held) = tokio::join!(world.rebuilt(KEEP), moving);
    assert_eq!(held, "-1", "{said}");
    assert_eq!(world.settings("annotation-000001").await["index.refresh_interval"], before);
    assert_eq!(world.found("annotation").await, [key]);
}

/// A write that the new index does not answer in time is the loop's, and readers have theirs at once: the alias waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn what_readers_find_is_in_the_new_index_before_the_alias_moves() {
    let world = World::gated().await;
    let before = world.in_step("acct:a", "before").await;
    let gate = world.gate.as_ref().unwrap();
    gate.hold("annotation-000002/_refresh");
    let written = async {
        // it is filled, and not yet verified
        gate.holds_something().await;
        let key = world.annotate("acct:a", "in the old index alone").await;
        let body: Value = world.one(&format!("select body::jsonb from annotation_document where key = '{key}'")).await;
        assert_eq!(world.put("annotation", &key, world.revision(&key).await, body).await, 201);
        gate.pass();
        key
    };
    let (said, key) = tokio::join!(world.rebuilt(KEEP), written);
    let mut both = [before, key];
    both.sort();
    assert_eq!(world.found("annotation").await, both, "{said}");
    world.settle_and_compare().await;
}

/// A killed command has its lock until Postgres notices, and whoever repeats the command need not know.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_held_for_a_moment_is_waited_for() {
    let world = World::new().await;
    let mut killed = sqlx::PgConnection::connect(&world.database_url).await.unwrap();
    sqlx::query("select pg_advisory_lock(hashtextextended('catchword.rebuild annotation', 0))").execute(&mut killed).await.unwrap();
    let noticed = async {
        let asks = "select count(*) from pg_stat_activity where datname = current_database() and query like 'select pg_try_advisory_lock%'";
        eventually("it asks for the lock", async || world.one::<i64>(asks).await > 0).await;
        killed.close().await.unwrap();
    };
    tokio::join!(world.rebuilt(KEEP), noticed);
}

impl World {
    /// As `in_step`, whatever the index is called.
    async fn in_step_anywhere(&self, user: &str, text: &str) -> String {
        let key = self.annotate(user, text).await;
        self.catchword.drain("test", &["annotation"]).await.unwrap();
        assert!(self.found("annotation").await.contains(&key));
        key
    }
}
