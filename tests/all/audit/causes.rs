//! Where the numbers agree and the documents do not, `explain` and `audit --content` say in which fields, and why that is likely so.

use serde_json::{Value, json};

use super::in_step::notes;
use crate::common::World;

impl World {
    /// What `explain` says of note 1 and what an audit finds, as JSON: both name the same causes and the same fields.
    async fn blamed(&self) -> (Vec<Value>, Vec<Value>) {
        let (code, said, errors) = self.run(&["explain", "note", "1", "--json"]).await;
        assert_eq!(code, 1, "{said}{errors}");
        let explained: Value = serde_json::from_str(&said).unwrap();
        let (code, said, errors) = self.run(&["audit", "note", "--content", "--json"]).await;
        assert_eq!(code, 1, "{said}{errors}");
        let report: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(report[0]["likely_causes"], explained["likely_causes"]);
        let list = |value: &Value| value.as_array().unwrap().clone();
        let named = |fields: &Value| list(&fields["named"]).iter().map(|field| field["path"].clone()).collect::<Vec<_>>();
        let example = list(&report[0]["examples"]).into_iter().find(|example| example["key"] == "1").unwrap();
        let fields = named(&explained["indices"][0]["fields"]);
        assert_eq!(named(&example["fields"]), fields);
        (list(&explained["likely_causes"]), fields)
    }

    /// Only this is blamed, and `text` differs.
    async fn blames(&self, cause: &str, names: Value) {
        let (causes, fields) = self.blamed().await;
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!((causes[0]["cause"].as_str(), &causes[0]["names"]), (Some(cause), &names), "{causes:?}");
        assert_eq!(fields, [json!("text")]);
        let what = causes[0]["what"].as_str().unwrap();
        for words in [&["explain", "note", "1"][..], &["audit", "note", "--content"]] {
            let (_, said, _) = self.run(words).await;
            assert!(said.contains(what) && said.contains(causes[0]["remedy"].as_str().unwrap()), "{said}");
            assert!(said.contains("text: Postgres has ") && said.contains("likely cause"), "{said}");
        }
    }
}

const COUNTRY: &str = "(select name from country where country.id = note.country)";
const SHELF: &str = "(select label from shelf where shelf.id = note.shelf)";

/// The collection `note` with one row in step, whose document is made like that.
async fn one_note(sql: &str, text: &str, settings: &str) -> World {
    let world = notes(sql, text, settings, true).await;
    world.sql("insert into country values (1, 'old'); insert into shelf values (1, 'old')").await;
    world.sql("insert into note (id, text, country, shelf) values (1, 'old', 1, 1)").await;
    world.settle_notes().await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_waived_is_blamed() {
    let world = one_note("", COUNTRY, "unwatched = [\"country\"]").await;
    world.sql("update country set name = 'new'").await;
    world.blames("waived_table", json!(["public.country"])).await;
    let (_, said, _) = world.run(&["explain", "note", "1"]).await;
    assert!(said.contains(r#"differs        text: Postgres has "new", the index has "old""#), "{said}");
    assert!(said.contains("not in step, though the numbers agree; write it again: catchword reindex note --ids 1 --rewrite"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_watch_lacks_is_blamed() {
    let world = one_note("", "text", "watch = [\"country\"]").await;
    world.sql("update note set text = 'new'").await;
    world.blames("unwatched_column", json!(["text"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_tells_the_time_is_blamed() {
    let world = one_note("", "now()::text", "").await;
    world.blames("unsteady_view", json!(["now()"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_nobody_can_look_into_is_blamed() {
    let function = "create function name_of(p integer) returns text language plpgsql stable as
                    $$ begin return (select c.name from public.country c where c.id = p); end $$";
    let world = one_note(function, "name_of(country)", "").await;
    world.sql("update country set name = 'new'").await;
    world.blames("opaque_function", json!(["public.name_of(integer)"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_changed_is_blamed_and_then_the_table_that_it_reads_since() {
    let world = one_note("", "text", "").await;
    let view = |text: &str| {
        format!(
            "create or replace view note_document as select id as key, catchword_revision as revision, json_build_object('text', {text}) as body from note"
        )
    };
    world.sql(&view("upper(text)")).await;
    world.blames("view_changed", json!([])).await;

    world.sql(&view(SHELF)).await;
    let (code, said, errors) = world.run(&["reindex", "note", "--all", "--rewrite", "--yes"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    world.settle_notes().await;
    world.sql("update shelf set label = 'new'").await;
    world.blames("unwatched_table", json!(["public.shelf"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_else_is_blamed_where_nothing_else_explains_it() {
    let world = one_note("", "text", "").await;
    let version = world.version("note", "1").await.unwrap();
    let theirs = json!({ "text": "theirs\u{1b}[2J" });
    let (status, answer) =
        world.http("PUT", &format!("/{}/_doc/1?version={version}&version_type=external_gte", world.index("note")), Some(theirs)).await;
    assert_eq!(status, 200, "{answer}");
    world.blames("foreign_writer", json!([])).await;
    let (_, said, _) = world.run(&["explain", "note", "1"]).await;
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_touch_is_told_and_nobody_is_blamed() {
    let world = one_note("", SHELF, "touches = [{ table = \"shelf\", column = \"id\", row_column = \"shelf\" }]").await;
    world
        .sql("update shelf set label = 'new'; update catchword.job set scheduled_at = now() + interval '1 hour' where name = 'touch'")
        .await;
    let (code, said, errors) = world.run(&["explain", "note", "1"]).await;
    assert_eq!(code, 1, "{said}{errors}");
    assert!(said.contains("touch          open: a related row changed") && said.contains("a touch is open and will come to it"), "{said}");
    assert!(!said.contains("likely cause") && said.contains("differs        text: "), "{said}");
    let (_, said, _) = world.run(&["explain", "note", "1", "--json"]).await;
    let explained: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&explained["touch_is_open"], &explained["likely_causes"]), (&json!(true), &json!([])));

    world.sql("update catchword.job set attempts = 2, last_error = 'it is locked' where name = 'touch'").await;
    let (causes, _) = world.blamed().await;
    assert_eq!(causes[0]["cause"], "touch_fails", "{causes:?}");
    assert!(causes[0]["what"].as_str().unwrap().contains("it is locked"), "{causes:?}");

    world.sql("update catchword.job set attempts = 0, last_error = null, scheduled_at = now() where name = 'touch'").await;
    world.settle_notes().await;
    let (code, said, _) = world.run(&["explain", "note", "1"]).await;
    assert!(code == 0 && said.contains("in step, nothing to do"), "{said}");
}
