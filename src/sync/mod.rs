//! The only code that sees both sides. A pass walks each collection's queue from the top, in batches, one per turn.

mod batch;
mod blamed;
mod breaker;
mod canary;
mod compare;
mod deadline;
mod fate;
mod group;
mod groups;
mod measured;
mod mend;
mod outcome;
mod pace;
mod panicked;
mod probe;
mod search;
mod tick;
mod touches;
mod walk;
mod worker;
mod write;

pub(crate) use blamed::Blamed;
pub use breaker::{Breakers, Scope, State};
pub(crate) use canary::Stage;
pub use compare::{Verdict, compare};
pub use fate::{Fate, Finding, fate, mass_refusal};
pub(crate) use measured::{Measured, OBJECTIVE_SECONDS};
pub use outcome::Outcome;
pub use pace::Pace;
pub(crate) use touches::Steps;
pub(crate) use worker::{ABSENT_SECONDS, STILL_SECONDS, host};
pub use worker::{Worker, WorkerRow, workers};

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::PgConnection;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::catchword::Turns;
use crate::collection::{Collection, refuse_standby};
use crate::config::CANARY;
use crate::job::{self, FirstDue};
use crate::{Catchword, Error, metrics};
use walk::{Claimed, Look, Turn, Walks};

/// A pass ends after this, and the next begins at the top: live jobs never wait for a long walk, and what was written is looked at soon.
const PASS: Duration = Duration::from_secs(10);

impl Catchword {
    /// One pass over the queues of these collections (none: of all that are configured). `name` is what its span and its log line are
    /// called.
    ///
    /// One bad document of 2,500 is a count in the [`Outcome`], never an error. An error means that Postgres could not be worked with;
    /// whatever was claimed then is free again.
    pub async fn sync(&self, name: &str, collections: &[&str]) -> Result<Outcome, Error> {
        self.note_server().await?;
        self.refresh().await?;
        // what a clock that was ahead dated in the future, as a tick does
        let names: Vec<String> = self.loaded(collections).iter().map(|collection| collection.name.clone()).collect();
        sqlx::query(include_str!("bring_back.sql")).bind(names).execute(&self.inner.pool).await?;
        let mut outcome = self.pass(name, collections, Trial::Allowed, &CancellationToken::new()).await?;
        outcome.stood = self.what_stood(collections, &outcome).await?.stood;
        Ok(outcome)
    }

    /// Passes until one neither writes nor settles anything.
    pub async fn drain(&self, name: &str, collections: &[&str]) -> Result<Outcome, Error> {
        let mut all = self.sync(name, collections).await?;
        let mut turns = Turns { stood: std::mem::take(&mut all.stood), ..Turns::default() };
        loop {
            let outcome = self.pass(name, collections, Trial::Over, &CancellationToken::new()).await?;
            // what was postponed in one pass is not due in the next, and stood all the same; what moved in any of them did not stand
            turns.add(self.what_stood(collections, &outcome).await?);
            let moved = outcome.moved();
            all.add(outcome);
            if !moved {
                all.stood = turns.stood;
                return Ok(all);
            }
        }
    }

    /// After a pass: collections of which jobs are due and none moved, and why. Those that the outcome names already are left out.
    async fn what_stood(&self, collections: &[&str], outcome: &Outcome) -> Result<Turns, Error> {
        let Turns { moved, mut stood } = self.inner.take_turns();
        let mut connection = self.inner.pool.acquire().await?;
        if !moved.is_empty() {
            let names: Vec<&String> = moved.iter().collect();
            sqlx::query(include_str!("note_moved.sql")).bind(names).execute(&mut *connection).await?;
        }
        let mut found = BTreeMap::new();
        for collection in self.loaded(collections).iter().filter(|collection| !moved.contains(&collection.name)) {
            let name = &collection.name;
            let told = outcome.breaker.is_some() || outcome.blocked.contains_key(name) || outcome.refusing.contains_key(name);
            let claimed = stood.remove(name);
            if told || claimed.is_none() && job::first_due(&mut connection, name).await?.is_none() {
                continue;
            }
            found.insert(name.clone(), self.why_stood(&mut connection, collection, claimed).await?);
        }
        Ok(Turns { moved, stood: found })
    }

    async fn why_stood(&self, connection: &mut PgConnection, collection: &Collection, claimed: Option<String>) -> Result<String, Error> {
        if let Some(why) = &collection.paused {
            return Ok(format!("it is paused {why}; go on with: catchword resume {}", collection.name));
        }
        if let Some(why) = self.inner.troubles().remove(&collection.name) {
            return Ok(why);
        }
        match claimed {
            Some(why) if !why.is_empty() => return Ok(why),
            Some(_) => return Ok("they were claimed and left as they are; catchword explain tells what both sides have of one key".into()),
            None => {}
        }
        Ok(match job::first_due(connection, &collection.name).await? {
            Some(FirstDue { last_error: Some(error), .. }) => error,
            _ => "another session has them locked, a worker perhaps; the runbook of CatchwordNoProgress has the query that names it".into(),
        })
    }

    /// Lets readers see what was written: a person who drains the queue looks next. Where it cannot be done, the index does it in a moment.
    pub(crate) async fn show(&self, collections: &[&str]) {
        for collection in self.loaded(collections) {
            if let Some(target) = collection.readers_target()
                && let Err(error) = self.inner.elastic.refresh(target).await
            {
                tracing::debug!("readers see it a little later: {error}");
            }
        }
    }

    /// Refuses a standby, and raises the sequence where numbers may be given twice: before anything is written.
    async fn note_server(&self) -> Result<(), Error> {
        let mut connection = self.inner.pool.acquire().await?;
        refuse_standby(&mut connection).await?;
        if sqlx::query_scalar(include_str!("note_server.sql")).fetch_one(&mut *connection).await? {
            say_switched();
        }
        Ok(())
    }

