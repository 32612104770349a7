//! Catchword on a schema with every shape that Hypothesis' has: its twelve scenarios, each with no needless touch.

pub mod page;
pub mod scenarios;

use catchword::Outcome;

use crate::common::checker::Truth;
use crate::common::{Layout, World};
use crate::tables::ids::short;

/// A reply that is deleted is shown by nobody: then it belongs to nobody, and its purge touches nothing.
const COLLECTION: &str = r#"
[[collection]]
name = "h"
table = "h.note"
key = "id"
view = "h.note_document"
mapping = "{folder}/mapping.json"
delay = "0s"
scopes = { user = "userid" }
touches = [
  { table = "h.page", column = "id", row_column = "page_id", watch = ["title", "web_uri"] },
  { table = "h.member", value = "'acct:' || username || '@' || authority", row_column = "userid", watch = ["nipsa"] },
  { table = "h.note", value = 'case when not deleted then "references"[1] end', row_column = "id", watch = ["references"] },
]
"#;

/// The schema, attached; neither migrate nor doctor warns of anything.
pub async fn world() -> World {
    let sql = include_str!("schema.sql").into();
    let more = COLLECTION.replace("{folder}", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/h"));
    let world = World::with(Layout { sql, more, migrated: false, ..Layout::default() }).await;
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert!(code == 0 && !said.contains("warning"), "{said}{errors}");
    let (code, said, errors) = world.run(&["doctor", "--all"]).await;
    assert!(code == 0 && said.contains("an index leads from each related table back to the rows"), "{said}{errors}");
    world
}

/// What a scenario costs: the rows that were touched, the documents and tombstones that were written.
pub async fn cost(world: &World, sql: &str) -> (u64, u64) {
    world.sql(sql).await;
    let outcome = settle(world).await;
    (outcome.touched, outcome.written)
}

/// Works until nothing is left, and compares every key both ways, number and content.
pub async fn settle(world: &World) -> Outcome {
    let outcome = world.another().await.drain("test", &["h"]).await.unwrap();
    let left: Vec<String> = world.all("select key || coalesce(' ' || last_error, '') from catchword.job where collection = 'h'").await;
    assert_eq!(left, [""; 0]);
    world
        .agree_by_id(
            Truth {
                collection: "h",
                rows: "select id::text as key, catchword_revision as revision from h.note",
                documents: "select key::text as key, revision, body from h.note_document",
            },
            short,
        )
        .await;
    outcome
}
