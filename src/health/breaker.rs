//! Leaves a sick Elasticsearch alone: three failures in a row and nothing is sent for a while, then one small probe.
//!
//! There is one breaker for the cluster and one per collection: a lost connection or wrong credentials are everybody's, a slow or
//! half-dead index is its own. One set per process, shared by its loop and its direct path.

use std::collections::HashMap;
use std::time::Duration;

use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

use crate::elastic::Answer;

/// Failures in a row that open a breaker: one is an accident, two a coincidence.
const FAILURES: u32 = 3;
/// The first wait; it doubles with each failed probe.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// The longest: an outage that ends is noticed within a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// One breaker. Time and chance come from outside.
#[derive(Debug, Default)]
struct Breaker {
    failures: u32,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    until: Instant,
    wait: Duration,
    why: String,
    probing: bool,
}

impl Breaker {
    fn state(&self, now: Instant) -> State {
        match &self.open {
            None => State::Closed,
            Some(open) if now < open.until || open.probing => State::Open(open.why.clone()),
            Some(_) => State::ProbeDue,
        }
    }

    fn succeeded(&mut self) {
        *self = Breaker::default();
    }

    /// A failure; `jitter` is between 0 and 1. True: it opened now. Once open, only a probe counts: what was still on its way when it
    /// opened must not lengthen the wait.
    fn failed(&mut self, now: Instant, jitter: f64, why: &str) -> bool {
        if self.open.is_some() {
            return false;
        }
        self.failures += 1;
        self.failures >= FAILURES && self.trip(now, jitter, why)
    }

    fn trip(&mut self, now: Instant, jitter: f64, why: &str) -> bool {
        let wait = self.open.as_ref().map_or(FIRST_WAIT, |open| (open.wait * 2).min(LONGEST_WAIT));
        let opened = self.open.is_none();
        self.open = Some(Open { until: now + wait.mul_f64(0.75 + jitter / 2.0), wait, why: why.to_owned(), probing: false });
        opened
    }
}

impl Breaker {
    /// Shortens a wait that is longer than this; `jitter` is between 0 and 1.
    fn hurry(&mut self, now: Instant, jitter: f64, within: Duration) {
        if let Some(open) = self.open.as_mut().filter(|open| open.until > now + within.mul_f64(1.25)) {
            open.until = now + within.mul_f64(0.75 + jitter / 2.0);
        }
    }
}

/// Whether something may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// All is well.
    Closed,
    /// Nothing is sent, and why.
    Open(String),
    /// The wait is over: one small request may find out.
    ProbeDue,
}

/// Whom a breaker stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    Cluster,
    Collection(&'a str),
}

/// The breakers of a process.
#[derive(Debug, Default)]
pub struct Breakers {
    all: Mutex<(Breaker, HashMap<String, Breaker>)>,
}

impl Breakers {
    /// May something be sent for this scope?
    pub fn state(&self, scope: Scope) -> State {
        self.with(scope, |breaker| breaker.state(Instant::now()))
    }

    /// Takes the one probe that is due. False: somebody else has it.
    pub fn take_probe(&self, scope: Scope) -> bool {
        self.with(scope, |breaker| match (breaker.state(Instant::now()), &mut breaker.open) {
            (State::ProbeDue, Some(open)) => {
                open.probing = true;
                true
            }
            _ => false,
        })
    }

    /// Whoever looks for the end of an outage need not wait for long: every probe is due within about this.
    pub fn hurry(&self, within: Duration) {
        let now = Instant::now();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let (cluster, collections) = &mut *all;
        std::iter::once(cluster).chain(collections.values_mut()).for_each(|breaker| breaker.hurry(now, rand::random(), within));
    }

    /// Is something wrong with the cluster or with this collection's index, as far as is known?
    pub fn is_open(&self, collection: &str) -> bool {
        [Scope::Cluster, Scope::Collection(collection)].into_iter().any(|scope| self.state(scope) != State::Closed)
    }

