//! How much one caller may ask for. A bucket holds two seconds' worth, and fills at the caller's rate.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Callers that are remembered. Above it, those whose bucket is full again are forgotten: they lose nothing.
const MOST: usize = 10_000;
/// Seconds' worth that a bucket holds: a page with its parts is a burst.
const BURST: f64 = 2.0;

/// The buckets of all callers.
#[derive(Default)]
pub(super) struct Rates(Mutex<HashMap<String, Bucket>>);

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    rate: f64,
    at: Instant,
}

impl Rates {
    /// Takes one. If none is left: after how many seconds there is one, and at least one second.
    pub fn take(&self, caller: &str, rate: f64, now: Instant) -> Result<(), u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(caller) {
            all.retain(|_, bucket| bucket.at(now).left < bucket.most());
            if all.len() >= MOST {
                return Err(1);
            }
        }
        let fresh = Bucket { left: (rate * BURST).max(1.0), rate, at: now };
        let bucket = all.entry(caller.to_owned()).or_insert(fresh);
        *bucket = Bucket { rate, ..bucket.at(now) };
        if bucket.left < 1.0 {
            return Err(((1.0 - bucket.left) / rate).ceil().max(1.0) as u64);
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

impl Bucket {
    fn most(&self) -> f64 {
        (self.rate * BURST).max(1.0)
    }

    fn at(self, now: Instant) -> Bucket {
        let filled = self.left + now.saturating_duration_since(self.at).as_secs_f64() * self.rate;
        Bucket { left: filled.min(self.most()), at: now, ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{MOST, Rates};

    #[test]
    fn a_caller_gets_a_burst_and_then_its_rate_and_no_other_pays_for_it() {
        let (rates, start) = (Rates::default(), Instant::now());
        for _ in 0..20 {
            assert_eq!(rates.take("a", 10.0, start), Ok(()));
        }
        assert_eq!(rates.take("a", 10.0, start), Err(1));
        assert_eq!(rates.take("b", 10.0, start), Ok(()));
        let later = start + Duration::from_secs(1);
        assert_eq!((0..30).filter(|_| rates.take("a", 10.0, later).is_ok()).count(), 10);
    }

    #[test]
    fn callers_without_number_cost_no_memory_without_bound() {
        let (rates, start) = (Rates::default(), Instant::now());
        for n in 0..MOST {
            assert_eq!(rates.take(&n.to_string(), 1.0, start), Ok(()));
        }
        assert_eq!(rates.take("one more", 1.0, start), Err(1));
        assert_eq!(rates.take("one more", 1.0, start + Duration::from_secs(3)), Ok(()));
        assert!(rates.0.lock().unwrap().len() < 10);
    }
}
