//! A page with many notes: what one more costs, counted.

use super::{short, world};

/// Rows of the application that were written by now, as Postgres counts them: by the number of the transaction that wrote each.
const WRITTEN: &str =
    "select count(*) from (select xmin from h.note union all select xmin from h.page union all select xmin from h.member) w
                        where w.xmin::text::bigint >= $1";

#[tokio::test(flavor = "multi_thread")]
async fn one_more_note_on_a_page_with_20_000_costs_three_rows_and_three_documents_at_most() {
    let world = world().await;
    world.sql("insert into h.page (title, web_uri) values ('Popular', 'http://popular/')").await;
    world.sql("insert into h.member (username, authority) values ('mina', 'hypothes.is')").await;
    world.sql("insert into h.note (userid, page_id) select 'acct:mina@hypothes.is', 1 from generate_series(1, 20000)").await;
    let first: String = world.one("select id::text from h.note order by id limit 1").await;
    // whether they are indexed does not matter for what one more costs
    world.sql("delete from catchword.job; analyze h.note").await;
    let catchword = world.another().await;

    for n in 1..=3 {
        let (before, records): (i64, i64) = (
            world.one("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint").await,
            world.one("select count(*) from catchword.record").await,
        );
        world
            .sql(&format!(
                "begin; update h.page set updated = now() where id = 1; update h.member set last_login = now() where id = 1;
                 insert into h.note (userid, page_id, \"references\") values ('acct:mina@hypothes.is', 1, '{{{first}}}'); commit"
            ))
            .await;
        let jobs: i64 = world.one("select count(*) from catchword.job where collection = 'h'").await;
        assert_eq!(jobs, 2, "the note's own, and a touch of the one that it answers");
        let outcome = catchword.drain("test", &["h"]).await.unwrap();
        assert_eq!((outcome.touched, outcome.written), (1, 2), "{n}: {outcome}");
        let rows: i64 = sqlx::query_scalar(WRITTEN).bind(before).fetch_one(&world.pool).await.unwrap();
        let records = world.one::<i64>("select count(*) from catchword.record").await - records;
        assert!(rows <= 3 && records <= 1, "{n}: {rows} rows of the application's own statement, {records} records");
        let thread = world.source("h", &short(&first)).await.unwrap()["thread_ids"].as_array().unwrap().len();
        assert_eq!(thread, n);
    }
}
