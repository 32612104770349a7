//! Figure 3: the transaction of `store_and_schedule`, and a plain insert, against the same insert into a table without triggers.

use std::sync::Arc;
use std::time::Duration;

use catchword::{Catchword, Error, Stored};
use sqlx::{PgConnection, PgPool};

use crate::load::closed;
use crate::report::{Goal, Report};
use crate::stats::{grouped, median, ms, percentile};
use crate::world::{Bench, World};

const COLUMNS: &str =
    "(userid, text, target_uri, target_uri_normalized) values ('acct:mina@example.org', $1, 'https://example.org/a', 'example.org/a')";

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    world.sql("create table plain (like annotation including all)").await?;
    // "including all" leaves out what the application's own table has, too
    world
        .sql("alter table plain add foreign key (document_id) references document (id); insert into plain select * from annotation")
        .await?;
    world.sql("vacuum (analyze) plain").await?;
    let text: Arc<str> = "What a reader notes in the margin, ".repeat(10).into();
    let mut report = Report::default();
    for clients in [1, 8] {
        let calls = bench.scale.pick(2_000, 400, 16);
        let (mut p50, mut p99) = (vec![], vec![]);
        let (mut shown, mut plain_shown) = ((vec![], vec![]), (vec![], vec![]));
        for round in 0..=bench.scale.pick(7, 3, 1) {
            let plain = plain(&world.pool, &text, clients, calls).await?;
            let ours = ours(&world.catchword, &text, clients, calls).await?;
            if round > 0 {
                let (a, b) = (percentile(&ours, 0.5), percentile(&plain, 0.5));
                let (c, d) = (percentile(&ours, 0.99), percentile(&plain, 0.99));
                p50.push(a / b);
                p99.push(c / d);
                shown.0.push(a);
                shown.1.push(c);
                plain_shown.0.push(b);
                plain_shown.1.push(d);
            }
        }
        for (name, ratios, ours, plain) in [("p50", p50, shown.0, plain_shown.0), ("p99", p99, shown.1, plain_shown.1)] {
            let what = format!("store's transaction, {clients} client{}, {name}", if clients == 1 { "" } else { "s" });
            let most = match (name, clients) {
                ("p50", 1) => 1.35,
                ("p50", _) => 1.15,
                _ => 1.25,
            };
            report.line(what, ms(median(&ours)), format!("{} plain insert", ms(median(&plain))), median(&ratios), Goal::AtMost(most));
        }
    }
    rates(bench, &world, &text, &mut report).await?;
    world.close().await?;
    Ok(report)
}

/// Single inserts by eight clients as fast as they can, each a transaction of its own.
async fn rates(bench: &Bench, world: &World, text: &Arc<str>, report: &mut Report) -> anyhow::Result<()> {
    let calls = bench.scale.pick(20_000, 4_000, 64);
    let (mut ratios, mut ours, mut plain) = (vec![], vec![], vec![]);
    for round in 0..=bench.scale.pick(7, 3, 1) {
        let mut rate = [0.0; 2];
        for (rate, table) in rate.iter_mut().zip(["plain", "annotation"]) {
            let (pool, text) = (world.pool.clone(), text.clone());
            let call = move |_| {
                let (pool, text) = (pool.clone(), text.clone());
                async move {
                    sqlx::query(sqlx::AssertSqlSafe(format!("insert into {table} {COLUMNS}"))).bind(&*text).execute(&pool).await?;
                    Ok(())
                }
            };
            *rate = calls as f64 / closed(8, calls, call).await?.1.as_secs_f64();
        }
        if round > 0 {
            ratios.push(rate[1] / rate[0]);
            plain.push(rate[0]);
            ours.push(rate[1]);
        }
    }
    let limit = format!("{}/s without triggers", grouped(median(&plain)));
    let what = "plain inserts of one row, 8 clients";
    report.line(what, format!("{}/s", grouped(median(&ours))), limit, median(&ratios), Goal::AtLeast(0.75));
    Ok(())
}

/// Nothing is named to be indexed directly: what is timed is begin, insert, commit.
async fn ours(catchword: &Catchword, text: &Arc<str>, clients: usize, calls: usize) -> anyhow::Result<Vec<Duration>> {
    let (catchword, text) = (catchword.clone(), text.clone());
    let call = move |_| {
        let (catchword, text) = (catchword.clone(), text.clone());
        async move {
            let stored = catchword.store_and_schedule("annotation", async |tx: &mut PgConnection| {
                sqlx::query(sqlx::AssertSqlSafe(format!("insert into annotation {COLUMNS}"))).bind(&*text).execute(tx).await?;
                Ok::<_, Error>(Stored::new((), [""; 0]))
            });
            stored.await?;
            Ok(())
        }
    };
    Ok(closed(clients, calls, call).await?.0)
}

async fn plain(pool: &PgPool, text: &Arc<str>, clients: usize, calls: usize) -> anyhow::Result<Vec<Duration>> {
    let (pool, text) = (pool.clone(), text.clone());
    let call = move |_| {
        let (pool, text) = (pool.clone(), text.clone());
        async move {
            let mut tx = pool.begin().await?;
            sqlx::query(sqlx::AssertSqlSafe(format!("insert into plain {COLUMNS}"))).bind(&*text).execute(&mut *tx).await?;
            tx.commit().await?;
            Ok(())
        }
    };
    Ok(closed(clients, calls, call).await?.0)
}
