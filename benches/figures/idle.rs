//! Figure 12: a worker with nothing to do, with one collection and with three, and what its canary and the quick lane add.

use std::sync::atomic::Ordering;
use std::time::Duration;

use catchword::Catchword;
use catchword::config::Config;

use crate::counted::counted;
use crate::process::{Process, resident};
use crate::report::{Goal, Report};
use crate::seed::Size;
use crate::world::{Bench, Layout, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let one = world(bench, "canary = false\nquick = \"off\"").await?;
    let three = world(bench, "canary = false\nquick = \"off\"").await?;
    add_collections(&three).await?;
    let canary = world(bench, "canary = true\nquick = \"off\"").await?;
    let quick = world(bench, "canary = false").await?;
    // four processes beside each other: none of them does anything
    let (idle, idle_of_three, with_canary, with_lane) =
        tokio::try_join!(measure(bench, &one), measure(bench, &three), measure(bench, &canary), measure(bench, &quick))?;
    let mut report = Report::default();
    let Idle { asked, used, memory } = idle;
    report.line("an idle worker's memory, MB", format!("{memory:.1} MB"), "25 MB", memory, Goal::AtMost(25.0));
    report.line("its processor time, %", format!("{used:.2} %"), "0.1 %", used, Goal::AtMost(0.1));
    report.line("its queries a minute, one collection", format!("{asked:.1}"), "4", asked, Goal::AtMost(4.0));
    let each = idle_of_three.asked / 3.0;
    let what = "its queries a minute and collection, three collections";
    report.line(what, format!("{each:.1} ({:.1} in all)", idle_of_three.asked), "4", each, Goal::AtMost(4.0));
    let Idle { asked, used, memory } = with_lane;
    report.line("an idle worker that keeps the quick lane, its memory, MB", format!("{memory:.1} MB"), "20 MB", memory, Goal::AtMost(20.0));
    report.line("its processor time, with the quick lane, %", format!("{used:.2} %"), "0.3 %", used, Goal::AtMost(0.3));
    report.note(format!("with the quick lane, idle for over a minute: {asked:.0} queries a minute"));
    // a minute that begins just after a beat may have none
    if bench.scale.pick(true, false, false) {
        report.note(format!("with its canary, which goes all the way once a minute: {:.1} queries a minute", with_canary.asked));
    }
    for world in [one, three, canary, quick] {
        world.close().await?;
    }
    Ok(report)
}

struct Idle {
    /// Queries a minute.
    asked: f64,
    /// Of one processor, per cent.
    used: f64,
    /// Megabytes.
    memory: f64,
}

async fn measure(bench: &Bench, world: &World) -> anyhow::Result<Idle> {
    let (url, queries) = counted(&world.database_url).await?;
    let worker = Process::worker(world, Some(&url))?;
    // its start is not idleness
    tokio::time::sleep(Duration::from_secs(bench.scale.pick(65, 5, 1))).await;
    let seconds = bench.scale.pick(120, 60, 1);
    let (asked, used) = (queries.load(Ordering::Relaxed), crate::cpu::used(worker.pid()));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let asked = (queries.load(Ordering::Relaxed) - asked) as f64 * 60.0 / seconds as f64;
    let used = (crate::cpu::used(worker.pid()) - used) / seconds as f64 * 100.0;
    let memory = resident(worker.pid(), "VmRSS")?;
    worker.stop().await?;
    Ok(Idle { asked, used, memory })
}

async fn world(bench: &Bench, worker: &'static str) -> anyhow::Result<World> {
    bench.world(Layout { size: Size::Small, rows: bench.scale.pick(200_000, 20_000, 300), worker }).await
}

/// Two more collections, without rows.
async fn add_collections(world: &World) -> anyhow::Result<()> {
    let path = world.folder.join("catchword.toml");
    let mut text = std::fs::read_to_string(&path)?;
    for name in ["second", "third"] {
        world
            .sql(&format!(
                "create table {name} (id bigint primary key, text text, catchword_revision bigint);
                 comment on column {name}.catchword_revision is 'catchword: revision';
                 create view {name}_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from {name}"
            ))
            .await?;
        text += &format!(
            "\n[[collection]]\nname = \"{name}\"\ntable = \"{name}\"\nkey = \"id\"\nview = \"{name}_document\"\nmapping = \"annotation.json\"\n"
        );
    }
    std::fs::write(&path, text)?;
    Catchword::open(Config::read(&path)?, &world.environment)?.migrate().await?;
    Ok(())
}
