//! Figure 11: bytes of WAL for each job, full-page images aside.

use crate::report::{Goal, Report};
use crate::scale::Scale;
use crate::world::{Bench, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let world = bench.small().await?;
    world.schedule_all().await?;
    world.drain().await?;
    // vacuum's WAL is not the job's own, and images depend on when a checkpoint was
    world.sql("alter table catchword.job set (autovacuum_enabled = off)").await?;
    // a test does not change its server
    let images_off = bench.scale != Scale::Smoke;
    if images_off {
        world.sql("alter system set full_page_writes = off").await?;
        world.sql("select pg_reload_conf()").await?;
    }
    let measured = measure(&world).await;
    if images_off {
        world.sql("alter system reset full_page_writes").await?;
        world.sql("select pg_reload_conf()").await?;
    }
    let (scheduled, worked, written) = measured?;

    let mut report = Report::default();
    let bytes = |bytes: f64| format!("{bytes:.0} bytes");
    report.line(
        "WAL per job, scheduled and settled, kB",
        bytes(scheduled + worked),
        "0.5 kB",
        (scheduled + worked) / 1e3,
        Goal::AtMost(0.5),
    );
    report.line("of it for claim and settle, kB", bytes(worked), "0.18 kB", worked / 1e3, Goal::AtMost(0.18));
    report.note(format!("a job whose document had to be written is claimed twice: {written:.0} bytes for both claims and settling"));
    world.close().await?;
    Ok(report)
}

/// Bytes per job: scheduling; claim and settle; the same where the document is missing, so that there are two claims.
async fn measure(world: &World) -> anyhow::Result<(f64, f64, f64)> {
    // the setting is heeded from the next checkpoint on
    world.sql("checkpoint").await?;
    let start = position(world).await?;
    let jobs = world.schedule_all().await? as f64;
    let scheduled = position(world).await?;
    world.drain().await?;
    let worked = position(world).await?;
    world.empty_index().await?;
    world.schedule_all().await?;
    let again = position(world).await?;
    world.drain().await?;
    let written = position(world).await?;
    Ok(((scheduled - start) / jobs, (worked - scheduled) / jobs, (written - again) / jobs))
}

async fn position(world: &World) -> anyhow::Result<f64> {
    world.one("select (pg_current_wal_insert_lsn() - '0/0')::float8").await
}
