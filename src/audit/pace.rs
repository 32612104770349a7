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

    /// How much of a page to take at once: no more than a second's, so that an audit that is held back asks for little at a time.
    pub fn share_of(&self, page: usize) -> usize {
        self.rate.map_or(page, |rate| page.min(rate as usize))
    }

    /// Waits for the turn of a page of so many keys. Time that was not used is not saved up.
    pub async fn turn(&mut self, keys: usize) {
        let Some(rate) = self.rate else { return };
        tokio::time::sleep_until(self.next).await;
        self.next = self.next.max(Instant::now()) + Duration::from_secs_f64(keys as f64 / f64::from(rate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_held_back_asks_for_a_seconds_worth_at_a_time() {
        assert_eq!(Pacer::new(None).share_of(20_000), 20_000);
        assert_eq!(Pacer::new(Some(0)).share_of(20_000), 20_000);
        assert_eq!(Pacer::new(Some(200)).share_of(20_000), 200);
        assert_eq!(Pacer::new(Some(1_000_000)).share_of(20_000), 20_000);
    }
}
