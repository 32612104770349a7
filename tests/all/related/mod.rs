//! Related rows, whatever the relation: a change reaches every document that shows it, and no other.

pub mod recipes;
pub mod refused;
pub mod shapes;
pub mod writes;

use catchword::Outcome;

use crate::common::checker::Truth;
use crate::common::{Layout, World};

/// A collection `note` over the table of that name, whose document shows `text`, an expression over the row `n`.
pub fn layout(tables: &str, text: &str, touches: &str) -> Layout {
    Layout {
        sql: format!(
            "{tables}; comment on column note.catchword_revision is 'catchword: revision';
             create view note_document as select n.id as key, n.catchword_revision as revision, json_build_object('text', {text}) as body from note n;"
        ),
        more: format!(
            "[[collection]]\nname = \"note\"\ntable = \"note\"\nkey = \"id\"\nview = \"note_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n{touches}\n"
        ),
        ..Layout::default()
    }
}

/// The same, attached.
pub async fn notes(tables: &str, text: &str, touches: &str) -> World {
    World::with(layout(tables, text, touches)).await
}

/// Changes something, works on it until nothing is left, and compares both sides.
pub async fn change(world: &World, sql: &str) -> Outcome {
    world.sql(sql).await;
    settle(world).await
}

/// Works until nothing is left, and compares both sides, every key both ways, number and content.
pub async fn settle(world: &World) -> Outcome {
    let outcome = world.catchword.drain("test", &["note"]).await.unwrap();
    let left: Vec<String> = world.all("select key || coalesce(' ' || last_error, '') from catchword.job where collection = 'note'").await;
    assert_eq!(left, [""; 0]);
    agree(world).await;
    outcome
}

pub async fn agree(world: &World) {
    world
        .agree_on(Truth {
            collection: "note",
            rows: "select id::text as key, catchword_revision as revision from note",
            documents: "select key::text as key, revision, body from note_document",
        })
        .await;
}

/// The keys of the open touches.
pub async fn touches(world: &World) -> Vec<String> {
    world.all("select key from catchword.job where name = 'touch' and collection = 'note' order by key").await
}
