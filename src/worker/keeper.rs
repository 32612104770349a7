//! The quick lane: one worker, the keeper, asks many times a second whether a quick job is due, and works on it at once. It also looks for
//! the end of an outage, so that the loop goes on within seconds.
//!
//! What is new is written at once. The look that settles it is a task beside that: whoever writes meanwhile does not wait for it.
//!
//! The keeper is whoever has a lock on the connection that asks. The server ends that connection if nothing is asked on it for some seconds
//! (`keeper_session.sql`): so one that was killed, is frozen or lost its network makes room for another, and nobody's clock is compared with
//! another's. Two keepers do no harm, because a claim is a row lock; and the loop needs none.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Worker;
use super::question::{Pace, Stillness};
use crate::collection::Collection;
use crate::config::CANARY;
use crate::context::{probe_in_background, refresh};
use crate::health::Fault;
use crate::job::{self, Cursor, QuickDue};
use crate::outcome::Outcome;
use crate::sync::{Seen, look_at_seen, note_server, write_unseen};
use crate::{Error, alone, database, metrics};

/// How often a worker that is not the keeper tries to be: with the server's five seconds, another one is there within ten.
const TRY: Duration = Duration::from_secs(2);
/// How long an answer may take. A connection without one is given up.
const ANSWER: Duration = Duration::from_secs(4);
/// While it writes, the keeper asks this often, so that the server does not take it for frozen.
const STAY: Duration = Duration::from_secs(1);
/// Jobs that are due and cannot be moved, because somebody else has them locked, are left alone for longer and longer, up to this.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// While a breaker is open, one small request this often finds out whether it can close.
const PROBE: Duration = Duration::from_secs(2);
/// How often it logs what it did, and says that work moves.
const TELL: Duration = Duration::from_secs(10);

/// What a worker does for the quick lane.
pub(super) struct Keeper {
    worker: Worker,
    /// How often it asks; none: there is no lane, and only the end of an outage is looked for.
    every: Option<Duration>,
    /// Wakes the loop.
    wake: Arc<Notify>,
    lock: String,
    seen: Seen,
    /// What it wrote since the last look began.
    wrote: Outcome,
    look: Option<UnderWay>,
    rests: HashMap<String, Rest>,
    /// Collections to which nothing is sent now.
    down: BTreeSet<String>,
    did: Outcome,
    told: Instant,
}

/// A look that is under way.
struct UnderWay {
    collections: Vec<String>,
    /// What was written before it, and what it came to.
    task: JoinHandle<Looked>,
    ended: Option<Result<Looked, JoinError>>,
}

type Looked = (Outcome, Result<(Outcome, Seen), Error>);

/// How long a collection is left alone.
struct Rest {
    until: Instant,
    length: Duration,
}

impl Keeper {
    pub fn new(worker: Worker, wake: Arc<Notify>) -> Keeper {
        // workers that serve others have a keeper of their own
        let served: BTreeSet<&str> = worker.collections.iter().map(String::as_str).collect();
        Keeper {
            every: worker.context.config.worker.quick,
            lock: format!("catchword quick lane of {}", served.into_iter().collect::<Vec<_>>().join(", ")),
            worker,
            wake,
            seen: Seen::default(),
            wrote: Outcome::default(),
            look: None,
            rests: HashMap::new(),
            down: BTreeSet::new(),
            did: Outcome::default(),
            told: Instant::now(),
        }
    }

