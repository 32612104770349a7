//! Holds an audit to so many keys a second.

use std::time::Duration;

use tokio::time::Instant;

/// Remembers when the next page may be looked at.
pub(super) struct Pacer {
    rate: Option<u32>,
    next: Instant,
}

impl Pacer {
    /// None: as fast as the servers are.
    pub fn new(rate: Option<u32>) -> Pacer {
        Pacer { rate: rate.filter(|rate| *rate > 0), next: Instant::now() }
    }

    /// Waits for the turn of a page of so many keys. Time that was not used is not saved up.
    pub async fn turn(&mut self, keys: usize) {
        let Some(rate) = self.rate else { return };
        tokio::time::sleep_until(self.next).await;
        self.next = self.next.max(Instant::now()) + Duration::from_secs_f64(keys as f64 / f64::from(rate));
    }
}
