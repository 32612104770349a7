//! What a worker does beside the loop, once a minute: renews the sentinels, starts audits that are due or asked for, sweeps old tombstones.
//!
//! It never holds up the loop. Any number of workers may do it side by side: a sentinel is renewed by the first who comes, an audit is run
//! by whoever locks it, and a tombstone is swept under its version.

mod audits;
mod retention;
mod round;
mod sentinel;
mod sweep;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::collection::Collection;
use crate::context::{Context, why_not_send};
use crate::database::Kept;
use crate::health::Fault;

pub use sweep::tombstone;

use sweep::Cursor;

/// How often it looks around.
const ROUND: Duration = Duration::from_secs(60);
/// How often old results and dead letters are cleared away, in rounds.
const CLEARING: u64 = 60;

/// The upkeep of collections of a [`Catchword`](crate::Catchword).
pub struct Upkeep {
    context: Arc<Context>,
    names: Vec<String>,
    /// For the two questions of each round.
    kept: Kept,
    /// The audit that runs in this process; one at a time.
    audit: Option<JoinHandle<()>>,
    /// How far the sweep of each collection came.
    cursors: HashMap<String, Cursor>,
    /// By the uuid of an index: how many sentinels it takes until each shard has one.
    sentinels_needed: HashMap<String, usize>,
    rounds: u64,
    trouble: Option<String>,
}

impl Upkeep {
    /// Of these collections; none: of all that are configured.
    pub(crate) fn new(context: Arc<Context>, collections: &[&str]) -> Upkeep {
        let all = context.config.served().map(|collection| collection.name.as_str());
        let names = all.filter(|name| collections.is_empty() || collections.contains(name)).map(str::to_owned).collect();
        Upkeep {
            context,
            names,
            kept: Kept::default(),
            audit: None,
            cursors: HashMap::new(),
            sentinels_needed: HashMap::new(),
            rounds: 0,
            trouble: None,
        }
    }

    /// Runs until `stop`. What fails is logged when it begins, and tried again in a minute; so is a round that panicked.
    pub async fn run(self, stop: CancellationToken) {
        let (context, names) = (self.context.clone(), self.names.clone());
        let mut upkeep = self;
        loop {
            let token = stop.clone();
            let rounded = tokio::spawn(async move {
                let rounded = upkeep.round(&token).await;
                (upkeep, rounded)
            });
            upkeep = match rounded.await {
                Ok((mut upkeep, rounded)) => {
                    upkeep.note(rounded.err().map(|error| error.to_string()));
                    upkeep
                }
                Err(panic) => {
                    tracing::error!("the upkeep panicked: {panic}");
                    Upkeep::new(context.clone(), &names.iter().map(String::as_str).collect::<Vec<_>>())
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(ROUND) => {}
            }
        }
    }

    /// Once everything. What is wrong with one collection does not keep the others waiting; the first error is returned at the end.
    pub async fn round(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let workable = self.workable().await;
        let due = self.due(&workable).await?;
        let mut first_error = self.renew_sentinels(due.sentinels).await;
        for collection in workable.iter().filter(|collection| due.sweepable.contains(&collection.name)) {
            first_error = first_error.and(self.sweep(collection, stop).await);
        }
        self.start_audit(due.audits, stop);
        if self.rounds.is_multiple_of(CLEARING) {
            first_error = first_error.and(self.clear_away().await);
        }
        self.rounds += 1;
        first_error
    }

    /// The collections that are served, are not paused, and whose index may be written to.
    async fn workable(&self) -> Vec<Arc<Collection>> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let mut workable = Vec::new();
        for collection in self.context.collections(&names) {
            let context = &self.context;
            let faults = &context.health.faults;
            let held = faults.why(&collection.name, Fault::Unverified).or_else(|| faults.why(&collection.name, Fault::Blocked));
            if collection.paused.is_none() && held.is_none() && why_not_send(context, &collection).await.is_none() {
                workable.push(collection);
            }
        }
        workable
    }

    fn note(&mut self, trouble: Option<String>) {
        match (&self.trouble, &trouble) {
            (before, Some(now)) if before.as_ref() != Some(now) => {
                tracing::warn!("the upkeep failed, it is tried again in a minute: {now}")
            }
            (Some(_), None) => tracing::info!("the upkeep succeeds again"),
            _ => {}
        }
        self.trouble = trouble;
    }
}

/// An audit is cut short with it, and any worker goes on with that.
impl Drop for Upkeep {
    fn drop(&mut self) {
        if let Some(audit) = self.audit.take() {
            audit.abort();
        }
    }
}
