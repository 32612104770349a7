//! What only Postgres knows, read just before a scrape or an export and never in between: an idle worker asks nothing for its metrics.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{Connection, FromRow, PgConnection};
use tokio::time::{Instant, timeout};

use super::watch::Part;
use crate::audit::{self, Verified};
use crate::job::{self, Census, Storage};
use crate::rebuild::{self, Standing};
use crate::{Catchword, Error, database, operate};

/// A scrape waits this long for Postgres; then it answers without.
const LIMIT: Duration = Duration::from_secs(2);
/// Scrapes within this share one reading.
const FRESH: Duration = Duration::from_secs(1);

/// The last reading, and who reads.
pub(crate) struct Gauges {
    reader: tokio::sync::Mutex<Reader>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    part: Option<Part>,
    up: bool,
    reading: Option<Reading>,
}

/// A connection beside the pool: a scrape neither waits for a direct write nor holds one up, and learns at once that Postgres is away.
#[derive(Default)]
struct Reader {
    connection: Option<PgConnection>,
    read_at: Option<Instant>,
    stood_still: StoodStill,
}

/// What was read. A part that Postgres refused, or did not answer in time, is absent.
#[derive(Default)]
pub(super) struct Reading {
    pub censuses: Vec<(String, Census)>,
    /// For how long each collection has been paused.
    pub pauses: Vec<(String, Option<f64>)>,
    /// The rebuild of each collection, if one is under way.
    pub rebuilds: Vec<(String, Option<Standing>)>,
    /// What audits and sentinels say of each collection.
    pub verified: Vec<(String, Verified)>,
    pub storage: Option<Storage>,
    /// Who holds vacuum back, and for how long.
    pub held_back: Vec<(&'static str, f64)>,
}

impl Catchword {
    /// Reads for the gauges what only Postgres knows: before each scrape and each export. Takes two seconds at most, whatever happens to
    /// Postgres; calls within a second share one reading.
    pub async fn observe(&self) {
        let gauges = &self.inner.gauges;
        let Some(part) = gauges.known().part else { return };
        // one at a time; who waited for another's reading takes it
        let Ok(mut reader) = timeout(LIMIT, gauges.reader.lock()).await else { return };
        if reader.read_at.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        // taken out, so that a reading that is cut short closes its connection
        let (connection, mut stood_still) = (reader.connection.take(), std::mem::take(&mut reader.stood_still));
        let read = timeout(LIMIT, self.read(connection, part, &mut stood_still)).await;
        let (connection, reading) = match read {
            Ok(Ok((connection, reading))) => (Some(connection), Some(reading)),
            Ok(Err(error)) => {
                tracing::debug!("postgres could not be read for the metrics: {error}");
                (None, None)
            }
            Err(_) => (None, None),
        };
        *reader = Reader { connection, stood_still, read_at: Some(Instant::now()) };
        let mut known = gauges.known();
        known.up = reading.is_some();
        known.reading = reading;
    }

