use super::error::Error;
use super::section::{Key, Section};
use super::tick;

/// How `catchword worker` runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// When it wakes: cron with six fields, seconds first, in UTC.
    pub tick: String,
    /// Jobs per claim, 1 to 2,500.
    pub batch: u32,
    /// Batches at work at the same time, 1 to 4, each with its own connection.
    pub in_flight: usize,
    /// Does it change a row of its own each minute, and watch it until search shows it?
    pub canary: bool,
}

impl Default for Worker {
    /// Every minute, 2,500 jobs, two batches, a canary.
    fn default() -> Worker {
        Worker { tick: "0 * * * * *".to_owned(), batch: MOST_JOBS, in_flight: 2, canary: true }
    }
}

/// The limits of a batch's time are made for this many; a larger one is only slower to fail.
const MOST_JOBS: u32 = 2_500;

/// Each batch in flight holds a connection of Postgres and up to 8 MiB.
const MOST_BATCHES: u32 = 4;

const KEYS: &[Key] = &[
    Key { name: "tick", example: r#"tick = "0 * * * * *""# },
    Key { name: "batch", example: "batch = 2500" },
    Key { name: "in_flight", example: "in_flight = 2" },
    Key { name: "canary", example: "canary = false" },
];

pub(super) fn read(top: &Section) -> Result<Worker, Error> {
    let usual = Worker::default();
    let Some((at, table)) = top.table("worker")? else {
        return Ok(usual);
    };
    let section = Section::new(top.source, "worker".to_owned(), table, at, KEYS)?;
    Ok(Worker {
        tick: section.parsed("tick", tick::parse)?.unwrap_or(usual.tick),
        batch: section.number("batch", 1..=MOST_JOBS)?.unwrap_or(usual.batch),
        in_flight: section.number("in_flight", 1..=MOST_BATCHES)?.map_or(usual.in_flight, |batches| batches as usize),
        canary: section.truth("canary")?.unwrap_or(usual.canary),
    })
}
