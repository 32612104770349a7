use std::time::Duration;

use super::error::{Error, Fault};
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
    /// How often the keeper of the quick lane asks whether a live job is due, 1 ms to 10 s; none: there is no such lane.
    pub quick: Option<Duration>,
    /// Does it change a row of its own each minute, and watch it until search shows it?
    pub canary: bool,
    /// How often each collection is audited, with repair; none: never.
    pub audit: Option<Duration>,
    /// How old a tombstone is when it is swept, an hour at least.
    pub sweep_after: Duration,
}

impl Default for Worker {
    /// Every minute, 2,500 jobs, two batches, a canary, a quick lane every 25 ms; an audit a day, and tombstones for a week.
    fn default() -> Worker {
        let (quick, audit, sweep_after) = (Some(Duration::from_millis(25)), Some(24 * HOUR), 7 * 24 * HOUR);
        Worker { tick: "0 * * * * *".to_owned(), batch: MOST_JOBS, in_flight: 2, quick, canary: true, audit, sweep_after }
    }
}

/// The limits of a batch's time are made for this many; a larger one is only slower to fail.
const MOST_JOBS: u32 = 2_500;

/// Each batch in flight holds a connection of Postgres and up to 8 MiB.
const MOST_BATCHES: u32 = 4;

/// More often a server would do nothing else; more rarely is what a tick is for.
const OFTENEST: Duration = Duration::from_millis(1);
const RAREST: Duration = Duration::from_secs(10);

const HOUR: Duration = Duration::from_secs(3600);
/// More often an audit would never end where a collection is large.
const SHORTEST_AUDIT: Duration = HOUR;
/// No write is on its way for so long: a request is given 30 s. The rest is for machines that were put to sleep.
const SHORTEST_SWEEP: Duration = HOUR;
/// Whoever waits longer has forgotten it.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

const KEYS: &[Key] = &[
    Key { name: "tick", example: r#"tick = "0 * * * * *""# },
    Key { name: "batch", example: "batch = 2500" },
    Key { name: "in_flight", example: "in_flight = 2" },
    Key { name: "quick", example: r#"quick = "25ms""# },
    Key { name: "canary", example: "canary = false" },
    Key { name: "audit", example: r#"audit = "1day""# },
    Key { name: "sweep_after", example: r#"sweep_after = "7days""# },
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
        quick: section.parsed_or_off("quick", quick)?.unwrap_or(usual.quick),
        canary: section.truth("canary")?.unwrap_or(usual.canary),
        audit: section.parsed_or_off("audit", audit)?.unwrap_or(usual.audit),
        sweep_after: section.parsed("sweep_after", sweep_after)?.unwrap_or(usual.sweep_after),
    })
}

fn quick(text: &str) -> Result<Option<Duration>, Fault> {
    let wrong = |problem: &str| Fault::new(problem, r#"write a time span from "1ms" to "10s", as in "25ms", or "off""#);
    if text == "off" {
        return Ok(None);
    }
    match humantime::parse_duration(text) {
        Err(_) => Err(wrong("is not a time span")),
        Ok(span) if span < OFTENEST => Err(wrong("is shorter than a millisecond")),
        Ok(span) if span > RAREST => Err(wrong("is longer than 10 seconds")),
        Ok(span) => Ok(Some(span)),
    }
}

fn audit(text: &str) -> Result<Option<Duration>, Fault> {
    match text {
        "off" => Ok(None),
        _ => span(text, SHORTEST_AUDIT, r#"write a time span of an hour or more, as in "1day", or "off""#).map(Some),
    }
}

fn sweep_after(text: &str) -> Result<Duration, Fault> {
    span(text, SHORTEST_SWEEP, r#"write a time span of an hour or more, as in "7days""#)
}

fn span(text: &str, shortest: Duration, remedy: &str) -> Result<Duration, Fault> {
    let span = humantime::parse_duration(text).map_err(|_| Fault::new("is not a time span", remedy))?;
    match span {
        span if span < shortest => Err(Fault::new("is shorter than an hour", remedy)),
        span if span > LONGEST => Err(Fault::new("is longer than a year", remedy)),
        span => Ok(span),
    }
}
