//! Whether a write has reached the index: what SQL says of it, and waiting until it has.

mod schedule;
mod standing;
mod until;

use catchword::Catchword;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgDatabaseError;

use crate::common::{World, eventually};

/// What a statement is refused with, and the hint.
async fn refusal(world: &World, sql: &str) -> (String, String) {
    let error = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&world.pool).await.unwrap_err();
    let error = error.into_database_error().unwrap();
    let hint = error.downcast_ref::<PgDatabaseError>().hint().unwrap_or_default().to_owned();
    (error.message().to_owned(), hint)
}

/// Works until a key of `annotation` was given up, of which one more refusal is enough.
async fn bury(world: &World) {
    world.sql("update catchword.job set attempts = 4 where collection = 'annotation'").await;
    eventually("it is given up", async || {
        world.make_due().await;
        world.pass().await.buried == 1
    })
    .await;
}

/// Works until no job of the collection is left, however often a busy Elasticsearch does not answer in time.
async fn settle(world: &World, catchword: &Catchword, collection: &str) {
    eventually("no job is left", async || {
        catchword.drain("test", &[collection]).await.unwrap();
        world.one::<i64>(&format!("select count(*) from catchword.job where collection = '{collection}'")).await == 0
    })
    .await;
}
