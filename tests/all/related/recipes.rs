//! The recipes of docs/adopt.md, as they are printed there.

use super::{change, layout};
use crate::common::World;

/// The text of a block that is marked so.
fn block(language: &str, recipe: &str) -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/adopt.md")).unwrap();
    let begin = format!("```{language} recipe={recipe}\n");
    let from = page.find(&begin).unwrap_or_else(|| panic!("docs/adopt.md has no {begin}")) + begin.len();
    page[from..from + page[from..].find("\n```").unwrap()].to_owned()
}

/// The tables of the page with some rows, and the recipe's field and touches. Neither migrate nor doctor warns of anything.
async fn cooked(recipe: &str, touches: &str) -> World {
    let world = World::with(layout(&block("sql", "tables"), &block("sql", recipe), touches)).await;
    world
        .sql(
            "insert into city values (1, 'Bonn'), (2, 'Köln'); insert into author values (1, 'Mina', 1), (2, 'Otto', 2);
             insert into note (id, title, author_id, parent_id) values (1, 'one', 1, null), (2, 'two', 1, 1), (3, 'three', 2, 1), (4, 'four', null, null);
             insert into comment values (1, 1, 'first'), (2, 1, 'second'), (3, 2, 'third');
             insert into tag values (1, 'red'), (2, 'blue'), (3, 'unused'); insert into note_tag values (1, 1), (2, 1), (2, 2)",
        )
        .await;
    super::settle(&world).await;
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert!(code == 0 && !said.contains("warning"), "{recipe}: {said}{errors}");
    let (code, said, errors) = world.run(&["doctor", "--all"]).await;
    let of_notes = said.split("\nnote table\n").nth(1).and_then(|rest| rest.split("\nwork\n").next()).unwrap();
    assert!(code == 0 && !of_notes.contains("warn") && !of_notes.contains("do: "), "{recipe}: {of_notes}{errors}");
    world
}

/// Each change, and how many rows it touches; the checker compares both sides after each.
async fn followed(recipe: &str, changes: &[(&str, u64)]) {
    let world = cooked(recipe, &block("toml", recipe)).await;
    for (sql, touched) in changes {
        let outcome = change(&world, sql).await;
        assert_eq!(outcome.touched, *touched, "{recipe}: {sql}: {outcome}");
    }
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children() {
    followed(
        "children",
        &[
            ("insert into comment values (4, 3, 'new')", 1),
            ("update comment set text = 'changed' where note_id = 1", 1),
            ("update comment set likes = likes + 1", 0),
            ("update comment set note_id = 4 where id = 4", 2),
            ("delete from comment where note_id = 1", 1),
            ("truncate comment", 2),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_to_many() {
    followed(
        "many-to-many",
        &[
            ("update tag set name = 'crimson' where id = 1", 2),
            ("update tag set name = 'unseen' where id = 3", 0),
            ("insert into note_tag values (4, 3)", 1),
            ("delete from note_tag where note_id = 2", 1),
            ("update tag set name = name || '!'", 2),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hops() {
    followed(
        "two-hops",
        &[
            ("update city set name = 'Beuel' where id = 1", 2),
            ("update author set name = 'Minna' where id = 1", 0),
            ("update author set city_id = 2 where id = 1", 2),
            ("update city set name = 'Deutz' where id = 2", 3),
            ("update city set name = 'nobody lives here' where id = 1", 0),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn self_reference() {
    followed(
        "self-reference",
        &[
            // its two answers show it; the answers' own titles are shown by it
            ("update note set title = 'uno' where id = 1", 2),
            ("update note set title = 'due' where id = 2", 1),
            ("insert into note (id, title, parent_id) values (5, 'five', 2)", 1),
            ("update note set parent_id = 4 where id = 5", 2),
            ("update note set author_id = 2", 0),
            ("delete from note where id = 5", 1),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_of_ones_own() {
    let touches = "touches = [{ table = \"author\", column = \"id\", row_column = \"author_id\" }]\nunwatched = [\"city\"]";
    let world = cooked("two-hops", touches).await;
    world.sql(&block("sql", "own-trigger")).await;
    let outcome = change(&world, "update city set name = 'Beuel' where id = 1").await;
    assert_eq!(outcome.touched, 2, "{outcome}");
}