    pub(crate) async fn pass(&self, name: &str, collections: &[&str], trial: Trial, stop: &CancellationToken) -> Result<Outcome, Error> {
        let span = tracing::debug_span!("pass", otel.name = name);
        let started = Instant::now();
        let mut outcome = self.walk(collections, trial, stop, started + PASS).instrument(span).await?;
        outcome.took = started.elapsed();
        metrics::record_pass(&outcome);
        if !outcome.is_quiet() {
            tracing::info!(
                pass = name,
                claimed = outcome.claimed,
                written = outcome.written,
                settled = outcome.settled,
                seconds = outcome.took.as_secs_f64(),
                "{name}: {outcome}"
            );
        }
        Ok(outcome)
    }

    async fn walk(&self, collections: &[&str], trial: Trial, stop: &CancellationToken, end: Instant) -> Result<Outcome, Error> {
        let mut outcome = Outcome { blocked: self.refused(collections), ..Outcome::default() };
        let mut admitted = Vec::new();
        for collection in self.loaded(collections) {
            if collection.paused.is_some() {
                continue;
            }
            let blocked = self.inner.blocked(&collection.name);
            if let (Some(why), Trial::Over) = (&blocked, trial) {
                outcome.blocked.insert(collection.name.clone(), why.clone());
            } else if let Some(why) = self.why_not_send(&collection).await.or_else(|| self.inner.unverified(&collection.name)) {
                outcome.breaker = Some(why);
            } else {
                admitted.push((collection, blocked.is_some()));
            }
        }
        let walks = Mutex::new(Walks::new(admitted));
        let lanes = (0..self.inner.config.worker.in_flight).map(|_| self.lane(&walks, stop, end));
        for lane in join_all(lanes).await {
            outcome.add(lane?);
        }
        Ok(outcome)
    }

    fn refused(&self, collections: &[&str]) -> BTreeMap<String, String> {
        let mut refused = self.inner.refused();
        refused.retain(|name, _| if collections.is_empty() { name != CANARY } else { collections.contains(&name.as_str()) });
        refused
    }

    /// One of the batches in flight: claims its turn's batch, works it, and comes back for more. The claim is taken one at a time; the
    /// stop is heeded between batches, never inside one.
    async fn lane(&self, walks: &Mutex<Walks>, stop: &CancellationToken, end: Instant) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        while !stop.is_cancelled() && Instant::now() < end {
            // in a statement of its own, so that the lock is not held
            let turn = walks.lock().await.next(&self.inner).await?;
            let Claimed { collection, mut transaction, jobs, look, took } = match turn {
                Some(Turn::Batch(claimed)) => claimed,
                Some(Turn::Touches(collection)) => {
                    match touches::step(&self.inner, &collection).await? {
                        Some(touched) => outcome.add(Outcome { touched, steps: 1, ..Outcome::default() }),
                        None => walks.lock().await.end_touches(&collection),
                    }
                    continue;
                }
                None => break,
            };
            // asked after the claim: a look at the old targets alone must not settle what a new one needs
            if !collection.targets_are_current(&mut transaction).await? {
                transaction.rollback().await?;
                self.begin_again(walks, &collection.name).await?;
                continue;
            }
            match panicked::guarded(&self.inner, &collection, transaction, &jobs, look).await {
                Ok((mut done, mut measured)) => {
                    done.claiming = took;
                    measured.claim = took;
                    // an index that was taken off the list and dropped under the batch blocks nothing
                    if !done.blocked.is_empty() && !collection.targets_are_current(&mut *self.inner.pool.acquire().await?).await? {
                        done.blocked.clear();
                        self.begin_again(walks, &collection.name).await?;
                    }
                    metrics::record_batch(&collection.name, &done, &measured);
                    self.inner.note_turn(&collection.name, done.moved(), done.hindered.as_deref());
                    let (blocked, refusing) = (done.blocked.get(&collection.name), done.refusing.get(&collection.name));
                    self.inner.note_fault(&collection.name, blocked, refusing);
                    let mut walks = walks.lock().await;
                    walks.look(&collection.name, &jobs, Look::after(done.written, done.claimed, collection.targets.len()));
                    if !done.blocked.is_empty() || self.inner.breakers.why(&collection.name).is_some() {
                        walks.end(&collection.name);
                    }
                    outcome.add(done);
                }
                Err(Error::View(why)) => {
                    self.inner.note_fault(&collection.name, Some(&why), None);
                    walks.lock().await.end(&collection.name);
                    outcome.blocked.insert(collection.name.clone(), why);
                }
                // the view was too slow for so many, or a lock was not had: nobody else has to wait for that
                Err(error) if error.is_too_slow() => {
                    self.inner.pace.slower();
                    tracing::warn!(collection = collection.name, "the next batch is smaller: {error}");
                    self.inner.note_turn(&collection.name, false, Some(&error.to_string()));
                    walks.lock().await.end(&collection.name);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(outcome)
    }

    /// Reads a collection anew whose targets are others now, and walks its queue from the top.
    async fn begin_again(&self, walks: &Mutex<Walks>, name: &str) -> Result<(), Error> {
        self.refresh().await?;
        let anew = self.inner.collection(name).filter(|_| self.inner.unverified(name).is_none());
        walks.lock().await.begin_again(name, anew);
        Ok(())
    }
}

fn say_switched() {
    tracing::error!(
        "this is another Postgres server or timeline than before: commits may be lost; an audit with content is asked for, and a worker runs it"
    );
}

/// Whether a blocked collection is tried with a small batch: once a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    Allowed,
    Over,
}
