//! For one key, whatever commits later has the higher number.

use super::{Session, attached, floor, keys, number, record, version};
use crate::common::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_row_has_an_even_number_that_grows_and_a_delete_an_odd_one_above() {
    let world = attached().await;
    world.sql("insert into item (id) values (1)").await;
    let mut last = number(&world, 1).await;
    for _ in 0..3 {
        world.sql("update item set text = 'again' where id = 1").await;
        let next = number(&world, 1).await;
        assert!(next > last && next % 2 == 0, "{last} {next}");
        last = next;
    }
    world.sql("delete from item where id = 1").await;
    let gone = record(&world, "1").await.unwrap();
    assert!(gone > last && gone % 2 == 1, "{last} {gone}");

    world.sql("insert into item (id) values (1)").await;
    let reborn = number(&world, 1).await;
    assert!(reborn > gone && reborn % 2 == 0, "{gone} {reborn}");
    world.sql("truncate item").await;
    assert!(record(&world, "1").await.unwrap() > reborn, "the record of the later delete replaces the earlier");
    assert_eq!(world.one::<i64>("select count(*) from catchword.record").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_waits_for_a_row_commits_the_higher_number() {
    let world = attached().await;
    world.sql("insert into item (id) values (1)").await;
    let (mut first, second) = (Session::open(&world).await, Session::open(&world).await);
    first.sql("begin; update item set text = 'first' where id = 1").await;
    let waiting = second.waits_for(&world, "update item set text = 'second' where id = 1").await;
    first.sql("update item set text = 'first again' where id = 1").await;
    let before: i64 =
        sqlx::query_scalar("select catchword_revision from item where id = 1").fetch_one(&mut first.connection).await.unwrap();
    first.sql("commit").await;
    waiting.await.unwrap().1.unwrap();
    assert_eq!(world.one::<String>("select text from item").await, "second");
    assert!(number(&world, 1).await > before);
}

/// Another BEFORE trigger, which waits while `text` is 'wait' for a lock that the test holds.
async fn with_a_trigger_that_waits(world: &World) -> Session {
    world
        .sql(
            "create function wait() returns trigger language plpgsql as $$ begin if new.text = 'wait' then perform pg_advisory_xact_lock(42); end if; return new; end $$;
             create trigger zz_wait before insert or update on item for each row execute function wait();",
        )
        .await;
    let mut holder = Session::open(world).await;
    holder.sql("select pg_advisory_lock(42)").await;
    holder
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_that_waits_in_another_trigger_commits_the_higher_number() {
    let world = attached().await;
    let mut holder = with_a_trigger_that_waits(&world).await;
    let waiting = Session::open(&world).await.waits_for(&world, "insert into item (id, text) values (1, 'wait')").await;

    world.sql("insert into item (id, text) values (1, 'quick')").await;
    let quick = number(&world, 1).await;
    world.sql("delete from item where id = 1").await;
    let gone = record(&world, "1").await.unwrap();
    holder.sql("select pg_advisory_unlock(42)").await;
    waiting.await.unwrap().1.unwrap();

    assert!(number(&world, 1).await > gone && gone > quick);
    assert_eq!(keys(&world).await, ["1", "1", "1"], "its number was drawn once, after the wait");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upsert_that_waits_in_another_trigger_commits_the_higher_number() {
    let world = attached().await;
    let mut holder = with_a_trigger_that_waits(&world).await;
    let upsert = "insert into item (id, text) values (1, 'wait') on conflict (id) do update set text = 'upserted'";
    let waiting = Session::open(&world).await.waits_for(&world, upsert).await;

    world.sql("insert into item (id, text) values (1, 'quick')").await;
    let quick = number(&world, 1).await;
    holder.sql("select pg_advisory_unlock(42)").await;
    waiting.await.unwrap().1.unwrap();

    assert_eq!(world.one::<String>("select text from item").await, "upserted");
    assert!(number(&world, 1).await > quick);
}

/// One transaction takes the key, another draws its number and waits for the key, the first gives the key up with a later number.
async fn overlap(level: &str, waiter: &str) -> (World, Result<(), String>) {
    let world = attached().await;
    world.sql("insert into item (id) values (7)").await;
    let (mut first, mut second) = (Session::open(&world).await, Session::open(&world).await);
    second.sql(&format!("begin isolation level {level}; select from item")).await;
    first.sql("begin; insert into item (id) values (1)").await;
    let waiting = second.waits_for(&world, waiter).await;
    first.sql("delete from item where id = 1; commit").await;
    let (mut second, done) = waiting.await.unwrap();
    let done = match done {
        Ok(()) => second.attempt("commit").await,
        refused => refused,
    };
    (world, done)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_that_waited_for_a_delete_has_the_higher_version() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let (world, done) = overlap(level, "insert into item (id) values (1)").await;
        done.unwrap();
        let (row, gone) = (version(&world, 1).await, record(&world, "1").await.unwrap());
        assert!(row > gone, "{level}: row {row}, delete {gone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_key_that_waited_for_a_delete_has_the_higher_version() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let (world, done) = overlap(level, "update item set id = 1 where id = 7").await;
        done.unwrap();
        let (row, gone) = (version(&world, 1).await, record(&world, "1").await.unwrap());
        assert!(row > gone, "{level}: row {row}, delete {gone}");
        assert!(record(&world, "7").await.is_some());
    }
}

/// The old snapshot still shows the row that was deleted meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_snapshot_that_shows_the_deleted_row_does_not_fail_the_insert() {
    let world = attached().await;
    world.sql("insert into item (id, text) values (1, 'first life')").await;
    let (mut first, mut second) = (Session::open(&world).await, Session::open(&world).await);
    second.sql("begin isolation level repeatable read; select from item").await;
    first.sql("begin; delete from item where id = 1").await;
    let waiting = second.waits_for(&world, "insert into item (id, text) values (1, 'second life')").await;
    first.sql("insert into item (id) values (1); delete from item where id = 1; commit").await;
    let (mut second, done) = waiting.await.unwrap();
    done.unwrap();
    second.sql("commit").await;
    assert_eq!(world.one::<String>("select text from item").await, "second life");
    assert!(version(&world, 1).await > record(&world, "1").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncate_under_an_old_snapshot_is_refused_and_says_what_to_do() {
    let world = attached().await;
    for level in ["repeatable read", "serializable"] {
        let mut connection = world.pool.acquire().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("begin isolation level {level}"))).execute(&mut *connection).await.unwrap();
        let error = sqlx::query("truncate item").execute(&mut *connection).await.unwrap_err();
        let sentence = catchword::Error::from(error).to_string();
        assert!(sentence.contains("read committed") && sentence.contains("use delete"), "{sentence}");
        sqlx::query("rollback").execute(&mut *connection).await.unwrap();
    }
    world.sql("truncate item").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_floor_waits_for_open_writers() {
    let world = attached().await;
    let before = floor(&world).await;
    let (mut writer, mut operator) = (Session::open(&world).await, Session::open(&world).await);
    writer.sql("begin; insert into item (id) values (1)").await;

    operator.sql("set lock_timeout = '200ms'").await;
    assert_eq!(operator.attempt("select catchword.raise_floor('item')").await, Err("55P03".into()));
    assert_eq!(
        operator.attempt("select catchword.reindex('item', p_rewrite => true)").await,
        Err("55P03".into()),
        "reindex --all --rewrite raises it the same way"
    );
    assert_eq!(floor(&world).await, before);

    operator.sql("set lock_timeout = 0").await;
    let waiting = operator.waits_for(&world, "select catchword.raise_floor('item')").await;
    writer.sql("insert into item (id) values (2); commit").await;
    waiting.await.unwrap().1.unwrap();
    let raised = floor(&world).await;
    assert!(raised > number(&world, 2).await && raised > before && raised % 2 == 0, "{raised}");
}
