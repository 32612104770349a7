//! Who holds vacuum back, for real: a prepared transaction, a replication slot and a standby, on servers of the test's own.

use sqlx::{Connection, PgConnection};

use crate::common::{Layout, World, eventually, start};
use crate::faults::restore::Server;
use crate::operate::metrics::scrape;

/// More transactions than anybody may hold back, within one: each row of the loop is written by one of its own.
const MANY_TRANSACTIONS: &str = "create temporary table many (); do $$ begin for i in 1..1000100 loop
    begin insert into many default values; exception when division_by_zero then null; end; end loop; end $$; drop table many";

#[tokio::test(flavor = "multi_thread")]
async fn prepared_transactions_slots_and_standbys_that_hold_vacuum_back_are_seen() {
    let (primary, standby) = (Server::start().await, Server::start().await);
    let world = World::with(Layout { postgres: Some(primary.url.clone()), ..Layout::default() }).await;
    world.sql("alter system set max_prepared_transactions = 5").await;
    world.sql("select pg_create_physical_replication_slot('behind', true)").await;
    standby.follow(&primary, "primary_slot_name = 'behind'\nhot_standby_feedback = on\nwal_receiver_status_interval = 1").await;
    let worker = start(&world).await;
    let seconds = async |by: &str| scrape(&world, &worker).await.get(&format!("catchword_vacuum_held_back_seconds{{by=\"{by}\"}}"));
    for by in ["prepared", "slot", "standby"] {
        eventually("nobody holds back yet", async || seconds(by).await == Some(0.0)).await;
    }

    let mut forgetful = world.pool.acquire().await.unwrap();
    let prepare = "begin; insert into catchword.journal (what, detail) values ('test', 'prepared'); prepare transaction 'forgotten'";
    sqlx::raw_sql(prepare).execute(&mut *forgetful).await.unwrap();
    eventually("a prepared transaction is seen", async || seconds("prepared").await > Some(0.0)).await;
    let held = held_back(&world).await;
    let prepared = held.iter().find(|held| held.0 == "prepared").unwrap_or_else(|| panic!("{held:?}"));
    assert!(prepared.1.starts_with("prepared transaction forgotten of ") && prepared.2 >= Some(0.0), "{prepared:?}");
    world.sql("rollback prepared 'forgotten'").await;
    eventually("it is decided", async || seconds("prepared").await == Some(0.0)).await;

    // a long query on the standby holds back by the slot
    standby.up().await;
    let database = world.database_url.rsplit('/').next().unwrap();
    // it has the primary's password now
    let address = standby.recall("postgres.url");
    let mut reader = PgConnection::connect(&format!("{}/{database}", address.rsplit_once('/').unwrap().0)).await.unwrap();
    sqlx::raw_sql("begin isolation level repeatable read; select count(*) from catchword.job").execute(&mut reader).await.unwrap();
    eventually("the slot stands still", async || seconds("slot").await > Some(1.0)).await;
    assert_eq!(vacuum(&world).await, None, "not for long");
    world.sql(MANY_TRANSACTIONS).await;
    let said = vacuum(&world).await.unwrap();
    assert!(said.contains("replication slot behind has held vacuum back for 10") && said.contains("pg_drop_replication_slot"), "{said}");

    // and the standby alone, without a slot
    let standby_is_told = "alter system reset primary_slot_name";
    sqlx::raw_sql(standby_is_told).execute(&mut PgConnection::connect(&address).await.unwrap()).await.unwrap();
    sqlx::raw_sql("select pg_reload_conf()").execute(&mut PgConnection::connect(&address).await.unwrap()).await.unwrap();
    eventually("the slot can be dropped", async || {
        let unused = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = 'behind' and not active";
        !world.all::<Option<String>>(&format!("select null::text from ({unused}) as dropped")).await.is_empty()
    })
    .await;
    eventually("the standby stands still", async || seconds("standby").await > Some(1.0)).await;
    assert_eq!(seconds("slot").await, Some(0.0));
    let said = vacuum(&world).await.unwrap();
    assert!(said.contains("standby 127.0.0.1") && said.contains("hot_standby_feedback = off"), "{said}");

    sqlx::raw_sql("rollback").execute(&mut reader).await.unwrap();
    eventually("nothing is held back", async || vacuum(&world).await.is_none()).await;
}

async fn held_back(world: &World) -> Vec<(String, String, Option<f64>, i64)> {
    sqlx::query_as(include_str!("../../../src/standing/vacuum.sql")).fetch_all(&world.pool).await.unwrap()
}

/// What `catchword check` says of it; none: that it is well.
async fn vacuum(world: &World) -> Option<String> {
    let (_, said, _) = world.run(&["check"]).await;
    said.lines().find(|line| line.starts_with("unwell   CatchwordVacuumHeldBack")).map(str::to_owned)
}
