//! Every way of writing leaves a job for exactly the keys that changed.

use sqlx::postgres::PgPoolCopyExt;

use super::{attach, attached, collection_lines, forget, item, keys, keys_of, number, record, version};
use crate::common::{Layout, World};

async fn with_items(ids: std::ops::RangeInclusive<i64>) -> World {
    let world = attached().await;
    world.sql(&format!("insert into item (id, text) select i, 'text' from generate_series({}, {}) i", ids.start(), ids.end())).await;
    forget(&world).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_leaves_one_job_per_row() {
    let world = attached().await;
    world.sql("insert into item (id) values (1)").await;
    assert_eq!(keys(&world).await, ["1"]);

    world.sql("insert into item (id) values (2), (3), (-4)").await;
    assert_eq!(keys(&world).await, ["-4", "1", "2", "3"]);

    world.sql("insert into item (id) select 9 where false").await;
    assert_eq!(keys(&world).await.len(), 4, "a statement without rows leaves nothing");
    assert_eq!(world.all::<String>("select distinct tag from catchword.job").await, ["insert"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_leaves_one_job_per_changed_row() {
    let world = with_items(1..=5).await;
    world.sql("update item set text = 'new' where id in (2, 4)").await;
    assert_eq!(keys(&world).await, ["2", "4"]);
    assert_eq!(world.all::<String>("select distinct tag from catchword.job").await, ["update"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_key_leaves_jobs_for_both_and_a_record_for_the_old() {
    let world = with_items(1..=3).await;
    let before = number(&world, 2).await;

    world.sql("update item set id = 20 where id = 2").await;

    assert_eq!(keys(&world).await, ["2", "20"]);
    assert!(record(&world, "2").await.unwrap() > before);
    assert_eq!(record(&world, "20").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_move_up_by_one_all_have_numbers_above_their_records() {
    let world = with_items(1..=3).await;

    // in the order of the index, so that each key is free when the next row takes it
    world.sql("do $$ begin for i in reverse 3..1 loop update item set id = i + 1 where id = i; end loop; end $$").await;

    assert_eq!(world.all::<i64>("select id from item order by id").await, [2, 3, 4]);
    for id in [2, 3] {
        assert!(number(&world, id).await > record(&world, &id.to_string()).await.unwrap(), "{id}");
    }
    assert!(record(&world, "1").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_leaves_jobs_and_records() {
    let world = with_items(1..=3).await;
    world.sql("delete from item where id < 3").await;
    assert_eq!(keys(&world).await, ["1", "2"]);
    assert!(record(&world, "1").await.is_some() && record(&world, "2").await.is_some());
    assert_eq!(record(&world, "3").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncate_leaves_jobs_and_records_for_every_key() {
    let world = with_items(1..=3).await;
    world.sql("truncate item").await;
    assert_eq!(keys(&world).await, ["1", "2", "3"]);
    assert_eq!(world.one::<i64>("select count(*) from catchword.record where collection = 'item'").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_leaves_one_job_per_row() {
    let world = attached().await;
    let mut copy = world.pool.copy_in_raw("copy item (id, text) from stdin").await.unwrap();
    copy.send(&b"7\tseven\n8\teight\n"[..]).await.unwrap();
    copy.finish().await.unwrap();
    assert_eq!(keys(&world).await, ["7", "8"]);
    assert!(number(&world, 7).await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_leaves_a_job_only_for_what_was_written() {
    let world = with_items(1..=2).await;
    world
        .sql("insert into item (id, text) values (1, 'again'), (2, 'again'), (3, 'new') on conflict (id) do update set text = excluded.text where item.id = 1")
        .await;
    assert_eq!(keys(&world).await, ["1", "3"]);

    forget(&world).await;
    world.sql("insert into item (id) values (1), (4) on conflict do nothing").await;
    assert_eq!(keys(&world).await, ["4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_leaves_jobs_for_what_it_inserted_updated_and_deleted() {
    let world = with_items(1..=4).await;
    // before 15 there is no merge, and nothing to be promised
    if world.postgres().await < 15 {
        let refused = sqlx::raw_sql("merge into item using item as given on true when matched then delete").execute(&world.pool).await;
        assert_eq!(refused.unwrap_err().as_database_error().unwrap().code().as_deref(), Some("42601"));
        return;
    }
    world
        .sql(
            "merge into item using (values (1, 'keep'), (2, 'drop'), (3, 'pass'), (9, 'keep')) as given (id, what) on item.id = given.id
             when matched and what = 'drop' then delete
             when matched and what = 'keep' then update set text = what
             when not matched then insert (id, text) values (given.id, what)",
        )
        .await;
    assert_eq!(keys(&world).await, ["1", "2", "9"]);
    assert!(record(&world, "2").await.is_some());
    assert_eq!(record(&world, "1").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_and_an_insert_of_one_key_in_one_statement_leave_a_row_that_wins() {
    let world = with_items(1..=1).await;
    world.sql("with gone as (delete from item where id = 1 returning id) insert into item (id, text) select id, 'reborn' from gone").await;
    let mut changed = keys(&world).await;
    changed.dedup();
    assert_eq!(changed, ["1"]);
    assert_eq!(world.one::<String>("select text from item").await, "reborn");
    assert!(version(&world, 1).await > record(&world, "1").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cascade_leaves_jobs_for_the_rows_it_deletes_moves_and_empties() {
    let world = attach(Layout {
        sql: format!(
            "create table parent (id bigint primary key); {}
             alter table item add column parent bigint references parent on delete cascade;
             alter table item add column owner bigint references parent on delete set null;
             alter table item add constraint item_is_parent foreign key (id) references parent on update cascade;",
            item("item", "bigint")
        ),
        more: collection_lines("item", ""),
        ..Layout::default()
    })
    .await;
    world.sql("insert into parent select generate_series(1, 5)").await;
    world.sql("insert into item (id, parent, owner) values (3, 1, null), (4, null, 1), (5, null, null)").await;
    forget(&world).await;

    world.sql("delete from parent where id = 1").await;
    assert_eq!(keys(&world).await, ["3", "4"], "one deleted with its parent, one emptied");
    assert!(record(&world, "3").await.is_some());

    forget(&world).await;
    world.sql("update parent set id = 50 where id = 5").await;
    assert_eq!(keys(&world).await, ["5", "50"]);
    assert!(record(&world, "5").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_every_type_is_stored_as_postgres_writes_it() {
    let types = ["uuid", "bigint", "integer", "text"];
    let name = |key_type: &str| format!("item_{key_type}");
    let world = attach(Layout {
        sql: types.map(|t| item(&name(t), t)).concat(),
        more: types.map(|t| collection_lines(&name(t), "")).concat(),
        ..Layout::default()
    })
    .await;
    let odd = "a/b %c \"d\" 'e' \\ \n\t é 漢 😀 ;-- $1 {view}";
    for (key_type, given, stored) in [
        ("uuid", "0D0A5C1E-6A3B-4B9E-9D7A-2F1C3E4D5B6A", "0d0a5c1e-6a3b-4b9e-9d7a-2f1c3e4d5b6a"),
        ("bigint", " 9223372036854775807", "9223372036854775807"),
        ("integer", "-0", "0"),
        ("text", odd, odd),
        ("text", "", ""),
        ("text", " 7 ", " 7 "),
    ] {
        forget(&world).await;
        let table = name(key_type);
        let quoted = given.replace('\'', "''");
        for statement in [
            format!("insert into {table} (id) values ('{quoted}')"),
            format!("update {table} set text = 'new' where id = '{quoted}'"),
            format!("delete from {table} where id = '{quoted}'"),
        ] {
            world.sql(&statement).await;
            assert_eq!(keys_of(&world, &table).await, [stored], "{statement}");
            forget(&world).await;
        }
        let recorded: Vec<String> = world.all(&format!("select key from catchword.record where collection = '{table}'")).await;
        assert!(recorded.contains(&stored.to_owned()), "{recorded:?}");
        world.sql(&format!("insert into {table} (id) values ('{quoted}')")).await;
        forget(&world).await;
        world.sql(&format!("select catchword.schedule('{table}', array['{quoted}'])")).await;
        assert_eq!(keys_of(&world, &table).await, [stored], "scheduled by hand");
    }
}

/// Elasticsearch takes ids of 512 bytes. A longer key is never indexed, but it is the application's right to write it.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_too_long_for_elasticsearch_fails_no_write_and_no_burial() {
    let world = attach(Layout { sql: item("item", "text"), more: collection_lines("item", ""), ..Layout::default() }).await;
    let hashes = "(select string_agg(md5(i::text), '') from generate_series(1, 100) i)";
    let longest = [
        "repeat('x', 512)".to_owned(),
        "repeat('x', 513)".to_owned(),
        format!("left({hashes}, 2600)"),
        // just fits into the index of the table's own key
        format!("left({hashes}, 2690)"),
        // fits because it is compressed there
        "repeat('x', 100000)".to_owned(),
    ];
    for key in &longest {
        world.sql(&format!("insert into item (id) values ({key})")).await;
        world.sql(&format!("update item set text = 'new' where id = {key}")).await;
        world.sql(&format!("update item set id = id || 'y' where id = {key}")).await;
        world.sql("delete from item").await;
        assert_eq!(keys(&world).await.len(), 5, "{key}");
        world.sql(&format!("insert into item (id) values ({key})")).await;
        world.sql("truncate item").await;
        forget(&world).await;
    }
    let recorded: Vec<i32> =
        world.all("select distinct octet_length(key) from catchword.record where collection = 'item' order by 1").await;
    assert_eq!(recorded, [512], "only what can be an id needs a tombstone");

    for key in &longest {
        world.sql(&format!("insert into item (id) values ({key})")).await;
    }
    let ids: Vec<i64> = world.all("select id from catchword.job").await;
    let burials: Vec<_> = ids
        .iter()
        .map(|id| catchword::job::Burial { id: *id, reason: catchword::job::Reason::BadKey, error: "the key is too long".into() })
        .collect();
    let mut connection = world.pool.acquire().await.unwrap();
    catchword::job::bury(&mut connection, &burials).await.unwrap();
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 5);
}