    /// An answer came that only a living cluster and a living index give.
    pub fn succeeded(&self, collection: &str) {
        self.closed(Scope::Cluster);
        self.closed(Scope::Collection(collection));
    }

    /// The probe of a scope succeeded.
    pub fn closed(&self, scope: Scope) {
        let was_open = self.with(scope, |breaker| {
            let was_open = breaker.open.is_some();
            breaker.succeeded();
            was_open
        });
        if was_open {
            tracing::info!("elasticsearch answers again");
        }
    }

    /// The probe of a scope failed.
    pub fn probe_failed(&self, scope: Scope, why: &str) {
        self.with(scope, |breaker| breaker.trip(Instant::now(), rand::random(), why));
    }

    /// Takes note of an answer to a whole request. Credentials open the cluster's breaker at once: no retry storm.
    pub fn note(&self, collection: &str, answer: &Answer) {
        let why = answer.to_string();
        let now = Instant::now();
        let opened = match answer {
            Answer::Applied | Answer::Conflict | Answer::Refused(_) | Answer::TooLarge(_) => {
                self.succeeded(collection);
                false
            }
            // they come from a living cluster, and are not fixed by leaving it alone
            Answer::Failed(_) | Answer::Overloaded(_) | Answer::Blocked(_) => false,
            Answer::Denied(_) => self.with(Scope::Cluster, |breaker| breaker.open.is_none() && breaker.trip(now, rand::random(), &why)),
            Answer::Unreachable(_) => self.with(Scope::Cluster, |breaker| breaker.failed(now, rand::random(), &why)),
            Answer::Unavailable(_) | Answer::Unknown(_) => {
                self.with(Scope::Collection(collection), |breaker| breaker.failed(now, rand::random(), &why))
            }
        };
        if opened {
            tracing::warn!(collection, "nothing is sent to elasticsearch for a while: {why}");
        }
    }

    /// May an index that readers do not see be asked? One whose wait is over may, by one asker at a time: that is its probe.
    pub fn admits_beside(&self, index: &str) -> Result<(), String> {
        let scope = Scope::Collection(index);
        match self.state(scope) {
            State::Closed => Ok(()),
            State::ProbeDue if self.take_probe(scope) => Ok(()),
            State::ProbeDue => Err("a probe is under way".into()),
            State::Open(why) => Err(why),
        }
    }

    /// Takes note of how an index that readers do not see answered; none: well. It has a breaker of its own, so that it cannot keep
    /// anything from the one that they see.
    pub fn note_beside(&self, index: &str, answer: Option<&Answer>) {
        let scope = Scope::Collection(index);
        let Some(answer) = answer else { return self.closed(scope) };
        let (now, why) = (Instant::now(), answer.to_string());
        let opened = self.with(scope, |breaker| match breaker.open.as_ref().map(|open| open.probing) {
            Some(true) => breaker.trip(now, rand::random(), &why),
            Some(false) => false,
            None => breaker.failed(now, rand::random(), &why),
        });
        if opened {
            tracing::warn!(index, "nothing is sent to this index for a while: {why}");
        }
    }

    /// Why nothing is sent for this collection, if so.
    pub fn why(&self, collection: &str) -> Option<String> {
        [Scope::Cluster, Scope::Collection(collection)].into_iter().find_map(|scope| match self.state(scope) {
            State::Open(why) => Some(why),
            State::Closed | State::ProbeDue => None,
        })
    }

    /// Did Elasticsearch answer when it was last asked? Where all collections' requests are in vain it does not.
    pub fn answers(&self) -> bool {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let (cluster, collections) = &*all;
        cluster.failures == 0 && cluster.open.is_none() && (collections.is_empty() || collections.values().any(|c| c.open.is_none()))
    }

