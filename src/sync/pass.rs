//! One walk over the queues.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::lane::lane;
use super::walk::Walks;
use crate::collection::Collection;
use crate::config::CANARY;
use crate::context::{Context, why_not_send};
use crate::health::Fault;
use crate::outcome::Outcome;
use crate::{Error, metrics};

/// A pass ends after this, and the next begins at the top: live jobs never wait for a long walk, and what was written is looked at soon.
pub(super) const PASS: Duration = Duration::from_secs(10);

/// Whether a blocked collection is tried with a small batch: once a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    Allowed,
    Over,
}

/// One pass, in which so many batches are in flight as the configuration says.
pub(crate) async fn pass(
    context: &Context,
    name: &str,
    collections: &[&str],
    trial: Trial,
    stop: &CancellationToken,
) -> Result<Outcome, Error> {
    let span = tracing::debug_span!("pass", otel.name = name);
    let started = Instant::now();
    let mut outcome = walk(context, collections, trial, stop, started + PASS).instrument(span).await?;
    outcome.took = started.elapsed();
    metrics::record_pass(&outcome);
    if !outcome.is_quiet() {
        tracing::info!(
            pass = name,
            claimed = outcome.claimed,
            written = outcome.written,
            settled = outcome.settled,
            seconds = outcome.took.as_secs_f64(),
            "{name}: {}",
            outcome.in_numbers()
        );
    }
    Ok(outcome)
}

async fn walk(context: &Context, collections: &[&str], trial: Trial, stop: &CancellationToken, end: Instant) -> Result<Outcome, Error> {
    let mut outcome = Outcome { blocked: not_served(context, collections), ..Outcome::default() };
    let admitted = admit(context, collections, trial, &mut outcome).await;
    let walks = Mutex::new(Walks::new(admitted));
    let lanes = (0..context.config.worker.in_flight).map(|_| lane(context, &walks, stop, end));
    for lane in join_all(lanes).await {
        outcome.add(lane?);
    }
    Ok(outcome)
}

/// The collections that can be worked on, each with whether it is blocked and on trial; why the others cannot is in the outcome.
pub(super) async fn admit(context: &Context, collections: &[&str], trial: Trial, outcome: &mut Outcome) -> Vec<(Arc<Collection>, bool)> {
    let why_unverified = |name: &str| context.health.faults.why(name, Fault::Unverified);
    let mut admitted = Vec::new();
    for collection in context.collections(collections) {
        if collection.paused.is_some() {
            continue;
        }
        let blocked = context.health.faults.why(&collection.name, Fault::Blocked);
        if let (Some(why), Trial::Over) = (&blocked, trial) {
            outcome.blocked.insert(collection.name.clone(), why.clone());
        } else if let Some(why) = why_not_send(context, &collection).await.or_else(|| why_unverified(&collection.name)) {
            outcome.breaker = Some(why);
        } else {
            admitted.push((collection, blocked.is_some()));
        }
    }
    admitted
}

/// Those that cannot be served, and why.
fn not_served(context: &Context, collections: &[&str]) -> BTreeMap<String, String> {
    let mut refused = context.health.faults.all(Fault::NotServed);
    refused.retain(|name, _| if collections.is_empty() { name != CANARY } else { collections.contains(&name.as_str()) });
    refused
}
