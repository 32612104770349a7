//! A change in a related table leaves one job per changed value, and nothing else.

use super::{attached_with, forget, keys_of};
use crate::attach::attached;
use crate::common::World;

const LABELS: &str = "touches = [{ table = \"label\", column = \"name\", row_column = \"label\" }]";

async fn touches(world: &World) -> Vec<String> {
    let names: Vec<String> = world.all("select distinct name from catchword.job").await;
    assert!(names.iter().all(|name| name == "touch"), "{names:?}");
    keys_of(world, "item").await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_of_a_related_row_leaves_a_touch_for_its_value() {
    let world = attached_with(LABELS).await;

    world.sql("insert into label (name) values ('red'), ('a=b '' c')").await;
    assert_eq!(touches(&world).await, ["label=a=b ' c", "label=red"]);

    forget(&world).await;
    world.sql("update label set colour = 'dark' where name = 'red'").await;
    assert_eq!(touches(&world).await, ["label=red"]);

    forget(&world).await;
    world.sql("update label set name = 'blue' where name = 'red'").await;
    assert_eq!(touches(&world).await, ["label=blue", "label=red"], "old and new value");

    forget(&world).await;
    world.sql("delete from label where name = 'blue'").await;
    assert_eq!(touches(&world).await, ["label=blue"]);

    forget(&world).await;
    world.sql("insert into label (name) values ('green')").await;
    forget(&world).await;
    world.sql("truncate label").await;
    assert_eq!(touches(&world).await, ["label=a=b ' c", "label=green"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_related_row_that_nobody_can_refer_to_yet_leaves_nothing() {
    let world = attached().await;
    world.sql("insert into document (title, web_uri) values ('new', 'x/')").await;
    assert_eq!(keys_of(&world, "annotation").await, [""; 0], "the foreign key says so");

    world.sql("update document set title = 'newer'").await;
    let id: i64 = world.one("select id from document").await;
    assert_eq!(keys_of(&world, "annotation").await, [format!("document_id={id}")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolled_back_change_of_a_related_row_leaves_nothing() {
    let world = attached_with(LABELS).await;
    world.sql("begin; insert into label (name) values ('red'); rollback").await;
    assert_eq!(touches(&world).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_changed_values_leave_a_thousand_touches_and_no_row_is_written() {
    let world = attached_with(LABELS).await;
    world.sql("insert into label select 'l' || i from generate_series(1, 1000) i").await;
    world.sql("insert into item (id, label) select i, 'l' || i from generate_series(1, 1000) i").await;
    forget(&world).await;
    let before: String = world.one("select md5(string_agg(catchword_revision::text, ',' order by id)) from item").await;

    world.sql("update label set colour = 'dark'").await;

    assert_eq!(touches(&world).await.len(), 1000);
    let after: String = world.one("select md5(string_agg(catchword_revision::text, ',' order by id)) from item").await;
    assert_eq!(before, after, "rows are found after the commit, by the worker");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncate_of_a_related_table_is_refused_under_an_old_snapshot() {
    let world = attached_with(LABELS).await;
    let mut writer = super::Session::open(&world).await;
    writer.sql("begin isolation level repeatable read").await;
    assert_eq!(writer.attempt("truncate label").await, Err("CW001".into()));
}
