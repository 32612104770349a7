//! Delay, tag, trace and watch; and a mass update that stands behind live writes.

use catchword::job::{Cursor, claim, claim_until};

use super::{attach, attached, attached_with, collection_lines, forget, item, keys, number};
use crate::common::{Layout, World};

/// Writes one row after `setting` was set, and returns the seconds its job waits.
async fn delay_after(world: &World, name: &str, value: &str) -> i64 {
    forget(world).await;
    let quoted = value.replace('\'', "''");
    world
        .sql(&format!(
            "begin; select set_config('{name}', '{quoted}', true); insert into item (id) values (1); update item set text = 'x'; delete from item; commit"
        ))
        .await;
    assert_eq!(keys(world).await, ["1", "1", "1"], "{name} = {value:?}");
    let waits: Vec<i64> = world.all("select distinct extract(epoch from scheduled_at - enqueued_at)::bigint from catchword.job").await;
    assert_eq!(waits.len(), 1, "{waits:?}");
    waits[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_in_a_setting_never_fails_a_write() {
    let world = attached_with("delay = \"7s\"").await;
    let long = "x".repeat(1000);
    let unicode = "é漢😀".repeat(200);
    for name in ["catchword.delay", "catchword.tag", "catchword.traceparent"] {
        for value in [
            "",
            " ",
            "abc",
            "1 day",
            "99999",
            "9999",
            "3601",
            "-1",
            "1.5",
            "1e3",
            "0x10",
            "60\n",
            "'; drop table item; --",
            "\\",
            "%s",
            "null",
            "٣",
            "99999999999999999999",
            &long,
            &unicode,
        ] {
            assert_eq!(delay_after(&world, name, value).await, 7, "{name} = {value:?} is passed over");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_in_whole_seconds_up_to_an_hour_is_taken() {
    let world = attached_with("delay = \"7s\"").await;
    assert_eq!(delay_after(&world, "catchword.delay", "0").await, 0);
    assert_eq!(delay_after(&world, "catchword.delay", "3600").await, 3600);
    assert_eq!(delay_after(&world, "catchword.delay", "0042").await, 42);
    assert_eq!(delay_after(&world, "catchword.delay", "").await, 7, "else the collection's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_write_is_due_at_once_and_stands_apart_from_one_that_waits() {
    let world = attached().await;
    let jobs = "select priority || ' ' || extract(epoch from scheduled_at - enqueued_at)::integer from catchword.job";
    for write in ["insert into item (id) values (1)", "update item set text = 'x'", "update item set id = 2", "delete from item"] {
        world.sql(write).await;
        assert_eq!(world.all::<String>(&format!("{jobs} group by 1")).await, ["0 0"], "{write}");
        forget(&world).await;
    }
    world.sql("begin; set local catchword.delay = '60'; insert into item (id) values (1); commit; insert into item (id) values (2)").await;
    assert_eq!(world.all::<String>(&format!("{jobs} order by id")).await, ["1 60", "0 0"]);
    let mut connection = world.pool.acquire().await.unwrap();
    sqlx::query("begin").execute(&mut *connection).await.unwrap();
    sqlx::query("update catchword.job set scheduled_at = now()").execute(&mut *connection).await.unwrap();
    let first = claim(&mut connection, "item", Cursor::TOP, 10).await.unwrap();
    assert_eq!(first.iter().map(|job| job.key.as_str()).collect::<Vec<_>>(), ["2", "1"], "quick ones come first");
    let quick = claim_until(&mut connection, "item", Cursor::TOP, Cursor::BEHIND_QUICK, 10).await.unwrap();
    assert_eq!(quick.len(), 1);
    sqlx::query("rollback").execute(&mut *connection).await.unwrap();

    // by hand: as the delay says
    forget(&world).await;
    world.sql("select catchword.schedule('item', array['1']), catchword.schedule('item', array['2'], p_delay => '5 s'), catchword.schedule('item', array['3'], p_priority => 100)").await;
    assert_eq!(world.all::<String>(&format!("{jobs} order by id")).await, ["0 0", "1 5", "100 0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_and_a_trace_are_kept_and_cut() {
    let world = attached().await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    world
        .sql(&format!(
            "begin; select set_config('catchword.tag', repeat('é', 1000), true), set_config('catchword.traceparent', '{trace}', true); insert into item (id) values (1); commit"
        ))
        .await;
    assert_eq!(world.one::<String>("select tag from catchword.job").await, "é".repeat(100));
    assert_eq!(world.one::<String>("select traceparent from catchword.job").await, trace);

    forget(&world).await;
    world.sql("update item set text = 'x'").await;
    assert_eq!(world.one::<String>("select tag from catchword.job").await, "update");
    assert_eq!(world.one::<Option<String>>("select traceparent from catchword.job").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_of_unwatched_columns_is_passed_over() {
    let world = attached_with("watch = [\"text\"]").await;
    world.sql("insert into item (id, text) values (1, 'a'), (2, 'b'), (3, null)").await;
    assert_eq!(keys(&world).await, ["1", "2", "3"]);
    forget(&world).await;
    let before = number(&world, 1).await;

    world.sql("update item set label = 'other'").await;
    world.sql("update item set text = text").await;
    assert_eq!(keys(&world).await, [""; 0]);
    assert_eq!(number(&world, 1).await, before);

    world.sql("update item set label = 'third', text = case id when 1 then 'a' when 2 then 'changed' end").await;
    assert_eq!(keys(&world).await, ["2"], "of three updated rows one changed what is watched");
    assert_eq!(number(&world, 1).await, before);
}

/// What is equal may look different in a document, and some types know no "equal".
#[tokio::test(flavor = "multi_thread")]
async fn every_visible_change_of_a_watched_column_counts() {
    let columns = [
        ("json", "'{}'", "'{ }'"),
        ("xml", "'<a/>'", "'<a></a>'"),
        ("point", "point(1, 2)", "point(2, 1)"),
        ("numeric", "1.0", "1.00"),
        ("interval", "'30 days'", "'1 mon'"),
        ("double precision", "0.0", "'-0'"),
        ("text collate caseless", "'draft'", "'DRAFT'"),
        ("timestamptz[]", "'{now}'", "'{yesterday}'"),
        ("tsvector", "'a:1'", "'a:2'"),
        ("bpchar", "'a'", "null"),
    ];
    let named: Vec<String> = (0..columns.len()).map(|n| format!("c{n}")).collect();
    let (sql, values): (Vec<String>, Vec<&str>) =
        columns.iter().enumerate().map(|(n, (kind, value, _))| (format!("c{n} {kind} default {value}"), *value)).unzip();
    let world = attach(Layout {
        sql: format!(
            "create collation caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false); {} alter table item add column {}, add column other integer",
            item("item", "bigint"),
            sql.join(", add column ")
        ),
        more: collection_lines("item", &format!("watch = {named:?}")),
        ..Layout::default()
    })
    .await;
    world.sql("insert into item (id) values (1), (2)").await;
    forget(&world).await;
    world
        .sql(&format!("update item set other = 1, {}", (0..values.len()).map(|n| format!("c{n} = c{n}")).collect::<Vec<_>>().join(", ")))
        .await;
    assert_eq!(keys(&world).await, [""; 0], "nothing changed");
    for (n, (kind, _, other)) in columns.iter().enumerate() {
        let before = number(&world, 1).await;
        world.sql(&format!("update item set c{n} = {other} where id = 1")).await;
        assert_eq!(keys(&world).await, ["1"], "{kind}");
        assert!(number(&world, 1).await > before, "{kind}");
        forget(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_and_the_revision_are_always_watched() {
    let world = attached_with("watch = [\"text\"]").await;
    world.sql("insert into item (id) values (1), (2)").await;
    let before = number(&world, 2).await;
    forget(&world).await;

    world.sql("update item set id = 10 where id = 1").await;
    assert_eq!(keys(&world).await, ["1", "10"]);

    forget(&world).await;
    world.sql("update item set catchword_revision = 1 where id = 2").await;
    assert_eq!(keys(&world).await, ["2"]);
    assert!(number(&world, 2).await > before, "nobody can put a number of his own there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_the_writers_own_is_never_taken() {
    let world = attached().await;
    let drawn: i64 = world.one("select last_value from catchword.revision").await;
    world.sql("insert into item (id, catchword_revision) values (1, 4611686018427387904), (2, -1), (3, null)").await;
    world.sql("update item set catchword_revision = 7 where id = 2").await;
    for id in 1..=3 {
        let number = number(&world, id).await;
        assert!(number > drawn && number < drawn + 100, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mass_update_is_spaced_and_stands_behind_live_writes() {
    let world = attached_with("delay = \"0s\"").await;
    world.sql("insert into item (id) select generate_series(1, 1000)").await;
    assert_eq!(world.all::<i32>("select distinct priority from catchword.job").await, [0], "a thousand are still live");
    world.sql("insert into item (id) values (1001), (1002)").await;
    forget(&world).await;

    world.sql("update item set text = 'renamed' where id <= 1001").await;
    assert_eq!(world.all::<i32>("select distinct priority from catchword.job").await, [100]);
    let spaced: bool = world
        .one("select count(*) = 1001 and count(distinct enqueued_at) = 1001 and max(enqueued_at) - min(enqueued_at) = interval '1000 microseconds' from catchword.job")
        .await;
    assert!(spaced);

    world.sql("update item set text = 'live' where id = 1002").await;
    let mut connection = world.pool.acquire().await.unwrap();
    sqlx::query("begin").execute(&mut *connection).await.unwrap();
    let first = claim(&mut connection, "item", Cursor::TOP, 2).await.unwrap();
    assert_eq!(first[0].key, "1002", "the write that came last is claimed first");
    assert_eq!((first[0].priority, first[1].priority), (0, 100));
    sqlx::query("rollback").execute(&mut *connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn mass_inserts_deletes_and_truncates_stand_behind_live_writes_too() {
    let world = attached().await;
    for statement in [
        "insert into item (id) select generate_series(1, 1001)",
        "delete from item",
        "insert into item (id) select generate_series(1, 1001)",
        "truncate item",
    ] {
        world.sql(statement).await;
        assert_eq!(world.all::<i32>("select distinct priority from catchword.job").await, [100], "{statement}");
        assert_eq!(keys(&world).await.len(), 1001, "{statement}");
        forget(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mass_change_of_keys_stands_behind_live_writes_with_its_old_keys_too() {
    for watch in ["", "watch = [\"text\"]"] {
        let world = attached_with(watch).await;
        world.sql("insert into item (id) select generate_series(1, 1001)").await;
        forget(&world).await;
        world.sql("update item set id = id + 10000").await;
        let jobs = "select priority || ' ' || (key::integer > 10000) || ' ' || count(*) || ' ' || count(distinct enqueued_at) from catchword.job group by priority, key::integer > 10000 order by 1";
        assert_eq!(world.all::<String>(jobs).await, ["100 false 1001 1001", "100 true 1001 1001"], "spaced, old and new");
        let records =
            "select count(*) from catchword.record d where d.collection = 'item' and d.revision % 2 = 1 and d.key::integer <= 1001";
        assert_eq!(world.one::<i64>(records).await, 1001);
        forget(&world).await;

        world.sql("update item set id = id - 5000 where id <= 10003").await;
        assert_eq!(world.all::<i32>("select distinct priority from catchword.job").await, [0], "a few are live");
        assert_eq!(keys(&world).await, ["10001", "10002", "10003", "5001", "5002", "5003"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_one_key_reads_no_table() {
    for watch in ["", "watch = [\"text\"]"] {
        let world = attached_with(watch).await;
        world.sql("insert into item (id) select generate_series(1, 20000)").await;
        world
            .sql("insert into catchword.record (collection, key, revision) select 'item', 'gone ' || i, 1 from generate_series(1, 20000) i")
            .await;
        world.sql("analyze item; analyze catchword.record").await;
        let read = "select coalesce(sum(seq_tup_read), 0)::bigint from pg_stat_xact_user_tables where relname in ('item', 'record')";
        let mut session = world.pool.begin().await.unwrap();
        // the plans are kept from the sixth on
        for id in 1..=8_i64 {
            sqlx::query("update item set id = -id where id = $1").bind(id).execute(&mut *session).await.unwrap();
        }
        let read: i64 = sqlx::query_scalar(read).fetch_one(&mut *session).await.unwrap();
        assert_eq!(read, 0, "{watch}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mass_update_asks_once_where_it_stands() {
    let world = attached().await;
    world.sql("insert into item (id) select generate_series(1, 1001)").await;
    let mut session = world.pool.begin().await.unwrap();
    sqlx::query("set local track_functions = 'all'").execute(&mut *session).await.unwrap();
    for statement in ["update item set text = 'x'", "delete from item"] {
        let calls = "select coalesce(sum(calls), 0)::bigint from pg_stat_xact_user_functions where funcname = 'bulk_base'";
        let before: i64 = sqlx::query_scalar(calls).fetch_one(&mut *session).await.unwrap();
        sqlx::query(statement).execute(&mut *session).await.unwrap();
        let asked: i64 = sqlx::query_scalar(calls).fetch_one(&mut *session).await.unwrap();
        assert_eq!(asked - before, 1, "{statement}");
    }
}
