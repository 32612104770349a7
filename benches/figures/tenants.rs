//! Figure 19: a flood of one tenant and single writes of others; and what a claim costs that takes from the lanes of tenants in turn.

use std::time::Instant;

use catchword::job::{self, Cursor, Fairly, Lanes};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

use crate::report::{Goal, Report};
use crate::stats::{grouped, median, ms};
use crate::world::{Bench, World};

const OTHERS: usize = 20;
const BATCH: u32 = 2_500;

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let world = bench.small().await?;
    flood(bench, &world, &mut report).await?;
    cost(bench, &world, &mut report).await?;
    world.close().await?;
    Ok(report)
}

/// The tenants are those whose lanes are not the flood's: who shares its lane waits as without lanes.
async fn flood(bench: &Bench, world: &World, report: &mut Report) -> anyhow::Result<()> {
    let jobs = bench.scale.pick(100_000, 20_000, 500);
    let lane = |tenant: &str| format!("catchword.lane('{tenant}')");
    world
        .sql(&format!(
            "insert into catchword.job (collection, key, enqueued_at, priority, tag, lane)
             select 'annotation', n::text, now() - interval '1 minute' + n * interval '1 ms', 0, 'flood', {} from generate_series(1, {jobs}) n",
            lane("flood")
        ))
        .await?;
    world
        .sql(&format!(
            "insert into catchword.job (collection, key, priority, tag, lane)
             select 'annotation', 'other' || n, 0, 'other', catchword.lane('other' || n) from generate_series(1, 1000) n
              where catchword.lane('other' || n) <> {} limit {OTHERS}",
            lane("flood")
        ))
        .await?;
    let mut transaction = world.pool.begin().await?;
    let (mut lanes, mut from, mut claimed) = (Lanes::default(), Cursor::TOP, 0);
    for _ in 0..2 {
        let Fairly { jobs, next } = job::claim_fairly(&mut transaction, "annotation", from, &mut lanes, BATCH, 1.0).await?;
        claimed += jobs.iter().filter(|job| job.tag == "other").count();
        from = next.unwrap_or(from);
    }
    transaction.rollback().await?;
    let what = format!("of {OTHERS} single writes of others behind {} of one tenant: in the first two batches", grouped(f64::from(jobs)));
    report.line(what, claimed.to_string(), OTHERS.to_string(), claimed as f64 / OTHERS as f64, Goal::AtLeast(1.0));
    world.sql("truncate catchword.job").await
}

/// The same queue, claimed from its lanes in turn and in the order of time.
async fn cost(bench: &Bench, world: &World, report: &mut Report) -> anyhow::Result<()> {
    let jobs = bench.scale.pick(1_000_000, 100_000, 1_000);
    let dead = bench.scale.pick(1_000_000, 100_000, 1_000);
    let insert = |jobs: i32, since: &str, tag: &str| {
        format!(
            "insert into catchword.job (collection, key, enqueued_at, priority, tag, lane)
             select 'annotation', n::text, now() - interval '{since}' + n * interval '1 us', 0, '{tag}', catchword.lane((n % 1000)::text)
               from generate_series(1, {jobs}) n"
        )
    };
    for behind in [0, dead] {
        world.sql("truncate catchword.job").await?;
        let mut holder = PgConnection::connect(&world.database_url).await?;
        if behind > 0 {
            sqlx::raw_sql("begin isolation level repeatable read; select count(*) from catchword.job").execute(&mut holder).await?;
            world.sql(&insert(behind, "1 hour", "dead")).await?;
            world.sql("delete from catchword.job where tag = 'dead'").await?;
        }
        world.sql(&insert(jobs, "1 minute", "live")).await?;
        world.sql("analyze catchword.job").await?;
        let mut ratios = Vec::new();
        let (mut fair, mut plain) = (Vec::new(), Vec::new());
        for round in 0..=bench.scale.pick(5, 3, 1) {
            // the first claim of a walk meets what is dead, the later ones do not
            let (a, b) = (median(&by_lanes(&world.pool).await?[1..]), median(&by_time(&world.pool).await?[1..]));
            if round > 0 {
                ratios.push(a / b);
                fair.push(a);
                plain.push(b);
            }
        }
        let queue = if behind > 0 { format!(", {} dead tuples", grouped(f64::from(behind))) } else { String::new() };
        let what = format!("a claim in turn from 1,000 tenants with {} jobs{queue}", grouped(f64::from(jobs)));
        report.line(what, ms(median(&fair)), format!("{} in the order of time", ms(median(&plain))), median(&ratios), Goal::AtMost(1.5));
        holder.close().await?;
    }
    Ok(())
}

async fn by_lanes(pool: &PgPool) -> anyhow::Result<Vec<f64>> {
    let mut connection = pool.acquire().await?;
    let (mut lanes, mut from, mut took) = (Lanes::default(), Cursor::TOP, vec![]);
    for _ in 0..6 {
        sqlx::query(AssertSqlSafe("begin isolation level read committed".to_owned())).execute(&mut *connection).await?;
        let begun = Instant::now();
        let claimed = job::claim_fairly(&mut connection, "annotation", from, &mut lanes, BATCH, 1.0).await?;
        took.push(begun.elapsed().as_secs_f64());
        sqlx::query("rollback").execute(&mut *connection).await?;
        from = claimed.next.unwrap_or(Cursor::TOP);
    }
    Ok(took)
}

async fn by_time(pool: &PgPool) -> anyhow::Result<Vec<f64>> {
    crate::dead_tuples::claims(pool, 6).await
}