    fn with<T>(&self, scope: Scope, act: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        match scope {
            Scope::Cluster => act(&mut all.0),
            Scope::Collection(name) => act(all.1.entry(name.to_owned()).or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_open_it_and_a_success_in_between_does_not() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert!(!breaker.failed(now, 0.5, "x"));
        assert!(!breaker.failed(now, 0.5, "x"));
        breaker.succeeded();
        assert!(!breaker.failed(now, 0.5, "x"));
        assert!(!breaker.failed(now, 0.5, "x"));
        assert_eq!(breaker.state(now), State::Closed);
        assert!(breaker.failed(now, 0.5, "x"));
        assert_eq!(breaker.state(now), State::Open("x".into()));
        for _ in 0..10 {
            breaker.failed(now, 0.5, "still on its way when it opened");
        }
        assert_eq!(breaker.state(now + Duration::from_secs(5)), State::ProbeDue);
    }

    #[test]
    fn the_wait_doubles_up_to_a_minute() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        let mut waits = vec![];
        for _ in 0..6 {
            breaker.trip(now, 0.5, "x");
            waits.extend(breaker.open.as_ref().map(|open| open.wait.as_secs()));
        }
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
        assert_eq!(breaker.state(now + Duration::from_secs(59)), State::Open("x".into()));
        assert_eq!(breaker.state(now + Duration::from_secs(60)), State::ProbeDue);
    }

    #[test]
    fn whoever_hurries_probes_soon_and_again_after_each_failure() {
        let (mut breaker, now, soon) = (Breaker::default(), Instant::now(), Duration::from_secs(2));
        for probe in 0..6 {
            breaker.trip(now, 0.5, "x");
            breaker.hurry(now, 1.0, soon);
            // asked again, it is not put off
            breaker.hurry(now + Duration::from_secs(1), 1.0, soon);
            assert_eq!(breaker.state(now + Duration::from_millis(2_499)), State::Open("x".into()), "probe {probe}");
            assert_eq!(breaker.state(now + Duration::from_millis(2_500)), State::ProbeDue, "probe {probe}");
        }
    }

    #[test]
    fn one_probe_at_a_time() {
        let breakers = Breakers::default();
        breakers.note("a", &Answer::Denied("wrong password".into()));
        assert!(matches!(breakers.state(Scope::Cluster), State::Open(_)));
        breakers.with(Scope::Cluster, |b| b.open.as_mut().map(|open| open.until = Instant::now()));
        assert_eq!(breakers.state(Scope::Cluster), State::ProbeDue);
        assert!(breakers.take_probe(Scope::Cluster));
        assert!(!breakers.take_probe(Scope::Cluster));
        breakers.closed(Scope::Cluster);
        assert_eq!(breakers.state(Scope::Cluster), State::Closed);
    }

    #[test]
    fn a_sick_index_leaves_the_others_alone() {
        let breakers = Breakers::default();
        for _ in 0..3 {
            breakers.note("a", &Answer::Unknown("no answer in time".into()));
        }
        assert!(breakers.why("a").is_some());
        assert!(breakers.why("b").is_none());
    }

    #[test]
    fn an_index_that_nobody_reads_has_a_breaker_of_its_own_and_one_probe_at_a_time() {
        let breakers = Breakers::default();
        let sick = Answer::Unknown("no answer in time".into());
        for _ in 0..3 {
            assert_eq!(breakers.admits_beside("a-000002"), Ok(()));
            breakers.note_beside("a-000002", Some(&sick));
        }
        assert!(breakers.admits_beside("a-000002").is_err());
        assert!(breakers.why("a").is_none());
        breakers.with(Scope::Collection("a-000002"), |b| b.open.as_mut().map(|open| open.until = Instant::now()));
        assert_eq!(breakers.admits_beside("a-000002"), Ok(()));
        assert!(breakers.admits_beside("a-000002").is_err(), "its probe is under way");
        breakers.note_beside("a-000002", Some(&sick));
        assert!(breakers.admits_beside("a-000002").is_err(), "and failed");
        breakers.note_beside("a-000002", None);
        assert_eq!(breakers.admits_beside("a-000002"), Ok(()));
    }
}