    /// Runs until `stop`. What is wrong is logged when it begins and ends, and tried again; the loop works meanwhile.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut trouble = None;
        while !stop.is_cancelled() {
            let kept = if self.is_needed() { self.keep(&stop, &mut trouble).await } else { Ok(()) };
            let looked = self.end_look().await;
            let kept = kept.and(looked);
            let why = kept.err().map(|error| error.to_string());
            if why.is_some() && why != trouble {
                tracing::warn!(
                    "the quick lane is not kept here, and is tried again; the loop works meanwhile: {}",
                    why.as_deref().unwrap_or("")
                );
            }
            trouble = why.or(trouble);
            self.worker.life().lane = trouble.clone().filter(|_| self.every.is_some());
            wait(&stop, TRY.mul_f64(0.75 + rand::random::<f64>() / 2.0)).await;
        }
    }

    fn is_needed(&self) -> bool {
        self.every.is_some() || self.collections().iter().any(|collection| self.is_down(collection))
    }

    /// Takes the lock as soon as it is free, and does the keeper's work until it is not needed any more. An error: the connection is lost,
    /// and the lock with it.
    async fn keep(&mut self, stop: &CancellationToken, trouble: &mut Option<String>) -> Result<(), Error> {
        let pool = &self.worker.context.pool;
        let mut connection = timeout(ANSWER, database::beside(pool, 2 * ANSWER)).await.map_err(|_| no_answer())??;
        sqlx::query(include_str!("keeper_session.sql")).execute(&mut connection).await?;
        while !alone::try_take(&mut connection, &self.lock).await? {
            if let Some(holder) = alone::holder(&mut connection, &self.lock).await? {
                holder.refuse_stranger("the quick lane")?;
            }
            wait(stop, TRY.mul_f64(0.75 + rand::random::<f64>() / 2.0)).await;
            if stop.is_cancelled() || !self.is_needed() {
                return Ok(());
            }
        }
        // another server may answer than before, and then numbers may be given twice
        note_server(&self.worker.context).await?;
        if trouble.take().is_some() {
            tracing::info!("the quick lane can be kept again");
        }
        self.worker.life().lane = None;
        tracing::info!("this worker keeps the quick lane");
        let mut pace = Pace::new(self.every.unwrap_or(STAY), Instant::now());
        let mut still = Stillness::new(Vec::new(), Instant::now());
        while !stop.is_cancelled() && self.is_needed() {
            self.look_for_the_end_of_an_outage(&mut connection).await?;
            self.tell().await;
            if self.look.as_ref().is_some_and(|look| look.ended.is_some() || look.task.is_finished()) {
                self.end_look().await?;
            }
            let begun = Instant::now();
            let (reach, askable) = (pace.reach(begun), self.askable());
            let id = if still.may_hold() { Some(answered(job::last_id(&mut connection)).await?) } else { None };
            if !pace.is_far(reach) && id.is_some_and(|id| still.holds(id, &askable, begun)) {
                self.wait(stop, begun + pace.wait(Instant::now())).await;
                continue;
            }
            let QuickDue { due, took } = answered(job::quick_due(&mut connection, &askable, reach)).await?;
            pace.asked(reach, took, Instant::now());
            still.asked(id, askable, !due.is_empty(), Instant::now());
            if !due.is_empty() {
                // the canary comes once a minute, and keeps nobody awake
                if due.iter().any(|name| name != CANARY) {
                    pace.found(Instant::now());
                }
                // somebody resumed it since the last tick
                if self.collections().iter().any(|collection| collection.paused.is_some() && due.contains(&collection.name)) {
                    refresh(&self.worker.context).await?;
                }
                let writing = Instant::now();
                let moved = self.write(&due, &mut connection, stop).await?;
                let wrote = writing.elapsed();
                if self.look.is_none() {
                    self.begin_look(due, stop);
                }
                if moved {
                    // under load each write has more in it, and half of the time is left to those who write rows and search
                    self.wait(stop, Instant::now() + wrote.min(pace.wait(Instant::now()))).await;
                    continue;
                }
            }
            self.wait(stop, begun + pace.wait(Instant::now())).await;
        }
        // without a lane it ends with the outage
        self.look_for_the_end_of_an_outage(&mut connection).await
    }

    /// Waits until then, or until the look under way has ended.
    async fn wait(&mut self, stop: &CancellationToken, then: Instant) {
        let span = then.saturating_duration_since(Instant::now());
        let Some(look) = self.look.as_mut().filter(|look| look.ended.is_none()) else { return wait(stop, span).await };
        tokio::select! {
            () = wait(stop, span) => {}
            ended = &mut look.task => look.ended = Some(ended),
        }
    }

    /// Writes what is new in these collections, in a task of its own: a panic does not end the keeper. True: something moved, and there may
    /// be more.
    async fn write(&mut self, due: &[String], connection: &mut PgConnection, stop: &CancellationToken) -> Result<bool, Error> {
        let (context, name) = (self.worker.context.clone(), self.worker.name.clone());
        let (names, mut seen, token) = (due.to_vec(), std::mem::take(&mut self.seen), stop.clone());
        let mut writing = tokio::spawn(async move {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let outcome = write_unseen(&context, &name, &names, &mut seen, &token).await;
            (seen, outcome)
        });
        let ended = loop {
            tokio::select! {
                ended = &mut writing => break ended,
                () = tokio::time::sleep(STAY) => {
                    answered(job::last_id(connection)).await?;
                }
            }
        };
        let Some((seen, outcome)) = unless_panicked(ended) else { return Ok(false) };
        self.seen = seen;
        let outcome = outcome?;
        let moved = outcome.moved();
        self.wrote.add(outcome);
        Ok(moved)
    }

    /// Begins to look at what these collections have seen so far.
    fn begin_look(&mut self, collections: Vec<String>, stop: &CancellationToken) {
        let (context, name) = (self.worker.context.clone(), self.worker.name.clone());
        let (names, seen, token) = (collections.clone(), self.seen.clone(), stop.clone());
        let wrote = std::mem::take(&mut self.wrote);
        let task = tokio::spawn(async move {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            (wrote, look_at_seen(&context, &name, &names, &seen, &token).await)
        });
        self.look = Some(UnderWay { collections, task, ended: None });
    }

    /// Takes in what came of the look, when it has ended: it and what was written before it are one pass.
    async fn end_look(&mut self) -> Result<(), Error> {
        let Some(UnderWay { collections, task, ended }) = self.look.take() else { return Ok(()) };
        let ended = match ended {
            Some(ended) => ended,
            None => task.await,
        };
        let mut pass = Outcome::default();
        if let Some((wrote, looked)) = unless_panicked(ended) {
            let (outcome, learned) = looked?;
            pass.add(wrote);
            pass.add(outcome);
            self.seen.learn(learned);
            metrics::record_pass(&pass);
        }
        for name in collections {
            if pass.moved() {
                self.rests.remove(&name);
            } else {
                let before = self.rests.get(&name).map_or(Duration::ZERO, |rest| rest.length);
                let length = (before * 2).clamp(self.every.unwrap_or(STAY).min(LONGEST_REST), LONGEST_REST);
                self.rests.insert(name, Rest { until: Instant::now() + length, length });
            }
        }
        self.did.add(pass);
        Ok(())
    }

    /// The collections that can be worked on now, unless they are paused: the question itself asks for that. Of one that is being looked at
    /// it asks only for what is to be written, behind what was seen.
    fn askable(&self) -> Vec<(String, Cursor)> {
        let faults = &self.worker.context.health.faults;
        let rests = |name: &str| self.rests.get(name).is_some_and(|rest| Instant::now() < rest.until);
        let is_served = |name: &str| faults.why(name, Fault::Blocked).is_none() && faults.why(name, Fault::Unverified).is_none();
        let workable = |c: &Arc<Collection>| self.every.is_some() && is_served(&c.name) && !self.is_down(c) && !rests(&c.name);
        let looked_at = |name: &String| self.look.as_ref().is_some_and(|look| look.collections.contains(name));
        let behind = |c: &Collection| if looked_at(&c.name) { self.seen.unseen_behind(c) } else { Some(Cursor::TOP) };
        let collections = self.collections().into_iter().filter(workable);
        collections.filter_map(|collection| Some((collection.name.clone(), behind(&collection)?))).collect()
    }

    fn collections(&self) -> Vec<Arc<Collection>> {
        let names: Vec<&str> = self.worker.collections.iter().map(String::as_str).collect();
        self.worker.context.collections(&names)
    }

    fn is_down(&self, collection: &Collection) -> bool {
        self.worker.context.health.breakers.is_open(&collection.name)
    }

    /// While a breaker is open it is probed soon; as soon as one closes, the loop goes on with all that has gathered.
    async fn look_for_the_end_of_an_outage(&mut self, connection: &mut PgConnection) -> Result<(), Error> {
        let context = &self.worker.context;
        let open: Vec<Arc<Collection>> = self.collections().into_iter().filter(|collection| self.is_down(collection)).collect();
        if !open.is_empty() {
            context.health.breakers.hurry(PROBE);
            open.iter().for_each(|collection| probe_in_background(context, collection));
        }
        let down: BTreeSet<String> = open.iter().map(|collection| collection.name.clone()).collect();
        let back: Vec<String> = self.down.difference(&down).cloned().collect();
        if !back.is_empty() {
            let hastened = sqlx::query(include_str!("hasten.sql")).bind(back).execute(connection);
            timeout(ANSWER, hastened).await.map_err(|_| no_answer())??;
            self.wake.notify_one();
        }
        self.down = down;
        Ok(())
    }

    /// One line for many passes, and a heartbeat that says that work moves.
    async fn tell(&mut self) {
        if self.told.elapsed() < TELL {
            return;
        }
        self.told = Instant::now();
        let did = std::mem::take(&mut self.did);
        if !did.is_quiet() {
            let name = &self.worker.name;
            let seconds = did.took.as_secs_f64();
            tracing::info!(
                pass = name,
                claimed = did.claimed,
                written = did.written,
                settled = did.settled,
                seconds,
                "{name}, quick lane: {did}"
            );
        }
        if let Err(error) = self.worker.say_what_is_new().await {
            tracing::debug!("no heartbeat could be sent: {error}");
        }
    }
}

/// What a task came to; none: it panicked, which is logged.
fn unless_panicked<T>(ended: Result<T, JoinError>) -> Option<T> {
    ended
        .inspect_err(|panic| {
            metrics::record_panic();
            tracing::error!("a pass of the quick lane panicked: {panic}");
        })
        .ok()
}

async fn answered<T>(question: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(ANSWER, question).await.map_err(|_| no_answer())?
}

fn no_answer() -> Error {
    Error::Postgres(sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::TimedOut)))
}

async fn wait(stop: &CancellationToken, span: Duration) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(span) => {}
    }
}
