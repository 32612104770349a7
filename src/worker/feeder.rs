//! The next pieces of reindexes, scheduled beside the loop: so few jobs at a time that the queue stays small, and as slowly as a reindex
//! is told to. Any number of workers may do it side by side: whoever has locked a reindex schedules its next piece.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Worker;
use crate::reindex;

/// Another process may have the reindex in hand whose time has come: it is not asked for again at once.
const SHORTEST: Duration = Duration::from_millis(250);
/// Somebody may pause, resume or slow down a reindex meanwhile.
const LONGEST: Duration = Duration::from_secs(2);

/// How often it looks for a reindex that somebody began or resumed: nobody should wait for a tick to see it move.
const LOOK: Duration = Duration::from_secs(2);

/// What a worker does for reindexes.
pub(super) struct Feeder {
    worker: Worker,
    /// Wakes the loop: there are jobs of a reindex.
    fed: Arc<Notify>,
}

impl Feeder {
    pub fn new(worker: Worker, fed: Arc<Notify>) -> Feeder {
        Feeder { worker, fed }
    }

    /// Runs until `stop`. What is wrong is logged when it begins and when it ends, and tried again.
    pub async fn run(self, stop: CancellationToken) {
        let mut trouble: Option<String> = None;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            match self.look(&stop).await {
                Ok(()) => {
                    if trouble.take().is_some() {
                        tracing::info!("reindexes are scheduled again");
                    }
                }
                // the loop logs that Postgres is down
                Err(error) if error.is_absence() => {}
                Err(error) => {
                    let why = error.to_string();
                    if trouble.as_ref() != Some(&why) {
                        tracing::warn!("reindexes are not scheduled, and are tried again: {why}");
                    }
                    trouble = Some(why);
                }
            }
        }
    }

    /// While a reindex runs the loop works on its collection every two seconds, and the next pieces of it are scheduled.
    async fn look(&self, stop: &CancellationToken) -> Result<(), crate::Error> {
        let question = || sqlx::query(include_str!("running_reindexes.sql")).bind(self.worker.collections.clone());
        let running = self.worker.kept.ask(&self.worker.context.pool, question).await?;
        let running = running.iter().map(|row| row.try_get("collection")).collect::<Result<Vec<String>, _>>()?;
        if running.is_empty() {
            return Ok(());
        }
        // also what it wrote a moment ago: the look that settles it comes now, and not at the next tick
        self.worker.life().fed.extend(running);
        self.fed.notify_one();
        self.feed(stop).await
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
