//! Figure 10: a worker's memory while it drains.

use std::time::{Duration, Instant};

use crate::process::{Process, resident};
use crate::report::{Goal, Report};
use crate::seed::Size;
use crate::stats::grouped;
use crate::world::{Bench, Layout};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let sizes =
        [(Size::Small, bench.scale.pick(1_000_000, 30_000, 300), "0.5 KB"), (Size::Large, bench.scale.pick(100_000, 5_000, 50), "10 KB")];
    for (size, rows, name) in sizes {
        let world = bench.world(Layout { size, rows, worker: "tick = \"* * * * * *\"" }).await?;
        world.schedule_all().await?;
        let worker = Process::worker(&world, None)?;
        let (begun, mut curve) = (Instant::now(), vec![]);
        while world.one::<bool>("select exists (select from catchword.job)").await? {
            curve.push((begun.elapsed().as_secs_f64(), resident(worker.pid(), "VmRSS")?));
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let peak = resident(worker.pid(), "VmHWM")?;
        worker.stop().await?;
        let what = format!("a worker's peak while it drains {} of {name}, MB", grouped(rows as f64));
        report.line(what, format!("{peak:.0} MB"), "96 MB", peak, Goal::AtMost(96.0));
        // flat: the last third holds no more than the first, but for a little
        let most = |part: &[(f64, f64)]| part.iter().map(|(_, mb)| *mb).fold(0.0, f64::max);
        let third = curve.len() / 3;
        if third > 0 {
            let (early, late) = (most(&curve[..third]), most(&curve[curve.len() - third..]));
            let what = format!("the same, its last third against its first, {name}");
            report.line(what, format!("{late:.0} MB"), format!("{early:.0} MB"), late / early, Goal::AtMost(1.25));
        }
        report.curve(name, curve);
        world.close().await?;
    }
    Ok(report)
}
