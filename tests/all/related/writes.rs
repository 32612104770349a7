//! A write of the application never fails because of a touch, and nothing is lost silently.

use super::{change, notes, settle, touches};
use crate::common::World;

async fn divided() -> World {
    notes(
        "create table part (id bigint primary key, a bigint, b bigint, what text);
         create table note (id bigint primary key, n bigint, catchword_revision bigint); create index on note (n)",
        "(select string_agg(p.what, ' ' order by p.id) from part p where p.b <> 0 and p.a / nullif(p.b, 0) = n.n)",
        "touches = [{ table = \"part\", value = \"a / b\", row_column = \"n\", watch = [\"what\"] }]",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expression_that_fails_fails_no_write_and_is_seen() {
    let world = divided().await;
    world.sql("insert into part values (1, 6, 2, 'x'); insert into note values (1, 3)").await;
    settle(&world).await;
    for sql in [
        "insert into part values (2, 1, 0, 'y')",
        "update part set what = 'z'",
        "begin isolation level serializable; update part set what = 'zz' where id = 2; commit",
        "delete from part where id = 2",
    ] {
        world.sql(sql).await;
    }
    let left: Vec<String> = touches(&world).await;
    let failed = |op: &str| format!("!public.part={op}: division by zero");
    assert_eq!(left, [failed("delete"), failed("insert"), failed("update"), failed("update")]);
    world.sql("delete from catchword.job where key like '!%insert%' or key like '!%delete%'").await;
    // as long as one is open, there is no second of its kind
    world.sql("insert into part values (3, 1, 0, 'y')").await;
    world.sql("update part set what = 'u'").await;
    assert_eq!(touches(&world).await.len(), 3);
    for _ in 0..5 {
        world.sql("update catchword.job set scheduled_at = now()").await;
        world.catchword.drain("test", &["note"]).await.unwrap();
    }
    let dead: Vec<String> =
        world.all("select reason || ': ' || last_error from catchword.dead_job where collection = 'note' order by 1 limit 1").await;
    assert_eq!(
        dead,
        [
            "refused: a change of public.part could not be followed (insert: division by zero), so documents may be old that show it: correct touches or the row, then run: catchword reindex note --all --rewrite"
        ]
    );
    let (code, said, _) = world.run(&["status"]).await;
    assert!(code == 1 && said.contains("dead"), "{said}");
    // what it says helps
    world.sql("delete from part where id = 3; delete from catchword.job").await;
    world.run(&["reindex", "note", "--all", "--rewrite", "--yes"]).await;
    settle(&world).await;
}

/// A migration of the application's that changes what an entry names: its writes go on, and the worker says what is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_is_gone_fails_no_write() {
    let world = divided().await;
    world.sql("insert into part values (1, 6, 2, 'x'); insert into note values (1, 3)").await;
    settle(&world).await;
    world.sql("alter table part rename column b to divisor").await;
    world.sql("update part set what = 'y'; insert into part values (2, 4, 2, 'z'); delete from part where id = 2").await;
    assert_eq!(touches(&world).await.len(), 3);
    let problems: Vec<String> = world.all("select problem from catchword.broken_triggers('note')").await;
    assert_eq!(problems, ["the column public.part.b that touches name is missing"]);
    world.sql("alter table part rename column divisor to b; delete from catchword.job").await;
    assert_eq!(change(&world, "update part set what = 'z'").await.touched, 1);
}

/// A touch may be of an entry that was changed since.
#[tokio::test(flavor = "multi_thread")]
async fn a_touch_whose_entry_is_gone_is_refused_with_a_sentence() {
    let world = divided().await;
    world.sql("insert into catchword.job (name, collection, key, priority, tag) values ('touch', 'note', '#0badc0de=1', 1, 'x')").await;
    world.catchword.drain("test", &["note"]).await.unwrap();
    let error: String = world.one("select last_error from catchword.job where collection = 'note'").await;
    assert_eq!(
        error,
        "the entry of touches that this change belongs to is gone, so documents may be old that show it: run: catchword reindex note --all --rewrite"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_of_ones_own_touches_later_and_can_fail_no_write() {
    let world = divided().await;
    world.sql("insert into note values (1, 3), (2, 3), (3, 4)").await;
    settle(&world).await;
    let later = async |arguments: &str| world.one::<bool>(&format!("select catchword.touch_later({arguments})")).await;
    assert!(later("'note', 'n', 3").await);
    assert_eq!(settle(&world).await.touched, 2);
    assert!(later("'note', 'n', '4'").await);
    assert_eq!(settle(&world).await.touched, 1);
    assert!(!later("'nothing', 'n', 3").await, "a warning, and nothing is scheduled");
    assert!(!later("'note', 'n', null::bigint").await);
    assert!(later("'note', 'no such column', 3").await && later("'note', 'n', 'three'").await);
    world.catchword.drain("test", &["note"]).await.unwrap();
    let errors: Vec<String> = world.all("select last_error from catchword.job where collection = 'note' order by 1").await;
    assert_eq!(errors, ["invalid input syntax for type bigint: \"three\"", "table public.note has no column no such column"]);
    // a date is the same day for everybody
    world.sql("delete from catchword.job; alter table note add day date; update note set day = '2026-02-01' where id = 1").await;
    settle(&world).await;
    world.sql("begin; set local datestyle = 'SQL, DMY'; select catchword.touch_later('note', 'day', '2026-02-01'::date); commit").await;
    assert_eq!(settle(&world).await.touched, 1);
}
