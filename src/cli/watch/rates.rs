//! How fast it goes, from counts that were read some seconds apart. Pure: time comes from outside.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::history::Lately;

/// Over how long: a batch is counted when it is committed, and may take some seconds.
const OVER: Duration = Duration::from_secs(10);

/// Per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub settled: f64,
    pub written: f64,
}

/// Settled and written, by minute and collection.
type Counts = HashMap<(DateTime<Utc>, String), (i64, i64)>;

/// What was counted before.
#[derive(Default)]
pub(super) struct Rates(VecDeque<(Instant, Counts)>);

impl Rates {
    /// The rates since the oldest counts of the last seconds. A collection that is not in it did nothing. Empty at first.
    pub fn since_before(&mut self, now: Instant, lately: &[Lately]) -> BTreeMap<String, Rate> {
        let counts: Counts =
            lately.iter().map(|count| ((count.minute, count.collection.clone()), (count.settled, count.written))).collect();
        // one that is a little older than that is still needed, until the next one is old enough
        while self.0.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= OVER) {
            self.0.pop_front();
        }
        let mut rates: BTreeMap<String, Rate> = BTreeMap::new();
        if let Some((at, before)) = self.0.front() {
            let seconds = now.saturating_duration_since(*at).as_secs_f64().max(0.1);
            for ((minute, collection), (settled, written)) in &counts {
                let (settled_before, written_before) = before.get(&(*minute, collection.clone())).copied().unwrap_or_default();
                let rate = rates.entry(collection.clone()).or_default();
                rate.settled += (settled - settled_before).max(0) as f64 / seconds;
                rate.written += (written - written_before).max(0) as f64 / seconds;
            }
        }
        self.0.push_back((now, counts));
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn a_rate_is_over_some_seconds_and_goes_on_into_the_next_minute() {
        let (start, mut rates) = (Instant::now(), Rates::default());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let count = |minute: i64, settled: i64| Lately {
            minute: DateTime::UNIX_EPOCH + TimeDelta::minutes(minute),
            collection: "note".into(),
            settled,
            written: 2 * settled,
        };
        assert!(rates.since_before(at(0), &[count(0, 1_000)]).is_empty(), "what was before is no speed");
        let rate = |settled| BTreeMap::from([("note".to_owned(), Rate { settled, written: 2.0 * settled })]);
        assert_eq!(rates.since_before(at(5), &[count(0, 1_050)]), rate(10.0));
        assert_eq!(rates.since_before(at(10), &[count(0, 1_060), count(1, 40)]), rate(10.0));
        assert_eq!(rates.since_before(at(15), &[count(0, 1_060), count(1, 40)]), rate(5.0), "since five seconds after the start");
        assert_eq!(rates.since_before(at(40), &[count(1, 40)]), rate(0.0), "the first minute is too old to be read");
    }
}