    async fn read(&self, kept: Option<PgConnection>, part: Part, stood_still: &mut StoodStill) -> Result<(PgConnection, Reading), Error> {
        let mut connection = match answering(kept).await {
            Some(kept) => kept,
            None => database::beside(&self.inner.pool, LIMIT).await?,
        };
        if part == Part::Application {
            return Ok((connection, Reading::default()));
        }
        let names: Vec<&String> = self.inner.config.served().map(|collection| &collection.name).collect();
        let c = &mut connection;
        let mut reading = Reading::default();
        for name in &names {
            // what one had to wait for in vain, the next would
            let Some(census) = said(job::census(c, name).await)? else { break };
            reading.censuses.push((name.to_string(), census));
            if let Some(Some(verified)) = said(audit::verified(c, name).await)? {
                reading.verified.push((name.to_string(), verified));
            }
        }
        if let Some(pauses) = said(operate::pauses(c).await)? {
            let seconds = |name: &str| pauses.iter().find(|pause| pause.collection == name).map(|pause| pause.seconds);
            reading.pauses = names.iter().map(|name| (name.to_string(), seconds(name))).collect();
        }
        let all: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        if let Some(rebuilds) = said(rebuild::standing(c, &all).await)? {
            let of = |name: &str| rebuilds.iter().find(|standing| standing.rebuild.collection == name).cloned();
            reading.rebuilds = all.iter().map(|name| ((*name).to_owned(), of(name))).collect();
        }
        reading.storage = said(job::storage(c).await)?;
        if let Some(holders) = said(holders(c).await)? {
            reading.held_back = stood_still.held_back(&holders, Instant::now());
        }
        Ok((connection, reading))
    }
}

/// The connection of the last reading, if it still answers.
async fn answering(kept: Option<PgConnection>) -> Option<PgConnection> {
    let mut kept = kept?;
    kept.ping().await.ok().map(|()| kept)
}

/// A part that Postgres refused is left out; without an answer all is.
fn said<T>(part: Result<T, Error>) -> Result<Option<T>, Error> {
    match part {
        Ok(part) => Ok(Some(part)),
        Err(error) if error.sqlstate().is_some() => {
            tracing::debug!("a part of the metrics is left out: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl Gauges {
    pub fn new() -> Gauges {
        Gauges { reader: tokio::sync::Mutex::default(), known: Mutex::default() }
    }

    pub(super) fn serve(&self, part: Part) {
        self.known().part = Some(part);
    }

    pub(super) fn postgres_is_up(&self) -> bool {
        self.known().up
    }

    pub(super) fn last(&self) -> impl std::ops::Deref<Target = Option<Reading>> + '_ {
        struct Last<'a>(MutexGuard<'a, Known>);
        impl std::ops::Deref for Last<'_> {
            type Target = Option<Reading>;
            fn deref(&self) -> &Option<Reading> {
                &self.0.reading
            }
        }
        Last(self.known())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who keeps vacuum from removing dead tuples of this database.
#[derive(Clone, Debug, FromRow)]
struct Holder {
    /// session, prepared, slot or standby
    by: String,
    name: String,
    /// For how long, where Postgres knows.
    seconds: Option<f64>,
    /// The oldest transaction it needs.
    xmin: Option<String>,
}

async fn holders(connection: &mut PgConnection) -> Result<Vec<Holder>, Error> {
    Ok(sqlx::query_as(include_str!("holders.sql")).fetch_all(connection).await?)
}

/// A slot or a standby has no clock: since when has it needed the same transaction?
#[derive(Default)]
struct StoodStill(HashMap<(String, String), (String, Instant)>);

impl StoodStill {
    /// The longest of each kind; 0 where there is none.
    fn held_back(&mut self, holders: &[Holder], now: Instant) -> Vec<(&'static str, f64)> {
        self.0.retain(|(by, name), _| holders.iter().any(|holder| (&holder.by, &holder.name) == (by, name)));
        let mut longest = ["session", "prepared", "slot", "standby"].map(|by| (by, 0.0));
        for holder in holders {
            let seconds = holder.seconds.unwrap_or_else(|| self.since(holder, now));
            if let Some(kind) = longest.iter_mut().find(|(by, _)| *by == holder.by) {
                kind.1 = f64::max(kind.1, seconds);
            }
        }
        longest.to_vec()
    }

    fn since(&mut self, holder: &Holder, now: Instant) -> f64 {
        let xmin = holder.xmin.clone().unwrap_or_default();
        let seen = self.0.entry((holder.by.clone(), holder.name.clone())).or_insert_with(|| (xmin.clone(), now));
        if seen.0 != xmin {
            *seen = (xmin, now);
        }
        now.duration_since(seen.1).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(xmin: &str) -> Holder {
        Holder { by: "slot".into(), name: "a".into(), seconds: None, xmin: Some(xmin.into()) }
    }

    #[test]
    fn a_slot_holds_back_for_as_long_as_it_stands_still() {
        let (mut still, start) = (StoodStill::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(still.held_back(&[slot("7")], at(0))[2], ("slot", 0.0));
        assert_eq!(still.held_back(&[slot("7")], at(60))[2], ("slot", 60.0));
        assert_eq!(still.held_back(&[slot("8")], at(90))[2], ("slot", 0.0));
        assert_eq!(still.held_back(&[], at(100))[2], ("slot", 0.0));
        assert_eq!(still.held_back(&[slot("8")], at(110))[2], ("slot", 0.0), "it was gone in between");
    }

    #[test]
    fn the_longest_of_each_kind_counts_and_the_others_are_zero() {
        let session = |seconds| Holder { by: "session".into(), name: "1".into(), seconds: Some(seconds), xmin: None };
        let held = StoodStill::default().held_back(&[session(3.0), session(40.0), session(5.0)], Instant::now());
        assert_eq!(held, [("session", 40.0), ("prepared", 0.0), ("slot", 0.0), ("standby", 0.0)]);
    }
}
