//! The pass of the quick lane: the same walks, over quick jobs alone, in two parts. What the lane has not seen yet is written without a look;
//! then a look settles what agrees. While it looks, what came meanwhile can be written already.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::lane::lane;
use super::pass::{PASS, Trial, admit};
use super::walk::{Look, Reached, Walks};
use crate::Error;
use crate::collection::Collection;
use crate::context::Context;
use crate::job::Cursor;
use crate::outcome::Outcome;

/// How far the lane has come in each queue, and whether a look would have been in vain there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(HashMap<String, Reached>);

impl Seen {
    /// Behind this cursor is what was not seen yet, and is written without a look. None: this collection is looked at first.
    pub fn unseen_behind(&self, collection: &Collection) -> Option<Cursor> {
        let reached = self.of(collection);
        // of a fair one the lanes say what was seen
        (reached.look == Look::Later && collection.fair.is_none()).then_some(reached.cursor)
    }

    /// Takes in what a look found out.
    pub fn learn(&mut self, learned: Seen) {
        self.0.extend(learned.0);
    }

    fn of(&self, collection: &Collection) -> Reached {
        let reached = self.0.get(&collection.name).cloned().unwrap_or_default();
        // of several targets one mostly has what another lacks
        if collection.targets.len() == 1 { reached } else { Reached { look: Look::First, ..reached } }
    }
}

/// The first part: writes the quick jobs of these collections that were not seen yet, where that is not in vain.
pub(crate) async fn write_unseen(
    context: &Context,
    name: &str,
    collections: &[&str],
    seen: &mut Seen,
    stop: &CancellationToken,
) -> Result<Outcome, Error> {
    let started = Instant::now();
    let mut outcome = Outcome::default();
    let admitted = admitted(context, collections, &mut outcome).await;
    let unseen = admitted.into_iter().map(|collection| (seen.of(&collection), collection));
    let unseen: Vec<_> =
        unseen.filter(|(reached, _)| reached.look == Look::Later).map(|(reached, collection)| (collection, reached)).collect();
    if !unseen.is_empty() {
        let walks = Mutex::new(Walks::unseen(unseen));
        outcome.add(lane(context, &walks, stop, started + PASS).instrument(span(name)).await?);
        // where the write was in vain, for a delete or because somebody wrote it before, they are looked at first
        seen.0.extend(walks.into_inner().reached());
    }
    outcome.took = started.elapsed();
    Ok(outcome)
}

/// The second part: looks at the quick jobs of these collections that were seen by then, and settles what agrees. Also what the lane learns
/// from it.
pub(crate) async fn look_at_seen(
    context: &Context,
    name: &str,
    collections: &[&str],
    seen: &Seen,
    stop: &CancellationToken,
) -> Result<(Outcome, Seen), Error> {
    let started = Instant::now();
    let mut outcome = Outcome::default();
    let admitted = admitted(context, collections, &mut outcome).await;
    let looked: Vec<String> =
        admitted.iter().filter(|collection| seen.of(collection).look == Look::First).map(|collection| collection.name.clone()).collect();
    // behind that they are still to be written
    let until = |collection: &Arc<Collection>| seen.unseen_behind(collection).filter(|cursor| *cursor > Cursor::TOP);
    let walks = Mutex::new(Walks::quick(admitted.into_iter().map(|collection| (collection.clone(), until(&collection))).collect()));
    outcome.add(lane(context, &walks, stop, started + PASS).instrument(span(name)).await?);
    // what comes behind these is tried without a look again. As long as writes go on, half of what a look meets was written by the one before
    // it, so it could never tell that looking first is in vain
    let reached = walks.into_inner().reached().filter(|(name, _)| looked.contains(name));
    let learned = Seen(reached.map(|(name, reached)| (name, Reached { look: Look::Later, ..reached })).collect());
    outcome.took = started.elapsed();
    Ok((outcome, learned))
}

async fn admitted(context: &Context, collections: &[&str], outcome: &mut Outcome) -> Vec<Arc<Collection>> {
    admit(context, collections, Trial::Over, outcome).await.into_iter().map(|(collection, _)| collection).collect()
}

fn span(name: &str) -> tracing::Span {
    tracing::debug_span!("pass", otel.name = name)
}
