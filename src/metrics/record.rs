//! Counts what happened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::KeyValue;

use super::names::{
    AHEAD, ANSWERS, BULK_BYTES, BULK_DURATION, BURIED, CANARY_SECONDS, CLAIM_DURATION, CONFLICTS, DIRECT, DIRECT_DURATION, FAILED,
    FRESHNESS_SECONDS, LOOK_DURATION, PANICS, PASS_DURATION, PUSHED_BACK, SETTLED, SWEPT, VERDICTS, WRITTEN,
};
use crate::compare::Verdict;
use crate::elastic::Answer;
use crate::job::{Class, Reason};
use crate::outcome::{Measured, Outcome};

/// When the last pass succeeded, in seconds of this machine's clock: Prometheus compares it with its own.
pub(crate) static LAST_PASS_AT: AtomicU64 = AtomicU64::new(0);

/// What a batch did, once it is committed.
pub(crate) fn record_batch(collection: &str, outcome: &Outcome, measured: &Measured) {
    let name = KeyValue::new("collection", collection.to_owned());
    let with = |label: &'static str, value: &'static str| [name.clone(), KeyValue::new(label, value)];
    let alone = [name.clone()];
    for (class, count) in &measured.settled {
        SETTLED.add(*count, &with("class", class.name()));
    }
    for (class, count) in &measured.pushed_back {
        PUSHED_BACK.add(*count, &with("class", class.name()));
    }
    for ((class, reason), count) in &measured.buried {
        BURIED.add(*count, &[name.clone(), KeyValue::new("class", class.name()), KeyValue::new("reason", reason.name())]);
    }
    for (verdict, count) in &outcome.verdicts {
        VERDICTS.add(*count, &with("verdict", verdict));
    }
    for (answer, count) in &measured.answers {
        ANSWERS.add(*count, &with("outcome", answer));
    }
    WRITTEN.add(outcome.written, &with("path", "loop"));
    CONFLICTS.add(outcome.conflicts, &alone);
    AHEAD.add(outcome.verdicts.get(Verdict::Ahead.name()).copied().unwrap_or(0), &alone);
    CLAIM_DURATION.record(measured.claim.as_secs_f64(), &alone);
    if let Some((elasticsearch, postgres)) = measured.looks {
        LOOK_DURATION.record(elasticsearch.as_secs_f64(), &with("side", "elasticsearch"));
        LOOK_DURATION.record(postgres.as_secs_f64(), &with("side", "postgres"));
    }
    for bulk in &measured.bulks {
        BULK_BYTES.record(bulk.bytes as f64, &alone);
        BULK_DURATION.record(bulk.took.as_secs_f64(), &alone);
    }
    let paths = [with("path", "loop"), with("path", "reindex")];
    for (path, seconds) in &measured.freshness {
        FRESHNESS_SECONDS.record(*seconds, &paths[*path as usize]);
    }
}

/// A pass came to its end.
pub(crate) fn record_pass(outcome: &Outcome) {
    PASS_DURATION.record(outcome.took.as_secs_f64(), &[]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    LAST_PASS_AT.store(now.as_secs(), Ordering::Relaxed);
}

/// The canary has come this far, so long after its commit.
pub(crate) fn record_canary(stage: &'static str, since: Duration) {
    CANARY_SECONDS.record(since.as_secs_f64(), &[KeyValue::new("stage", stage)]);
}

/// A tick failed.
pub(crate) fn record_failure() {
    FAILED.add(1, &[]);
}

/// A tick or a batch panicked.
pub(crate) fn record_panic() {
    PANICS.add(1, &[]);
}

/// What became of a direct write of so many keys, how long it took, and how long after the write began its commit.
pub(crate) fn record_direct(collection: &str, is_indexed: bool, written: u64, took: Duration, since_write: Duration) {
    let name = KeyValue::new("collection", collection.to_owned());
    let with = |label: &'static str, value: &'static str| [name.clone(), KeyValue::new(label, value)];
    DIRECT.add(1, &with("outcome", if is_indexed { "indexed" } else { "left" }));
    if is_indexed {
        WRITTEN.add(written, &with("path", "direct"));
        FRESHNESS_SECONDS.record(since_write.as_secs_f64(), &with("path", "direct"));
    }
    DIRECT_DURATION.record(took.as_secs_f64(), &[name]);
}

/// Makes the direct path's series exist before their first event.
pub(crate) fn zero_direct(collection: &str) {
    let name = KeyValue::new("collection", collection.to_owned());
    let with = |label: &'static str, value: &'static str| [name.clone(), KeyValue::new(label, value)];
    WRITTEN.add(0, &with("path", "direct"));
    for outcome in ["indexed", "left"] {
        DIRECT.add(0, &with("outcome", outcome));
    }
}

/// Makes the loop's series exist before their first event: a rate needs a 0 to start from.
pub(crate) fn zero_loop(collection: &str) {
    let name = KeyValue::new("collection", collection.to_owned());
    let with = |label: &'static str, value: &'static str| [name.clone(), KeyValue::new(label, value)];
    for class in Class::ALL {
        SETTLED.add(0, &with("class", class.name()));
        PUSHED_BACK.add(0, &with("class", class.name()));
        for reason in Reason::ALL {
            BURIED.add(0, &[name.clone(), KeyValue::new("class", class.name()), KeyValue::new("reason", reason.name())]);
        }
    }
    for verdict in Verdict::ALL {
        VERDICTS.add(0, &with("verdict", verdict.name()));
    }
    for answer in Answer::NAMES {
        ANSWERS.add(0, &with("outcome", answer));
    }
    WRITTEN.add(0, &with("path", "loop"));
    CONFLICTS.add(0, std::slice::from_ref(&name));
    SWEPT.add(0, std::slice::from_ref(&name));
    AHEAD.add(0, &[name]);
    FAILED.add(0, &[]);
    PANICS.add(0, &[]);
}

/// Tombstones that were swept.
pub(crate) fn record_swept(collection: &str, count: u64) {
    SWEPT.add(count, &[KeyValue::new("collection", collection.to_owned())]);
}
