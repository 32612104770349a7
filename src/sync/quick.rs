//! The pass of the quick lane: the same walks, over quick jobs alone. What the lane has not seen yet is written without a look; then a look
//! at all of them settles what agrees.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::lane::lane;
use super::pass::{PASS, Trial, admit};
use super::walk::{Look, Reached, Walks};
use crate::collection::Collection;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::{Error, metrics};

/// How far the lane has come in each queue, and whether a look would have been in vain there.
#[derive(Debug, Default)]
pub(crate) struct Seen(HashMap<String, Reached>);

impl Seen {
    fn of(&self, collection: &Collection) -> Reached {
        let reached = self.0.get(&collection.name).cloned().unwrap_or_default();
        // of several targets one mostly has what another lacks
        if collection.targets.len() == 1 { reached } else { Reached { look: Look::First, ..reached } }
    }
}

/// One pass over the quick jobs of these collections.
pub(crate) async fn quick_pass(
    context: &Context,
    name: &str,
    collections: &[&str],
    seen: &mut Seen,
    stop: &CancellationToken,
) -> Result<Outcome, Error> {
    let span = tracing::debug_span!("pass", otel.name = name);
    let started = Instant::now();
    let mut outcome = walk(context, collections, seen, stop, started + PASS).instrument(span).await?;
    outcome.took = started.elapsed();
    metrics::record_pass(&outcome);
    Ok(outcome)
}

async fn walk(context: &Context, collections: &[&str], seen: &mut Seen, stop: &CancellationToken, end: Instant) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    let admitted: Vec<Arc<Collection>> =
        admit(context, collections, Trial::Over, &mut outcome).await.into_iter().map(|(collection, _)| collection).collect();
    let (mut unseen, mut looked) = (Vec::new(), Vec::new());
    for collection in &admitted {
        let reached = seen.of(collection);
        match reached.look {
            Look::Later => unseen.push((collection.clone(), reached)),
            Look::First => looked.push(collection.name.clone()),
        }
    }
    if !unseen.is_empty() {
        let walks = Mutex::new(Walks::unseen(unseen));
        outcome.add(lane(context, &walks, stop, end).await?);
        // where the write was in vain, for a delete or because somebody wrote it before, the next ones are looked at first
        seen.0.extend(walks.into_inner().reached());
    }
    let walks = Mutex::new(Walks::quick(admitted));
    outcome.add(lane(context, &walks, stop, end).await?);
    // where the look was in vain, the next ones are written without it; of what was just written it says nothing
    let in_vain = walks.into_inner().reached().filter(|(name, reached)| reached.look == Look::Later && looked.contains(name));
    seen.0.extend(in_vain);
    Ok(outcome)
}
