//! Where an audit stands, kept in `catchword.audit`: after a kill it goes on from there, and nothing is counted twice.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, PgPool, Row};

use super::{Counts, Example, Report, Request};
use crate::Error;
use crate::elastic::Target;
use crate::printable::printable;

/// Examples that are kept of each kind: enough to see what they have in common.
const EXAMPLES: usize = 10;

/// Which part of it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The keys of the table.
    Rows,
    /// The keys of recorded deletes.
    Records,
    /// What this one of the indices shows to readers.
    Documents(usize),
}

/// The row of an audit.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub id: i64,
    pub collection: String,
    pub targets: Vec<String>,
    pub repair: bool,
    pub content: bool,
    /// Of this share of the keys the documents are compared too, where they are not compared of all.
    pub content_share: Option<f64>,
    pub since: Option<DateTime<Utc>>,
    pub sample: Option<f64>,
    pub stage: Stage,
    pub cursor: Option<String>,
    pub point_in_time: Option<String>,
    pub looked: u64,
    /// Of the finished stages.
    pub counts: Counts,
    /// Of this stage so far; they go when the stage has to begin again.
    pub stage_counts: Counts,
    pub examples: Vec<Example>,
    pub scheduled: u64,
    pub base: DateTime<Utc>,
    asked_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

impl Ledger {
    /// Writes down what is to be compared.
    pub async fn begin(pool: &PgPool, request: &Request, targets: &[Target]) -> Result<Ledger, Error> {
        let whole = request.target.is_none() && request.since.is_none() && request.sample.is_none();
        let row = sqlx::query(include_str!("begin.sql"))
            .bind(&request.collection)
            .bind(targets.iter().map(Target::index).collect::<Vec<_>>())
            .bind(whole)
            .bind(request.repair)
            .bind(request.content)
            .bind(request.since)
            .bind(request.sample)
            .bind(&request.reason)
            .fetch_one(pool)
            .await?;
        Ledger::of(&row)
    }

    /// Reads where an audit stands. One that is finished is not gone on with.
    pub async fn read(pool: &PgPool, id: i64) -> Result<Ledger, Error> {
        let row = sqlx::query(include_str!("read.sql")).bind(id).fetch_optional(pool).await?;
        let ledger = row.as_ref().map(Ledger::of).transpose()?;
        if row.as_ref().is_some_and(|row| row.try_get::<Option<DateTime<Utc>>, _>("stopped_at").is_ok_and(|at| at.is_some())) {
            return Err(stopped(id));
        }
        match ledger {
            Some(ledger) if ledger.finished_at.is_none() => Ok(ledger),
            Some(_) => Err(Error::refused_with(format!("audit {id} is finished"), "begin a new one: catchword audit")),
            None => Err(Error::refused_with(format!("there is no audit {id}"), "begin one: catchword audit")),
        }
    }

    fn of(row: &PgRow) -> Result<Ledger, Error> {
        let (stage, target): (&str, i32) = (row.try_get("stage")?, row.try_get("target")?);
        let number = |name: &str| row.try_get::<i64, _>(name).map(|n| n.try_into().unwrap_or(0));
        Ok(Ledger {
            id: row.try_get("id")?,
            collection: row.try_get("collection")?,
            targets: row.try_get("targets")?,
            repair: row.try_get("repair")?,
            content: row.try_get("content")?,
            content_share: row.try_get("content_share")?,
            since: row.try_get("since")?,
            sample: row.try_get("sample")?,
            stage: match stage {
                "rows" => Stage::Rows,
                "records" => Stage::Records,
                _ => Stage::Documents(target.try_into().unwrap_or(0)),
            },
            cursor: row.try_get("cursor")?,
            point_in_time: row.try_get("point_in_time")?,
            looked: number("looked")?,
            counts: row.try_get::<Json<Counts>, _>("counts")?.0,
            stage_counts: row.try_get::<Json<Counts>, _>("stage_counts")?.0,
            examples: row.try_get::<Json<Vec<Example>>, _>("examples")?.0,
            scheduled: number("scheduled")?,
            base: row.try_get("base")?,
            asked_at: row.try_get("asked_at")?,
            finished_at: row.try_get("finished_at")?,
        })
    }

    /// Counts what was found, and keeps the first of each kind as examples.
    pub fn count(&mut self, name: &str, examples: impl IntoIterator<Item = Example>) {
        for example in examples {
            if self.examples.iter().filter(|kept| kept.kind == example.kind).count() < EXAMPLES {
                self.examples.push(example);
            }
        }
        *self.stage_counts.entry(name.to_owned()).or_default() += 1;
    }

    /// This stage is at its end, the next one begins.
    pub fn next_stage(&mut self) {
        self.stage = match self.stage {
            Stage::Rows => Stage::Records,
            Stage::Records => Stage::Documents(0),
            Stage::Documents(n) => Stage::Documents(n + 1),
        };
        for (name, count) in std::mem::take(&mut self.stage_counts) {
            *self.counts.entry(name).or_default() += count;
        }
        (self.cursor, self.point_in_time) = (None, None);
    }

