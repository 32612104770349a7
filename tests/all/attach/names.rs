//! Whatever the columns are called and whatever becomes of them: an application's write does not fail because of us.

use super::{Session, attach, collection_lines, floor, forget, item, keys, number};
use crate::common::{Layout, World};

/// `item` with columns that have these names, all watched.
async fn with_columns(names: &[&str]) -> World {
    let columns: Vec<String> = names.iter().map(|name| format!("add column \"{name}\" text")).collect();
    attach(Layout {
        sql: format!("{} alter table item {};", item("item", "bigint"), columns.join(", ")),
        more: collection_lines("item", &format!("watch = {names:?}")),
        ..Layout::default()
    })
    .await
}

/// Words of PL/pgSQL, names of its variables and of our own, and names that nobody should choose.
#[tokio::test(flavor = "multi_thread")]
async fn a_column_may_have_any_name() {
    let names = [
        "begin",
        "by",
        "if",
        "loop",
        "while",
        "declare",
        "execute",
        "strict",
        "foreach",
        "tg_op",
        "new",
        "old",
        "found",
        "left_keys",
        "changed",
        "collection",
        "key",
        "revision",
        "n",
        "o",
        "r",
        "50%s",
        "a\"b",
        "it's",
        "Select",
    ];
    for name in names {
        let named = name.replace('"', "\"\"");
        let world = attach(Layout {
            sql: format!("{} alter table item add column \"{named}\" text;", item("item", "bigint")),
            more: collection_lines("item", &format!("watch = [{:?}]", format!("\"{named}\""))),
            ..Layout::default()
        })
        .await;
        world.sql("insert into item (id) values (1)").await;
        forget(&world).await;
        world.sql(&format!("update item set \"{named}\" = 'x'")).await;
        assert_eq!(keys(&world).await, ["1"], "{name}");
        world.sql("delete from item").await;
        world.sql("truncate item").await;
    }
}

/// Our functions are written between these three characters.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_would_end_our_own_functions_is_refused() {
    let world = attach(Layout {
        sql: format!("{} alter table item add column \"a$f$b\" text;", item("item", "bigint")),
        more: collection_lines("item", ""),
        ..Layout::default()
    })
    .await;
    let mut config = super::config_of_item(&world);
    config.watch = vec!["a$f$b".into()];
    let refused = catchword::collection::attach(&world.pool, &config).await.unwrap_err().to_string();
    assert!(refused.contains("$f$ in its name"), "{refused}");
    world.sql("insert into item (id) values (1)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_column_that_is_renamed_or_retyped_fails_no_write_and_is_noticed() {
    let world = with_columns(&["a", "b"]).await;
    let mut session = Session::open(&world).await;
    session.sql("insert into item (id, a) values (1, 'x')").await;
    for _ in 0..7 {
        session.sql("update item set a = a || 'x'").await;
    }
    let mut last = number(&world, 1).await;
    world.sql("alter table item alter column a type integer using 5").await;
    session.sql("update item set a = 6").await;
    assert!(number(&world, 1).await > last, "an open session writes on");
    last = number(&world, 1).await;
    world.sql("alter table item rename column b to c").await;
    session.sql("update item set c = 'y'").await;
    assert!(number(&world, 1).await > last && floor(&world).await > 0);
    let problems: Vec<String> = world.all("select problem from catchword.broken_triggers('item')").await;
    assert_eq!(problems, ["the watched column item.b is missing".replace("item.b", "public.item.b")]);
}

/// Equality belongs to the type: that of an extension is in a schema that our functions do not search.
#[tokio::test(flavor = "multi_thread")]
async fn values_of_an_extensions_type_are_compared_as_it_compares_them() {
    let world = World::with(Layout {
        sql: "create extension citext;
              create table nick (name citext primary key, shown text, visits integer);
              create table item (id bigint primary key, nick citext, catchword_revision bigint);
              comment on column item.catchword_revision is 'catchword: revision';
              create view item_document as select id as key, catchword_revision as revision,
                json_build_object('text', (select shown from nick where nick.name = item.nick)) as body from item;"
            .into(),
        more: "[[collection]]\nname = \"item\"\ntable = \"item\"\nkey = \"id\"\nview = \"item_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\nscopes = { nick = \"nick\" }\ntouches = [{ table = \"nick\", column = \"name\", row_column = \"nick\", watch = [\"shown\"] }]\n".into(),
        ..Layout::default()
    })
    .await;
    world.sql("insert into nick values ('Foo', 'first', 0); insert into item values (1, 'foo')").await;
    world.catchword.drain("test", &["item"]).await.unwrap();
    world.sql("update nick set visits = 1").await;
    assert_eq!(keys(&world).await, [""; 0], "nothing that is watched");
    world.sql("update nick set shown = 'second'").await;
    world.catchword.drain("test", &["item"]).await.unwrap();
    assert_eq!(world.source("item", "1").await.unwrap()["text"], "second");
    let (code, said, errors) = world.run(&["reindex", "item", "--nick", "FOO"]).await;
    assert!(code == 0 && said.contains("scheduled 1"), "{said}{errors}");
}

/// The sweep passes over what an application holds, and the other way round: neither waits, and neither is chosen as a victim.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_and_the_sweep_of_its_record_do_not_wait_for_each_other() {
    let world = with_columns(&["a"]).await;
    world
        .sql("insert into item (id) select generate_series(1, 20); delete from item; insert into item (id) select generate_series(1, 20)")
        .await;
    let records: Vec<i64> = world.all("select revision from catchword.record where collection = 'item' order by key::bigint").await;
    let forget =
        format!("select catchword.forget_records('item', array(select i::text from generate_series(1, 20) i), array{records:?}::bigint[])");
    let (mut application, mut sweep) = (Session::open(&world).await, Session::open(&world).await);
    application.sql("begin; set lock_timeout = '1s'; delete from item where id = 1").await;
    sweep.sql(&format!("begin; set lock_timeout = '1s'; {forget}")).await;
    application.sql("delete from item where id in (2, 3)").await;
    application.sql("commit").await;
    sweep.sql("commit").await;
    assert_eq!(
        world.all::<String>("select distinct key from catchword.record where collection = 'item' order by 1").await,
        ["1", "2", "3"]
    );
}
