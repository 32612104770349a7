//! The next pieces of reindexes, scheduled beside the loop: so few jobs at a time that the queue stays small, and as slowly as a reindex
//! is told to. Any number of workers may do it side by side: whoever has locked a reindex schedules its next piece.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Worker;
use crate::reindex;

/// Another process may have the reindex in hand whose time has come: it is not asked for again at once.
const SHORTEST: Duration = Duration::from_millis(250);
/// Somebody may pause, resume or slow down a reindex meanwhile.
const LONGEST: Duration = Duration::from_secs(2);

/// What a worker does for reindexes. It asks nothing until a tick has seen one that is open.
pub(super) struct Feeder {
    worker: Worker,
    /// Wakes the loop: there are jobs of a reindex.
    fed: Arc<Notify>,
}

impl Feeder {
    pub fn new(worker: Worker, fed: Arc<Notify>) -> Feeder {
        Feeder { worker, fed }
    }

    /// Runs until `stop`. What is wrong is logged when it begins and when it ends, and tried again at the next tick.
    pub async fn run(self, stop: CancellationToken) {
        let mut trouble: Option<String> = None;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.worker.reindexing.notified() => {}
            }
            match (self.feed(&stop).await.map_err(|error| error.to_string()), &trouble) {
                (Err(why), before) => {
                    if before.as_ref() != Some(&why) {
                        tracing::warn!("reindexes are not scheduled, and are tried again at the next tick: {why}");
                    }
                    trouble = Some(why);
                }
                (Ok(()), Some(_)) => {
                    tracing::info!("reindexes are scheduled again");
                    trouble = None;
                }
                (Ok(()), None) => {}
            }
        }
    }

    /// Piece by piece, until no reindex is open.
    async fn feed(&self, stop: &CancellationToken) -> Result<(), crate::Error> {
        let names: Vec<&str> = self.worker.collections.iter().map(String::as_str).collect();
        while !stop.is_cancelled() {
            let fed = reindex::feed(&self.worker.context.pool, &names).await?;
            let next = fed.next();
            if fed.scheduled > 0 {
                self.worker.life().fed.extend(fed.collections);
                self.fed.notify_one();
                continue;
            }
            let Some(next) = next else { break };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(next.clamp(SHORTEST, LONGEST)) => {}
            }
        }
        Ok(())
    }
}
