//! One deadline per batch, from claim to commit.

use std::time::Duration;

use tokio::time::Instant;

/// A batch holds its row locks for at most this long. Below the server's own limit of 60 s for a transaction.
const BATCH: Duration = Duration::from_secs(45);
/// What is kept back for settling and committing.
const SETTLING: Duration = Duration::from_secs(5);

/// When a batch must be committed.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// From now.
    pub fn start() -> Deadline {
        Deadline(Instant::now() + BATCH)
    }

    /// The smaller of a step's own limit and what is left. None: there is no time for another step.
    pub fn within(&self, limit: Duration) -> Option<Duration> {
        let left = self.0.saturating_duration_since(Instant::now()).checked_sub(SETTLING)?;
        (!left.is_zero()).then(|| left.min(limit))
    }
}
