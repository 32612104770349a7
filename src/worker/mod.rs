//! The loop: wakes at each tick and runs passes until nothing moves, and does the upkeep beside it. Any number of workers may run side by side.

mod canary;
mod feeder;
mod keeper;
mod question;
mod tick;
mod unseen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_cron_scheduler::{Job, JobScheduler};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::CANARY;
use crate::context::Context;
use crate::database::Kept;
use crate::health::Turns;
use crate::outcome::Outcome;
use crate::sync::{Trial, pass};
use crate::upkeep::Upkeep;
use crate::{Error, metrics};
use feeder::Feeder;
use keeper::Keeper;
use tick::{Sign, Ticked};
pub(crate) use unseen::tell_what_is_unseen;

/// How often a waiting worker shows itself, where ticks are rarer.
const HEARTBEAT: Duration = Duration::from_secs(65);
/// A loop that has not come round for this long is stuck. Longer than the longest pass.
const STUCK: Duration = Duration::from_secs(300);

/// Work that has not moved for so long is told: a little less than [`STILL_SECONDS`](crate::heartbeat::STILL_SECONDS), so that the next tick does.
const STILL: Duration = Duration::from_secs(55);

/// How often a tick that does not end looks around.
const LOOK_AROUND: Duration = Duration::from_secs(30);

/// What is in the way before the first tick.
const NO_TICK: &str = "not one tick yet";

/// A worker for collections of a [`Catchword`](crate::Catchword).
#[derive(Clone)]
pub struct Worker {
    context: Arc<Context>,
    name: String,
    collections: Vec<String>,
    id: Uuid,
    /// For the question of each tick, and the one for reindexes.
    kept: Arc<Kept>,
    canary: Arc<tokio::sync::Mutex<Canary>>,
    life: Arc<Mutex<Life>>,
}

/// When the canary was last stirred, and what went wrong.
#[derive(Default)]
struct Canary {
    stirred: Option<Instant>,
    failed: Option<String>,
}

/// What the health checks ask for.
struct Life {
    round: Instant,
    /// When it last looked around.
    looked_around: Option<Instant>,
    /// Collections that got jobs of a reindex since the loop last took them.
    fed: BTreeSet<String>,
    /// A pass has succeeded since the last sign of life.
    passed: bool,
    /// The last sign of life.
    shown: Option<Sign>,
    trouble: Option<String>,
    /// Why it cannot keep the quick lane.
    lane: Option<String>,
    unserved: Option<String>,
    /// Collections with due jobs of which none moves: since when, and why if somebody knows.
    still: BTreeMap<String, (Instant, Option<String>)>,
    /// Those among them that were logged.
    logged: BTreeSet<String>,
}

impl Worker {
    /// A worker for these collections (none: all that are configured). `name` is what its passes are called in logs and spans.
    pub(crate) fn new(context: Arc<Context>, name: &str, collections: &[&str]) -> Worker {
        let all = context.config.served().map(|c| c.name.as_str());
        let collections = all.filter(|name| collections.is_empty() || collections.contains(name)).map(str::to_owned).collect();
        let life = Life {
            round: Instant::now(),
            looked_around: None,
            fed: BTreeSet::new(),
            passed: false,
            shown: None,
            trouble: Some(NO_TICK.into()),
            lane: None,
            unserved: None,
            still: BTreeMap::new(),
            logged: BTreeSet::new(),
        };
        Worker {
            context,
            name: name.to_owned(),
            collections,
            id: Uuid::new_v4(),
            kept: Arc::default(),
            canary: Arc::default(),
            life: Arc::new(Mutex::new(life)),
        }
    }

