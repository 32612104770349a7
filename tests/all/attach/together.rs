//! The transaction that writes the row commits the job, or neither.

use super::{Session, attached, keys};
use crate::common::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn row_and_job_become_visible_together() {
    let world = attached().await;
    let mut writer = Session::open(&world).await;
    let seen = "select format('%s rows, %s jobs', (select count(*) from item), (select count(*) from catchword.job))";

    writer.sql("begin; insert into item (id) values (1)").await;
    assert_eq!(world.one::<String>(seen).await, "0 rows, 0 jobs");
    writer.sql("commit").await;
    assert_eq!(world.one::<String>(seen).await, "1 rows, 1 jobs");
    let same: bool = world.one("select (select xmin from catchword.job where key = '1') = (select xmin from item where id = 1)").await;
    assert!(same, "one transaction wrote both");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_leaves_neither_row_nor_job_nor_record() {
    let world = attached().await;
    world.sql("insert into item (id) values (1)").await;
    super::forget(&world).await;
    let mut writer = Session::open(&world).await;

    writer
        .sql("begin; insert into item (id) values (2); delete from item where id = 1; update item set id = 3 where id = 2; rollback")
        .await;

    assert_eq!(keys(&world).await, [""; 0]);
    assert_eq!(world.one::<i64>("select count(*) from catchword.record").await, 0);
    assert_eq!(world.all::<i64>("select id from item").await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_that_is_rolled_back_leaves_only_the_outer_job() {
    let world = attached().await;
    let mut writer = Session::open(&world).await;

    writer.sql("begin; insert into item (id) values (1); savepoint inner_part; insert into item (id) values (2)").await;
    assert_eq!(writer.attempt("insert into item (id) values (1)").await, Err("23505".into()));
    writer.sql("rollback to inner_part; insert into item (id) values (3); commit").await;

    assert_eq!(keys(&world).await, ["1", "3"]);
    assert_eq!(world.all::<i64>("select id from item order by 1").await, [1, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_killed_before_its_commit_leaves_neither() {
    let world = attached().await;
    world.sql("insert into item (id) values (1)").await;
    super::forget(&world).await;
    let mut writer = Session::open(&world).await;
    let pid = writer.pid;

    writer.sql("begin; insert into item (id) values (2); delete from item where id = 1").await;
    world.sql(&format!("select pg_terminate_backend({pid})")).await;
    let gone = format!("select not exists (select from pg_stat_activity where pid = {pid})");
    eventually("the session is gone", async || world.one(&gone).await).await;

    assert!(writer.attempt("commit").await.is_err());
    assert_eq!(keys(&world).await, [""; 0]);
    assert_eq!(world.all::<i64>("select id from item").await, [1]);
    assert_eq!(world.one::<i64>("select count(*) from catchword.record").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_fails_half_way_leaves_no_job() {
    let world = attached().await;
    let mut writer = Session::open(&world).await;
    let error = writer.attempt("insert into item (id) values (1), (2), (1)").await;
    assert_eq!(error, Err("23505".into()));
    assert_eq!(keys(&world).await, [""; 0]);
}
