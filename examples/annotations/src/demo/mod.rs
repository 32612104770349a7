//! The demo: an outage of Elasticsearch, replayed, and what it stands on.
//!
//! Hypothesis once saved 21,500 annotations that never reached its search index, because what should have told the
//! index was down for two hours. [`run`] does the same here, with the real programs, and counts what is missing
//! afterwards. The outage is a [`Gate`] that closes; rows and documents live in a [`Scratch`] that is swept; the proof
//! is [`compare()`], key by key.

mod clients;
mod compare;
mod gate;
mod index;
mod programs;
mod scratch;
mod show;

pub use compare::{Compared, Side, compare};
pub use gate::Gate;
pub use index::Index;
pub use scratch::{Clock, Scratch};

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use catchword::config::{Environment, Tls};
use indicatif::HumanCount;
use sqlx::PgConnection;
use url::Url;

use clients::Clients;
use programs::{Program, Programs};
use show::{Bars, table};

/// How much is saved, and how long catchword waits before it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 21,500 annotations, and every default.
    Full,
    /// A tenth of them, and seconds instead of minutes.
    Fast,
}

impl Size {
    fn before(self) -> usize {
        self.in_outage() / 43
    }

    fn in_outage(self) -> usize {
        match self {
            Size::Full => 21_500,
            Size::Fast => 2_150,
        }
    }

    fn clock(self) -> Clock {
        match self {
            Size::Full => Clock::Usual,
            Size::Fast => Clock::Fast { delay: "3s", tick: "*/3 * * * * *" },
        }
    }
}

/// What comes after the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Everything is ended and dropped.
    End,
    /// Everything stays up, with the console open, until somebody interrupts it.
    Keep,
}

/// How long the queue may take to drain: a minute's delay, a minute's tick, a breaker that has to close, and the work.
const RECOVERY: Duration = Duration::from_secs(300);
/// How long search may take to find what was saved before the outage: a second if it was indexed at once, else as
/// long as the worker waits.
const FINDING: Duration = Duration::from_secs(180);
/// Of the first annotations, how many may be saved one by one until one is indexed at once.
const FIRST: usize = 25;
/// Between two looks at either side.
const LOOK: Duration = Duration::from_millis(250);

/// Replays the outage, says what happens, and returns how both sides compare in the end. Whatever ends it, the programs
/// are ended and what was made is dropped.
pub async fn run(size: Size, after: After) -> anyhow::Result<Compared> {
    let given = Environment::from_process(Tls::Verified)?;
    let upstream = upstream(&given.elasticsearch.url)?;
    // the order matters: what is declared last is dropped first, and the programs must be gone before their database
    let scratch = Scratch::create(&given, "demo", size.clock()).await?;
    let gate = Gate::before(&upstream).await?;
    let programs = Programs::new(&scratch, &given.elasticsearch, gate.address());
    introduce(size, &scratch);
    // beside the migrations: writing so many texts takes a while too
    let bodies = tokio::task::spawn_blocking(move || clients::bodies(size.before() + size.in_outage()));
    programs.run("annotation-api", &["migrate"]).await?;
    programs.run("catchword", &["migrate"]).await?;
    let (api, url) = programs.serve().await?;
    let mut worker = programs.work()?;
    let mut demo =
        Demo { size, clients: Clients::new(url, bodies.await?)?, database: scratch.connect().await?, scratch: &scratch, gate: &gate };
    match demo.outage(&mut worker).await {
        Ok(compared) => {
            let (console, address) = programs.show().await?;
            println!("\n5. The console: {address}");
            match after {
                After::End => println!("   `make demo KEEP=1` keeps it open"),
                After::Keep => {
                    println!("   sign in with {} to press its buttons; Ctrl-C ends everything", programs.key().await?);
                    std::future::pending::<()>().await;
                }
            }
            console.stop().await?;
            worker.stop().await?;
            api.stop().await?;
            Ok(compared)
        }
        Err(error) => {
            eprintln!("{}\n{}", api.tail(), worker.tail());
            Err(error)
        }
    }
}

/// Where the gate leads. It passes bytes on and knows no TLS: a certificate would name the server and not the gate.
fn upstream(url: &str) -> anyhow::Result<String> {
    let url = Url::parse(url)?;
    match (url.scheme(), url.host_str(), url.port_or_known_default()) {
        ("http", Some(host), Some(port)) => Ok(format!("{host}:{port}")),
        _ => bail!("the demo needs an Elasticsearch without TLS; unset ELASTICSEARCH_URL, and `make demo` starts one"),
    }
}

fn introduce(size: Size, scratch: &Scratch) {
    println!("An outage of Elasticsearch, replayed.");
    println!("   in a database and indices of its own ({}*), dropped at the end", scratch.prefix);
    match size {
        Size::Full => println!("   with the defaults: what is saved is looked at after 60 s, at every full minute, 2,500 at a time"),
        Size::Fast => println!("   FAST: what is saved is looked at after 3 s, every 3 s; the defaults are 60 s and every minute"),
    }
}

