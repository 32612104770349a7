//! Figure 20: Elasticsearch is down for a while, and answers again. How long until the first document is written, and how fast the queue is
//! drained then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::net::{TcpListener, TcpStream};

use crate::process::{Process, binary};
use crate::report::{Goal, Report};
use crate::seed::Size;
use crate::stats::{grouped, median};
use crate::world::{Bench, Layout, World};

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    let rows = bench.scale.pick(40_000, 10_000, 300);
    let (mut first, mut ratios, mut drained, mut usual) = (vec![], vec![], vec![], vec![]);
    for _ in 0..bench.scale.pick(3, 1, 1) {
        let world = bench.world(Layout { size: Size::Small, rows, worker: "canary = false" }).await?;
        let gate = Gate::before(&world.raw.url).await?;
        let mut command = binary(&world, None);
        command.env("ELASTICSEARCH_URL", &gate.url);
        let worker = Process::start(command.args(["worker", "--listen", "127.0.0.1:0"]))?;
        // live jobs, as many statements of a thousand rows make them
        let all = "do $$ declare n integer; begin loop
                     update annotation set text = text || '!' where id in (select id from annotation where text not like '%!' limit 1000);
                     get diagnostics n = row_count; exit when n = 0; commit; end loop; end $$";
        // the same queue after a pause that nobody was hurt by
        world.sql("select catchword.pause('annotation', 'bench', 'bench')").await?;
        world.sql(all).await?;
        world.sql("select catchword.resume('annotation', 'bench')").await?;
        let begun = Instant::now();
        empty(&world).await?;
        let calm = begun.elapsed().as_secs_f64();

        gate.down.store(true, Ordering::Relaxed);
        world.sql(&all.replace("'!'", "'?'").replace("%!", "%?")).await?;
        // long enough that the breaker waits as long as it ever does
        tokio::time::sleep(Duration::from_secs(bench.scale.pick(60, 20, 1))).await;
        let written = world.raw.indexed(&world.index()).await?;
        gate.down.store(false, Ordering::Relaxed);
        let back = Instant::now();
        while world.raw.indexed(&world.index()).await? == written {
            anyhow::ensure!(back.elapsed() < Duration::from_secs(300), "nothing is written after five minutes");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let until_first = back.elapsed().as_secs_f64();
        empty(&world).await?;
        let rest = back.elapsed().as_secs_f64() - until_first;
        first.push(until_first);
        ratios.push(calm / rest);
        drained.push(rows as f64 / rest);
        usual.push(rows as f64 / calm);
        worker.stop().await?;
        world.close().await?;
    }
    let mut report = Report::default();
    let took = median(&first);
    let what = "from the end of an outage until the first batch is written, seconds";
    report.line(what, format!("{took:.1} s"), "5 s", took, Goal::AtMost(5.0));
    let what = format!("from there until the {} jobs of the outage are settled", grouped(rows as f64));
    let limit = format!("{} jobs/s after a pause", grouped(median(&usual)));
    report.line(what, format!("{} jobs/s", grouped(median(&drained))), limit, median(&ratios), Goal::AtLeast(0.9));
    Ok(report)
}

async fn empty(world: &World) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(300);
    while world.one("select exists (select from catchword.job)").await? {
        anyhow::ensure!(Instant::now() < end, "the queue is not empty after five minutes");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Passes bytes on to a server, or hangs up at once.
struct Gate {
    url: String,
    down: Arc<AtomicBool>,
}

impl Gate {
    async fn before(url: &str) -> anyhow::Result<Gate> {
        let server = url.strip_prefix("http://").context("the bench's Elasticsearch has no TLS")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let gate = Gate { url: format!("http://{}", listener.local_addr()?), down: Arc::default() };
        let down = gate.down.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, server.clone(), down.clone()));
            }
        });
        Ok(gate)
    }
}

async fn pass_on(mut client: TcpStream, server: String, down: Arc<AtomicBool>) -> std::io::Result<()> {
    if down.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut server = TcpStream::connect(server).await?;
    let hung_up = async {
        while !down.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        passed = tokio::io::copy_bidirectional(&mut client, &mut server) => passed.map(|_| ()),
        () = hung_up => Ok(()),
    }
}