    /// Runs until `stop`, and the upkeep with it (sentinels, audits that are due, the sweep). A batch that is under way is finished and committed. Nothing that happens in a tick ends it: what is wrong
    /// is logged once, and tried again.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), Error> {
        let wake = Arc::new(Notify::new());
        wake.notify_one();
        let mut clock = self.clock(wake.clone()).await?;
        let fed = Arc::new(Notify::new());
        let _beside = self.keep_up(&stop, &fed);
        let mut keeper = JoinSet::new();
        keeper.spawn(Keeper::new(self.clone(), wake.clone()).run(stop.clone()));
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = wake.notified() => self.life().fed.clear(),
                () = fed.notified() => {}
                // to wait for a tick is not to be stuck, however long it is
                () = tokio::time::sleep(HEARTBEAT) => {
                    self.alive();
                    self.log_stillness();
                    self.try_renew().await;
                    continue;
                }
            }
            // in a task of its own: a panic in a pass does not end the worker
            let (worker, token) = (self.clone(), stop.clone());
            let ticked = tokio::spawn(async move { worker.tick(&token).await }).await;
            let changed = self.note(match ticked {
                Ok(Ok(())) => None,
                Ok(Err(error)) => {
                    metrics::record_failure();
                    Some(error.to_string())
                }
                Err(panic) => {
                    metrics::record_panic();
                    Some(format!("a pass panicked: {panic}"))
                }
            });
            // a tick that failed could not say so itself
            if changed {
                self.try_renew().await;
            }
        }
        _ = clock.shutdown().await;
        // its batch is finished, too
        keeper.join_next().await;
        self.retire().await;
        Ok(())
    }

    /// What goes on beside the loop: sentinels, audits, the sweep, the next pieces of reindexes. It ends with the loop, however that ends.
    fn keep_up(&self, stop: &CancellationToken, fed: &Arc<Notify>) -> JoinSet<()> {
        let names: Vec<&str> = self.collections.iter().map(String::as_str).collect();
        let mut upkeep = JoinSet::new();
        upkeep.spawn(Upkeep::new(self.context.clone(), &names).run(stop.clone()));
        upkeep.spawn(Feeder::new(self.clone(), fed.clone()).run(stop.clone()));
        upkeep
    }

    /// The clock only notifies: its runs may overlap, and nothing may run inside it that can panic. Ticks during a run collapse into one.
    async fn clock(&self, wake: Arc<Notify>) -> Result<JobScheduler, Error> {
        let tick = &self.context.config.worker.tick;
        let wrong = |error| Error::refused(format!("tick = \"{tick}\": {error}"));
        let clock = JobScheduler::new().await.map_err(wrong)?;
        let job = Job::new(tick.as_str(), move |_, _| wake.notify_one()).map_err(wrong)?;
        clock.add(job).await.map_err(wrong)?;
        clock.start().await.map_err(wrong)?;
        Ok(clock)
    }

    /// Passes until nothing moves. A queue that never ends does not keep it from looking around: pauses, triggers and targets are read
    /// again, and blocked collections tried again. Where nothing is due, the look is all. What a reindex has just scheduled is worked on
    /// without one, if the last is not long ago.
    async fn tick(&self, stop: &CancellationToken) -> Result<(), Error> {
        let all: Vec<&str> = self.collections.iter().map(String::as_str).collect();
        let fed = std::mem::take(&mut self.life().fed);
        let fed: Vec<&str> = fed.iter().map(String::as_str).collect();
        let (mut names, mut looked_around): (&[&str], Option<Instant>) =
            if fed.is_empty() { (&all, None) } else { (&fed, self.life().looked_around) };
        while !stop.is_cancelled() {
            let mut trial = Trial::Over;
            if looked_around.is_none_or(|at| at.elapsed() > LOOK_AROUND) {
                let due = self.look_around().await?;
                // the quick lane carries the canary as it carries everybody's writes; without a lane it is this tick's
                let has_lane = self.context.config.worker.quick.is_some();
                names = match (due, self.stir_canary().await) {
                    (true, _) => &all,
                    (false, true) if !has_lane => &[CANARY],
                    (false, _) => {
                        metrics::record_pass(&Outcome::default());
                        break;
                    }
                };
                looked_around = Some(Instant::now());
                self.life().looked_around = looked_around;
                trial = Trial::Allowed;
            }
            let outcome = pass(&self.context, &self.name, names, trial, stop).await?;
            self.alive();
            {
                let mut life = self.life();
                life.passed = true;
                // the first tick may be a long one
                life.trouble.take_if(|trouble| trouble == NO_TICK);
            }
            if !outcome.moved() {
                break;
            }
        }
        self.say_what_is_new().await
    }

    /// True: something may be due.
    async fn look_around(&self) -> Result<bool, Error> {
        let sign = self.sign();
        let Ticked { due, standing_still } = tick::begin_tick(&self.context, &self.kept, &sign).await?;
        let now = Instant::now();
        let since = |seconds: f64| now.checked_sub(Duration::try_from_secs_f64(seconds).unwrap_or_default()).unwrap_or(now);
        self.life().still = standing_still.into_iter().map(|(name, still)| (name, (since(still.seconds), still.why))).collect();
        self.log_stillness();
        self.life().shown = Some(sign);
        self.say_what_is_new().await?;
        Ok(due)
    }

    /// That due work does not move is logged when it begins and when it ends, whatever the cause.
    fn log_stillness(&self) {
        let still = self.standing_still();
        let logged = std::mem::replace(&mut self.life().logged, still.keys().cloned().collect());
        for (name, says) in still.iter().filter(|(name, _)| !logged.contains(*name)) {
            tracing::error!(collection = name, "{says}");
        }
        for name in logged.iter().filter(|name| !still.contains_key(*name)) {
            tracing::info!(collection = name, "jobs move again");
        }
    }

    /// Collections with due jobs of which none has moved for long enough, and what to say of them.
    fn standing_still(&self) -> BTreeMap<String, String> {
        let unserved = self.unserved_by_name();
        let life = self.life();
        let old = life.still.iter().filter(|(_, (since, _))| since.elapsed() >= STILL);
        old.map(|(name, (since, why))| {
            let seconds = Duration::from_secs(since.elapsed().as_secs());
            let known = why.as_ref().or(unserved.get(name)).or(life.trouble.as_ref().filter(|trouble| *trouble != NO_TICK));
            let why = known.map_or("the reason is not known: catchword explain tells what both sides have of one key", String::as_str);
            (name.clone(), format!("jobs wait, and none has moved for {}: {why}", humantime::format_duration(seconds)))
        })
        .collect()
    }

    /// Once a minute, however often it ticks. The tick that stirs it also carries it; what goes wrong with it fails no tick. True: it was
    /// stirred.
    async fn stir_canary(&self) -> bool {
        let mut canary = self.canary.lock().await;
        let due = canary.stirred.is_none_or(|at| at.elapsed() >= canary::EVERY);
        if !due || !self.collections.iter().any(|name| name == CANARY) {
            return false;
        }
        let failed = canary::stir_canary(&self.context).await.err().map(|error| error.to_string());
        if let Some(error) = failed.as_ref().filter(|error| canary.failed.as_ref() != Some(error)) {
            tracing::warn!("the canary cannot be changed: {error}");
        }
        *canary = Canary { stirred: Some(Instant::now()), failed };
        canary.failed.is_none()
    }

    /// Is the loop going round?
    pub fn is_alive(&self) -> bool {
        self.life().round.elapsed() < STUCK
    }

    /// What the last tick failed of, or what it could not work on.
    pub fn trouble(&self) -> Option<String> {
        let known = {
            let life = self.life();
            life.trouble.as_ref().or(life.unserved.as_ref()).cloned()
        };
        known.or_else(|| together(&self.standing_still()))
    }

    /// What keeps collections of this worker from being worked on. It was logged when it began.
    fn unserved_by_name(&self) -> BTreeMap<String, String> {
        let context = &self.context;
        let troubles = context.health.faults.worst();
        let why = |name: &String| context.health.breakers.why(name).or_else(|| troubles.get(name).cloned());
        self.collections.iter().filter_map(|name| Some((name.clone(), why(name)?))).collect()
    }

    fn alive(&self) {
        self.life().round = Instant::now();
    }

    /// A failure is logged when it begins and when it ends, not once a minute.
    /// True: it is another one than before, for `check` to hear of.
    fn note(&self, trouble: Option<String>) -> bool {
        self.alive();
        let unserved = together(&self.unserved_by_name());
        let mut life = self.life();
        life.unserved = unserved;
        match (&life.trouble, &trouble) {
            (before, Some(now)) if before.as_ref() != Some(now) => tracing::error!("the tick failed, the next one tries again: {now}"),
            (Some(before), None) if before != NO_TICK => tracing::info!("ticks succeed again"),
            _ => {}
        }
        let shown = life.shown.as_ref().and_then(|shown| shown.trouble.as_ref());
        let changed = shown != trouble.as_ref();
        life.trouble = trouble;
        changed
    }

    fn life(&self) -> std::sync::MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A sign of life, if Postgres takes it.
    async fn try_renew(&self) {
        if let Err(error) = self.renew().await {
            tracing::debug!("no heartbeat could be sent: {error}");
        }
    }

    /// A sign of life.
    async fn renew(&self) -> Result<(), Error> {
        let sign = self.sign();
        tick::renew(&self.context, &self.kept, &sign).await?;
        self.life().shown = Some(sign);
        Ok(())
    }

    /// Another sign of life, if the last one is not true any more.
    async fn say_what_is_new(&self) -> Result<(), Error> {
        let passed = self.life().passed;
        let now = self.shows(passed);
        let is_new =
            now.passed || !self.context.health.turns.is_empty() || self.life().shown.as_ref().is_none_or(|shown| !now.is_as(shown));
        if is_new { self.renew().await } else { Ok(()) }
    }

    /// What it shows of itself from now on.
    fn sign(&self) -> Sign {
        let passed = std::mem::take(&mut self.life().passed);
        let Turns { moved, stood } = self.context.health.turns.take();
        let mut life = self.life();
        for name in &moved {
            life.still.remove(name);
        }
        drop(life);
        Sign { moved: moved.into_iter().collect(), stood: json!(stood), ..self.shows(passed) }
    }

    fn shows(&self, passed: bool) -> Sign {
        let context = &self.context;
        let (trouble, lane) = {
            let life = self.life();
            (life.trouble.clone().filter(|trouble| trouble != NO_TICK), life.lane.clone())
        };
        let open = self.collections.iter().find_map(|name| context.health.breakers.why(name));
        Sign {
            id: self.id,
            collections: self.collections.clone(),
            troubles: json!(context.health.faults.worst()),
            breaker: open.unwrap_or_else(|| "closed".into()),
            passed,
            trouble,
            lane,
            moved: Vec::new(),
            stood: json!({}),
        }
    }

    async fn retire(&self) {
        let gone = sqlx::query(include_str!("retire_worker.sql")).bind(self.id).execute(&self.context.pool).await;
        if let Err(error) = gone {
            tracing::debug!("the worker's row stays for a day: {error}");
        }
    }
}

/// Names and what is so of them, on one line; none: there is nothing.
fn together(named: &BTreeMap<String, String>) -> Option<String> {
    let lines: Vec<String> = named.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}
