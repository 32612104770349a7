//! The figures of docs/benchmarks.md. Every figure is a ratio against a limit that is measured in the same run, interleaved with it.
//!
//! `make bench` runs them all, `make bench QUICK=1` with fewer rows, `make bench ONLY=1,2` some of them. Without `--bench`, as
//! `cargo test` calls it, each runs with a handful of rows and nothing is judged.

// a bench never cancels its own begin
#![allow(clippy::disallowed_methods)]

mod counted;
mod cpu;
mod load;
mod plot;
mod process;
mod raw;
mod report;
mod scale;
mod seed;
mod stats;
mod world;

mod audit;
mod current;
mod dead_tuples;
mod differences;
mod direct;
mod fairness;
mod gathered;
mod idle;
mod large_update;
mod long_queue;
mod memory;
mod missing;
mod outage;
mod plans;
mod quick;
mod reindex;
mod serve;
mod tenants;
mod transaction;
mod wal;
mod workers;

use std::time::Instant;

use report::Report;
use scale::Scale;
use world::Bench;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let scale = Scale::of(&words);
    let only = words.iter().position(|word| word == "--only").and_then(|at| words.get(at + 1)).map(|list| numbers(list));
    // a word that is no option is the name of a test: none is called so
    if scale == Scale::Smoke && words.iter().any(|word| !word.starts_with('-')) && only.is_none() {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(scale, only))
}

fn numbers(list: &str) -> Vec<u8> {
    list.split(',').filter_map(|number| number.trim().parse().ok()).collect()
}

async fn run(scale: Scale, only: Option<Vec<u8>>) -> anyhow::Result<()> {
    let bench = Bench::open(scale).await?;
    let wanted = |number: u8| only.as_ref().is_none_or(|only| only.contains(&number));
    macro_rules! figures {
        ($($number:literal $module:ident),* $(,)?) => {$(
            if wanted($number) {
                let started = Instant::now();
                eprintln!("figure {}: {}", $number, stringify!($module));
                let report: Report = $module::run(&bench).await?;
                report.keep($number, scale, started.elapsed())?;
            }
        )*};
    }
    figures! {
        1 missing,
        2 current,
        3 transaction,
        4 direct,
        5 gathered,
        6 dead_tuples,
        7 long_queue,
        8 reindex,
        9 fairness,
        10 memory,
        11 wal,
        12 idle,
        13 large_update,
        14 plans,
        15 workers,
        16 audit,
        17 differences,
        18 quick,
        19 tenants,
        20 outage,
        21 serve,
    }
    bench.close().await?;
    if scale != Scale::Smoke {
        report::print(scale)?;
        plot::draw(scale)?;
    }
    Ok(())
}
