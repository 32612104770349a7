//! What a batch took and found, for the metrics alone: the [`Outcome`](super::Outcome) is for people.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::job::{self, Class, Fresh, Job, Reason};

/// The objective: 99 % of changes are seen in Elasticsearch within this. The delay and a tick are two minutes, and a failed tick or two
/// must fit in. A bucket of the histogram ends here, and `dashboards/alarms.yaml` counts by it.
pub(crate) const OBJECTIVE_SECONDS: f64 = 300.0;

/// What a batch took and found.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub claim: Duration,
    /// At Elasticsearch and at Postgres; none: it was written unseen.
    pub looks: Option<(Duration, Duration)>,
    pub bulks: Vec<Bulk>,
    /// Answers by their name, one per item and target.
    pub answers: BTreeMap<&'static str, u64>,
    pub settled: BTreeMap<Class, u64>,
    pub pushed_back: BTreeMap<Class, u64>,
    pub buried: BTreeMap<(Class, Reason), u64>,
    /// Seconds from the write to the look that settled its job.
    pub freshness: Vec<(Path, f64)>,
}

/// One bulk.
#[derive(Debug)]
pub(crate) struct Bulk {
    pub bytes: usize,
    pub took: Duration,
}

/// How a document came to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Loop,
    Reindex,
}

impl Measured {
    /// A look took so long at Elasticsearch and at Postgres.
    pub fn looked(&mut self, at_elasticsearch: Duration, at_postgres: Duration) {
        let (one, other) = self.looks.unwrap_or_default();
        self.looks = Some((one + at_elasticsearch, other + at_postgres));
    }

    /// A look saw both sides agree, so long after the claim.
    pub fn settled(&mut self, job: &Job, after_claim: Duration) {
        let class = Class::of(&job.tag);
        *self.settled.entry(class).or_default() += 1;
        // only a live write's enqueued_at is its time; a bulk's is spaced so that bulks take turns
        let (path, since) = match class {
            Class::Reindex | Class::Audit => (Path::Reindex, job.scheduled_at),
            _ if job.priority > job::LIVE => (Path::Reindex, job.scheduled_at),
            Class::Live | Class::Canary | Class::Other => (Path::Loop, job.enqueued_at),
        };
        let waited = (job.claimed_at - since).to_std().unwrap_or_default();
        self.freshness.push((path, (waited + after_claim).as_secs_f64()));
    }

    /// How many changes a look has seen, each once whoever wrote its document, and how many of them late. A bulk has no objective.
    pub fn fresh(&self) -> Fresh {
        let mut fresh = Fresh::default();
        for (_, seconds) in self.freshness.iter().filter(|(path, _)| *path == Path::Loop) {
            fresh.count(*seconds, OBJECTIVE_SECONDS);
        }
        fresh
    }

    pub fn pushed_back(&mut self, job: &Job) {
        *self.pushed_back.entry(Class::of(&job.tag)).or_default() += 1;
    }

    pub fn buried(&mut self, job: &Job, reason: Reason) {
        *self.buried.entry((Class::of(&job.tag), reason)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{TimeDelta, Utc};

    #[test]
    fn a_live_write_is_measured_from_its_time_and_a_bulk_from_when_it_was_due() {
        let claimed_at = Utc::now();
        let ago = |seconds| claimed_at - TimeDelta::seconds(seconds);
        let job = |tag: &str, priority| Job {
            id: 1,
            key: "k".into(),
            priority,
            enqueued_at: ago(70),
            scheduled_at: ago(10),
            claimed_at,
            attempts: 0,
            unanswered: None,
            tag: tag.into(),
            traceparent: None,
            expired: false,
            lane: None,
        };
        let mut measured = Measured::default();
        for job in [job("update", 1), job("import", 1), job("reindex.user", 100), job("update", 100), job("audit", 1)] {
            measured.settled(&job, Duration::from_secs(2));
        }
        let (live, bulk) = ((Path::Loop, 72.0), (Path::Reindex, 12.0));
        assert_eq!(measured.freshness, [live, live, bulk, bulk, bulk]);
        assert_eq!(measured.settled, BTreeMap::from([(Class::Live, 2), (Class::Reindex, 1), (Class::Audit, 1), (Class::Other, 1)]));
    }

    #[test]
    fn a_change_is_slow_behind_the_objective_and_a_bulk_never_is() {
        let freshness = vec![(Path::Loop, 70.0), (Path::Loop, 300.0), (Path::Loop, 300.1), (Path::Reindex, 9_000.0), (Path::Loop, 9_000.0)];
        let fresh = Measured { freshness, ..Measured::default() }.fresh();
        assert_eq!((fresh.changes, fresh.slow, fresh.buckets.iter().sum::<i64>()), (4, 2, 4));
        let freshness = vec![(Path::Reindex, 9_000.0)];
        assert_eq!(Measured { freshness, ..Measured::default() }.fresh(), Fresh::default());
    }

    #[test]
    fn a_clock_that_went_back_measures_nothing() {
        let now = Utc::now();
        let job = Job {
            id: 1,
            key: "k".into(),
            priority: 1,
            enqueued_at: now + TimeDelta::seconds(5),
            scheduled_at: now,
            claimed_at: now,
            attempts: 0,
            unanswered: None,
            tag: "insert".into(),
            traceparent: None,
            expired: false,
            lane: None,
        };
        let mut measured = Measured::default();
        measured.settled(&job, Duration::from_secs(1));
        assert_eq!(measured.freshness, [(Path::Loop, 1.0)]);
    }
}