/// The story, and what it is told with.
struct Demo<'a> {
    size: Size,
    clients: Clients,
    database: PgConnection,
    scratch: &'a Scratch,
    gate: &'a Gate,
}

impl Demo<'_> {
    async fn outage(&mut self, worker: &mut Program) -> anyhow::Result<Compared> {
        println!("\n1. Elasticsearch is up.");
        let well = self.save_first(self.size.before()).await?;
        self.find(well as u64).await?;

        println!("\n2. Elasticsearch is down: the gate to it is closed.");
        self.gate.close();
        self.search_is_down().await?;
        let missed = self.save(self.size.in_outage()).await?;
        let before = self.compare().await?;
        println!("   missing in the index: {}", HumanCount(before.missing.len() as u64));

        println!("\n3. Elasticsearch is up again: the gate is open.");
        let jobs = self.jobs().await?;
        self.gate.open();
        let (recovered, after) = self.drain(worker, jobs, &before).await?;
        let rows = [
            ("saved", (well + missed) as u64),
            ("missing before", before.missing.len() as u64),
            ("indexed", after.documents.saturating_sub(before.documents) as u64),
            ("settled", jobs - self.jobs().await?),
            ("missing after", after.missing.len() as u64),
            ("seconds to recover", recovered.as_secs()),
        ];
        print!("\n{}", table(&rows));

        println!("\n4. Both sides, key by key.");
        println!("   {after}");
        if after.rows != well + missed {
            bail!("{} annotations were answered with 201, and {} rows are there", well + missed, after.rows);
        }
        println!("   {}", if after.agree() { "They agree: nothing was lost." } else { "They do not agree." });
        Ok(after)
    }

    /// Saves through the service; every one must be answered with 201.
    async fn save(&mut self, count: usize) -> anyhow::Result<usize> {
        let mut bars = Bars::new(&[("saved", count as u64)]);
        let saved = self.clients.save(count, 0, &mut bars).await?;
        bars.clear();
        println!("   {saved}");
        Ok(saved.count)
    }

    /// The same, the first ones one by one: an Elasticsearch that has just started takes more than a second for its
    /// first write, and several at once would only find that out together.
    async fn save_first(&mut self, count: usize) -> anyhow::Result<usize> {
        let mut bars = Bars::new(&[("saved", count as u64)]);
        let mut saved = self.clients.save(1, 0, &mut bars).await?;
        while saved.indexed == 0 && saved.count < FIRST {
            tokio::time::sleep(4 * LOOK).await;
            saved += self.clients.save(1, saved.count, &mut bars).await?;
        }
        saved += self.clients.save(count - saved.count, saved.count, &mut bars).await?;
        bars.clear();
        println!("   {saved}");
        Ok(saved.count)
    }

    /// Waits until search finds all of them.
    async fn find(&self, wanted: u64) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            let found = self.clients.search().await?;
            if found.total == wanted {
                println!("   search finds all {wanted}, {:.1} s later", started.elapsed().as_secs_f64());
                return Ok(());
            }
            if started.elapsed() > FINDING {
                bail!("search finds {} of {wanted}", found.total);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn search_is_down(&self) -> anyhow::Result<()> {
        let found = self.clients.search().await?;
        match (found.status, found.retry_after) {
            (503, Some(seconds)) => println!("   search answers 503, try again in {seconds} s"),
            (status, _) => bail!("search should answer 503 with Retry-After, and answers {status}"),
        }
        Ok(())
    }

    /// Shows the queue draining; returns how long it took until no job was left, and how both sides compare then.
    async fn drain(&mut self, worker: &mut Program, jobs: u64, before: &Compared) -> anyhow::Result<(Duration, Compared)> {
        let started = Instant::now();
        let mut bars = Bars::new(&[("indexed", before.missing.len() as u64), ("settled", jobs)]);
        let indexed = |documents: u64| documents.saturating_sub(before.documents as u64);
        loop {
            let left = self.jobs().await?;
            if left == 0 {
                let (recovered, after) = (started.elapsed(), self.compare().await?);
                bars.at(&[indexed(after.documents as u64), jobs]);
                bars.end();
                return Ok((recovered, after));
            }
            bars.at(&[indexed(self.scratch.index.count().await?), jobs.saturating_sub(left)]);
            worker.still_runs()?;
            if started.elapsed() > RECOVERY {
                bail!("{left} jobs are left after {RECOVERY:?}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn jobs(&mut self) -> anyhow::Result<u64> {
        let jobs: i64 = sqlx::query_scalar(include_str!("jobs.sql")).fetch_one(&mut self.database).await?;
        Ok(jobs.unsigned_abs())
    }

    async fn compare(&self) -> anyhow::Result<Compared> {
        let rows = self.scratch.rows().await.context("cannot read the rows")?;
        Ok(compare(&rows, &self.scratch.index.documents().await?))
    }
}
