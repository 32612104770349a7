//! Every metric's name, in one file. The library writes to the global meter; the binary serves `/metrics`.

use std::sync::LazyLock;

use opentelemetry::metrics::{Counter, Histogram, Meter};
use opentelemetry::{KeyValue, global};

use crate::store::Direct;
use crate::sync::{Outcome, Verdict};

static METER: LazyLock<Meter> = LazyLock::new(|| global::meter("catchword"));
static SETTLED: LazyLock<Counter<u64>> = LazyLock::new(|| counter("catchword_jobs_settled", "jobs deleted because both sides agreed"));
static BURIED: LazyLock<Counter<u64>> = LazyLock::new(|| counter("catchword_jobs_buried", "jobs moved to the dead letters"));
static PUSHED_BACK: LazyLock<Counter<u64>> = LazyLock::new(|| counter("catchword_jobs_pushed_back", "refusals charged to jobs"));
static WRITTEN: LazyLock<Counter<u64>> = LazyLock::new(|| counter("catchword_documents_written", "documents and tombstones applied"));
static CONFLICTS: LazyLock<Counter<u64>> =
    LazyLock::new(|| counter("catchword_version_conflicts", "writes that met the same or a newer version"));
static VERDICTS: LazyLock<Counter<u64>> = LazyLock::new(|| counter("catchword_verdicts", "keys looked at, by verdict"));
static DIRECT: LazyLock<Counter<u64>> = LazyLock::new(|| counter("catchword_direct", "direct writes, by outcome"));
static PASSES: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    METER
        .f64_histogram("catchword_pass_duration")
        .with_unit("s")
        .with_description("how long a pass took")
        .with_boundaries(vec![0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0])
        .build()
});

fn counter(name: &'static str, description: &'static str) -> Counter<u64> {
    METER.u64_counter(name).with_description(description).build()
}

/// Counts what a pass did. What did not happen is counted as 0, so that a series exists before its first event.
pub fn record(outcome: &Outcome) {
    SETTLED.add(outcome.settled, &[]);
    BURIED.add(outcome.buried, &[]);
    PUSHED_BACK.add(outcome.pushed_back, &[]);
    WRITTEN.add(outcome.written, &[]);
    CONFLICTS.add(outcome.conflicts, &[]);
    for verdict in Verdict::ALL {
        let count = outcome.verdicts.get(verdict.name()).copied().unwrap_or(0);
        VERDICTS.add(count, &[KeyValue::new("verdict", verdict.name())]);
    }
    PASSES.record(outcome.took.as_secs_f64(), &[]);
}

/// Counts a direct write.
pub fn record_direct(direct: &Direct) {
    let outcome = match direct {
        Direct::Indexed => "indexed",
        Direct::Left(_) => "left",
    };
    DIRECT.add(1, &[KeyValue::new("outcome", outcome)]);
}