    /// Keeps where it stands, in the transaction that schedules what was found.
    pub async fn note(&self, connection: &mut PgConnection) -> Result<(), Error> {
        let (stage, target) = match self.stage {
            Stage::Rows => ("rows", 0),
            Stage::Records => ("records", 0),
            Stage::Documents(n) => ("documents", n),
        };
        let noted = sqlx::query(include_str!("note.sql"))
            .bind(self.id)
            .bind(stage)
            .bind(i32::try_from(target).unwrap_or(i32::MAX))
            .bind(&self.cursor)
            .bind(&self.point_in_time)
            .bind(self.looked as i64)
            .bind(json!(self.counts))
            .bind(json!(self.stage_counts))
            .bind(json!(self.examples))
            .bind(self.scheduled as i64)
            .execute(connection)
            .await?;
        if noted.rows_affected() == 0 { Err(stopped(self.id)) } else { Ok(()) }
    }

    /// It came to its end.
    pub async fn finish(&mut self, pool: &PgPool) -> Result<(), Error> {
        self.finished_at = Some(sqlx::query_scalar(include_str!("finish.sql")).bind(self.id).fetch_one(pool).await?);
        Ok(())
    }

    /// What it found, with the counts of all stages.
    pub fn report(&self, mut counts: Counts, expected: Option<u64>) -> Report {
        let [pending, left, unknown] = ["pending", "left", "unknown"].map(|name| counts.remove(name).unwrap_or(0));
        Report {
            audit: self.id,
            collection: self.collection.clone(),
            indices: self.targets.clone(),
            looked: self.looked,
            expected: expected.map(|expected| expected.max(self.looked)),
            differences: counts,
            pending,
            left,
            unknown,
            scheduled: self.scheduled,
            repair: self.repair,
            content: self.content,
            content_share: self.content_share,
            since: self.since,
            sample: self.sample,
            paused: None,
            blocked: None,
            examples: self.examples.clone(),
            likely_causes: Vec::new(),
            asked_at: self.asked_at,
            finished_at: self.finished_at,
        }
    }
}

fn stopped(id: i64) -> Error {
    Error::refused_with(format!("audit {id} was stopped by an operator"), "begin a new one: catchword audit")
}

/// An audit, for people and scripts: what it has found so far, and whether somebody runs it.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    #[serde(flatten)]
    pub report: Report,
    /// Why it was asked for: operator, schedule, asked, rebuild, …
    pub reason: String,
    pub asked_by: String,
    /// `asked`: nobody has begun it; `running`; `resting`: nobody has gone on with it for ten minutes; `stopped` by an operator; `finished`.
    pub state: String,
}

/// The audits of these collections, the newest first; or one of them.
pub async fn shown(connection: &mut PgConnection, collections: &[String], id: Option<i64>, limit: i64) -> Result<Vec<Shown>, Error> {
    let rows = sqlx::query(include_str!("shown.sql")).bind(collections).bind(id).bind(limit).fetch_all(connection).await?;
    let one = |row: &PgRow| {
        let ledger = Ledger::of(row)?;
        let mut counts = ledger.counts.clone();
        for (name, count) in &ledger.stage_counts {
            *counts.entry(name.clone()).or_default() += count;
        }
        let report = ledger.report(counts, None);
        Ok(Shown { report, reason: row.try_get("reason")?, asked_by: row.try_get("asked_by")?, state: row.try_get("state")? })
    };
    rows.iter().map(one).collect()
}

/// Asks for an audit of a whole collection, which a worker runs: its number. One that is asked for already and has not begun is as good.
/// None: the collection has no index yet.
pub async fn start(connection: &mut PgConnection, collection: &str, repair: bool, content: bool, who: &str) -> Result<Option<i64>, Error> {
    let asked = sqlx::query_scalar("select catchword.start_audit($1, $2, $3, $4)").bind(collection).bind(repair).bind(content).bind(who);
    Ok(asked.fetch_one(connection).await?)
}

/// Stops an audit, whoever runs it: that one ends at its next page. False: it was over already.
pub async fn stop(connection: &mut PgConnection, id: i64, who: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("select catchword.stop_audit($1, $2)").bind(id).bind(who).fetch_one(connection).await?)
}

/// An audit that is not finished: it runs somewhere, or was cut short.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Unfinished {
    pub id: i64,
    pub collection: String,
    pub reason: String,
    pub looked: i64,
    pub asked_at: DateTime<Utc>,
    pub asked_by: String,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, by) = (self.asked_at.format("%Y-%m-%d %H:%M UTC"), printable(&self.asked_by));
        write!(
            f,
            "audit {} of {} ({}), asked for {at} by {by}, {} looked at",
            self.id,
            self.collection,
            printable(&self.reason),
            self.looked
        )
    }
}

/// The audits that are not finished and that an operator may go on with, the newest first: of one collection, or one of them, if that is
/// said.
pub async fn unfinished(connection: &mut PgConnection, collection: Option<&str>, id: Option<i64>) -> Result<Vec<Unfinished>, Error> {
    Ok(sqlx::query_as(include_str!("unfinished.sql")).bind(collection).bind(id).fetch_all(connection).await?)
}
