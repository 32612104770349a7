//! One of the batches in flight.

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::walk::{Claimed, Look, Turn, Walks};
use super::{panicked, touches};
use crate::context::{Context, refresh};
use crate::health::Fault;
use crate::outcome::Outcome;
use crate::{Error, metrics};

/// Claims its turn's batch, works it, and comes back for more. The claim is taken one at a time; the
/// stop is heeded between batches, never inside one.
pub(super) async fn lane(context: &Context, walks: &Mutex<Walks>, stop: &CancellationToken, end: Instant) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    while !stop.is_cancelled() && Instant::now() < end {
        // in a statement of its own, so that the lock is not held
        let turn = walks.lock().await.next(context).await?;
        let Claimed { collection, mut transaction, jobs, look, took } = match turn {
            Some(Turn::Batch(claimed)) => claimed,
            Some(Turn::Touches(collection)) => {
                match touches::step(context, &collection).await? {
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
            begin_again(context, walks, &collection.name).await?;
            continue;
        }
        match panicked::guarded(context, &collection, transaction, &jobs, look).await {
            Ok((mut done, mut measured)) => {
                done.claiming = took;
                measured.claim = took;
                // an index that was taken off the list and dropped under the batch blocks nothing
                if !done.blocked.is_empty() && !collection.targets_are_current(&mut *context.pool.acquire().await?).await? {
                    done.blocked.clear();
                    begin_again(context, walks, &collection.name).await?;
                }
                metrics::record_batch(&collection.name, &done, &measured);
                context.health.turns.note(&collection.name, done.moved(), done.hindered.as_deref());
                context.health.faults.note(&collection.name, Fault::Blocked, done.blocked.get(&collection.name).cloned());
                context.health.faults.note(&collection.name, Fault::Refusing, done.refusing.get(&collection.name).cloned());
                let mut walks = walks.lock().await;
                walks.look(&collection.name, &jobs, Look::after(done.written, done.claimed, collection.targets.len()));
                if !done.blocked.is_empty() || context.health.breakers.why(&collection.name).is_some() {
                    walks.end(&collection.name);
                }
                outcome.add(done);
            }
            Err(Error::View(why)) => {
                context.health.faults.note(&collection.name, Fault::Blocked, Some(why.clone()));
                walks.lock().await.end(&collection.name);
                outcome.blocked.insert(collection.name.clone(), why);
            }
            // the view was too slow for so many, or a lock was not had: nobody else has to wait for that
            Err(error) if error.is_too_slow() => {
                context.health.batches.of(&collection.name).slower();
                tracing::warn!(collection = collection.name, "the next batch is smaller: {error}");
                context.health.turns.note(&collection.name, false, Some(&error.to_string()));
                walks.lock().await.end(&collection.name);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(outcome)
}

/// Reads a collection again whose targets are others now, and walks its queue from the top.
async fn begin_again(context: &Context, walks: &Mutex<Walks>, name: &str) -> Result<(), Error> {
    refresh(context).await?;
    let read = context.collection(name).filter(|_| context.health.faults.why(name, Fault::Unverified).is_none());
    walks.lock().await.begin_again(name, read);
    Ok(())
}
