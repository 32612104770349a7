//! Figure 6: claims and a drain behind dead tuples that a held snapshot keeps from being removed.

use std::time::Instant;

use catchword::job::{self, Cursor};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::report::{Goal, Report};
use crate::stats::{grouped, median, ms};
use crate::world::{Bench, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    world.schedule_all().await?;
    world.drain().await?;
    let steps = bench.scale.pick([0, 100_000, 1_000_000], [0, 20_000, 100_000], [0, 100, 1_000]);
    let (mut first, mut later, mut rates) = (vec![vec![]; 3], vec![vec![]; 3], vec![vec![]; 3]);
    for _ in 0..bench.scale.pick(2, 1, 1) {
        for (n, dead) in steps.into_iter().enumerate() {
            world.sql("vacuum catchword.job").await?;
            let mut holder = PgConnection::connect(&world.database_url).await?;
            if dead > 0 {
                sqlx::raw_sql("begin isolation level repeatable read; select count(*) from catchword.job").execute(&mut holder).await?;
                leave_dead(&world, dead).await?;
            }
            let jobs = world.schedule_all().await?;
            let took = claims(&world.pool, 12).await?;
            first[n].push(took[0]);
            later[n].push(median(&took[1..]));
            let outcome = world.drain().await?;
            rates[n].push(jobs as f64 / outcome.took.as_secs_f64());
            holder.close().await?;
        }
    }
    let mut report = Report::default();
    for n in [1, 2] {
        let (ours, clean) = (median(&later[n]), median(&later[0]));
        let what = format!("a claim behind the first, {} dead tuples", grouped(f64::from(steps[n])));
        report.line(what, ms(ours), format!("{} clean", ms(clean)), ours / clean, Goal::AtMost(1.5));
    }
    let (ours, clean) = (median(&rates[2]), median(&rates[0]));
    let what = format!("drain behind {} dead tuples", grouped(f64::from(steps[2])));
    report.line(what, format!("{} jobs/s", grouped(ours)), format!("{} jobs/s clean", grouped(clean)), ours / clean, Goal::AtLeast(0.9));
    let curve = |took: &[Vec<f64>]| steps.iter().zip(took).map(|(dead, took)| (f64::from(*dead), median(took) * 1e3)).collect();
    report.curve("first claim of a pass", curve(&first));
    report.curve("later claims", curve(&later));
    world.close().await?;
    Ok(report)
}

/// Jobs that came and went, before everything else in the order of the walk.
async fn leave_dead(world: &World, dead: i32) -> anyhow::Result<()> {
    world
        .sql(&format!(
            "insert into catchword.job (collection, key, enqueued_at, priority, tag)
             select 'annotation', n::text, now() - interval '1 hour' + n * interval '1 microsecond', 1000, 'dead' from generate_series(1, {dead}) n"
        ))
        .await?;
    world.sql("delete from catchword.job where tag = 'dead'").await
}

/// Seconds that each of these claims took, one behind the other from the top.
pub async fn claims(pool: &sqlx::PgPool, count: usize) -> anyhow::Result<Vec<f64>> {
    let mut connection = pool.acquire().await?;
    let (mut cursor, mut took) = (Cursor::TOP, vec![]);
    for _ in 0..count {
        sqlx::query(AssertSqlSafe("begin isolation level read committed".to_owned())).execute(&mut *connection).await?;
        let begun = Instant::now();
        let jobs = job::claim(&mut connection, "annotation", cursor, 2_500).await?;
        took.push(begun.elapsed().as_secs_f64());
        sqlx::query("rollback").execute(&mut *connection).await?;
        match jobs.last() {
            Some(last) => cursor = Cursor::behind(last),
            None => cursor = Cursor::TOP,
        }
    }
    Ok(took)
}
