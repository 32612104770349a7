//! Every metric: its name, its labels and what it means. `docs/metrics.md` is made from this file.
//!
//! Labels are bounded: names of the configuration and words of this crate, never a key, a user or an error's text.

use super::instrument::{Count, Level, Metric, Spread};

/// Between a round trip on one machine and the longest limit of a request.
const DURATIONS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// A pass ends after 10 s, and its last batch after 45 more.
const PASSES: &[f64] = &[0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0];
/// From one direct write to an hour's outage. 60 s and 120 s bound what the loop needs for what was written directly, where all is well: the delay, and a tick.
const FRESHNESS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 1800.0, 3600.0];
/// From one small document to the largest bulk, in powers of four.
const BYTES: &[f64] = &[1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 8388608.0, 16777216.0];

const COLLECTION: &[&str] = &["collection"];
const CLASS: &[&str] = &["collection", "class"];

pub(crate) static SETTLED: Count = Count::new("catchword_jobs_settled_total", CLASS, "Jobs deleted because a look saw both sides agree.");
pub(crate) static BURIED: Count =
    Count::new("catchword_jobs_buried_total", &["collection", "class", "reason"], "Jobs moved to the dead letters.");
pub(crate) static PUSHED_BACK: Count = Count::new("catchword_jobs_pushed_back_total", CLASS, "Refusals that were counted against jobs.");
pub(crate) static WRITTEN: Count = Count::new(
    "catchword_documents_written_total",
    &["collection", "path"],
    "Documents and tombstones that Elasticsearch applied, by the direct path or the loop.",
);
pub(crate) static VERDICTS: Count =
    Count::new("catchword_verdicts_total", &["collection", "verdict"], "Keys looked at by the loop, by verdict.");
pub(crate) static ANSWERS: Count =
    Count::new("catchword_answers_total", &["collection", "outcome"], "Answers of Elasticsearch to the loop's writes, one per item.");
pub(crate) static CONFLICTS: Count =
    Count::new("catchword_version_conflicts_total", COLLECTION, "Writes that met the same or a newer version: somebody was faster.");
pub(crate) static AHEAD: Count = Count::new(
    "catchword_ahead_total",
    COLLECTION,
    "Keys whose document was ahead of the row: somebody else writes to the index, or Postgres lost commits.",
);
pub(crate) static BULK_BYTES: Spread = Spread::new("catchword_bulk_bytes", COLLECTION, BYTES, "Bytes of a bulk of the loop, about.");
pub(crate) static BULK_DURATION: Spread =
    Spread::new("catchword_bulk_duration_seconds", COLLECTION, DURATIONS, "How long Elasticsearch took for a bulk of the loop.");
pub(crate) static LOOK_DURATION: Spread =
    Spread::new("catchword_look_duration_seconds", &["collection", "side"], DURATIONS, "How long a batch's look at a side took.");
pub(crate) static CLAIM_DURATION: Spread =
    Spread::new("catchword_claim_duration_seconds", COLLECTION, DURATIONS, "How long it took to lock a batch of due jobs.");
pub(crate) static PASS_DURATION: Spread = Spread::new("catchword_pass_duration_seconds", &[], PASSES, "How long a pass took.");
pub(crate) static LAST_PASS: Level =
    Level::new("catchword_last_pass_timestamp_seconds", &[], "When the last pass of this worker succeeded; 0: none did yet.");
pub(crate) static PANICS: Count = Count::new("catchword_pass_panics_total", &[], "Ticks and batches that panicked: a bug.");
pub(crate) static FAILED: Count = Count::new("catchword_passes_failed_total", &[], "Ticks that failed, usually because of Postgres.");

pub(crate) static DIRECT: Count = Count::new(
    "catchword_direct_total",
    &["collection", "outcome"],
    "Direct writes of this process: indexed at once, or left to the loop.",
);
pub(crate) static DIRECT_DURATION: Spread =
    Spread::new("catchword_direct_duration_seconds", COLLECTION, DURATIONS, "How long a direct write held up its caller.");
pub(crate) static FRESHNESS_SECONDS: Spread = Spread::new(
    "catchword_freshness_seconds",
    &["collection", "path"],
    FRESHNESS,
    "From the write to being seen in Elasticsearch. direct: from the commit to the answer, in the application. loop: from the job's enqueued_at to the look that settles it, whoever wrote the document, so delay and tick are part of it. reindex: the same from scheduled_at, for jobs that are no live writes.",
);

pub(crate) static CANARY_SECONDS: Spread = Spread::new(
    "catchword_canary_seconds",
    &["stage"],
    FRESHNESS,
    "From the commit of the canary's change until Elasticsearch has it (indexed) and search shows it (searchable). The quick lane carries it like any write, or else the tick. A change that is not seen within a minute is given up and counts as 61 s.",
);

pub(crate) static JOBS: Level = Level::new(
    "catchword_jobs",
    &["collection", "state"],
    "Jobs by state: due, waiting, expired (due or waiting, and over 30 days old), dead (letters). Above 10,000 of a priority an estimate.",
);
pub(crate) static OLDEST_DUE: Level = Level::new(
    "catchword_oldest_due_job_age_seconds",
    &["collection", "priority"],
    "How long the oldest due job has been due, claimed ones included; 0: nothing is due. live: priorities 0 and 1, the writes. bulk: what comes after them.",
);
pub(crate) static OLDEST_CHANGE: Level = Level::new(
    "catchword_oldest_change_seconds",
    COLLECTION,
    "How long ago the oldest change was made that is due or was postponed; 0: none is. Counted from enqueued_at, which no postponement moves. Live writes only; what waits for its delay is not old.",
);
pub(crate) static NO_PROGRESS: Level = Level::new(
    "catchword_no_progress_seconds",
    COLLECTION,
    "For how long ticks have seen due jobs of which none was written, settled or buried; 0: they move, or there are none.",
);
pub(crate) static FAILING_TOUCHES: Level = Level::new(
    "catchword_failing_touches",
    COLLECTION,
    "Changes of related rows that could not be passed on to the rows that refer to them, and will be tried again.",
);
pub(crate) static SCHEDULED: Level = Level::counted(
    "catchword_jobs_scheduled_total",
    &[],
    "Numbers drawn from the sequence of job ids; a rolled back write draws some too.",
);
pub(crate) static PAUSED: Level = Level::new("catchword_paused", COLLECTION, "1 while an operator has paused the collection.");
pub(crate) static PAUSED_SECONDS: Level =
    Level::new("catchword_paused_seconds", COLLECTION, "For how long the collection has been paused; 0: it is not.");
pub(crate) static DEAD_TUPLES: Level =
    Level::new("catchword_job_dead_tuples", &[], "Dead tuples in the table of jobs: what vacuum has not removed yet.");
pub(crate) static TABLE_BYTES: Level = Level::new("catchword_job_table_bytes", &[], "Size of the table of jobs.");
pub(crate) static INDEX_BYTES: Level = Level::new("catchword_job_index_bytes", &[], "Size of the indexes of the table of jobs.");
pub(crate) static HELD_BACK: Level = Level::new(
    "catchword_vacuum_held_back_seconds",
    &["by"],
    "For how long the oldest session, prepared transaction, replication slot or standby has held vacuum back; 0: none does. Slots and standbys have no clock: as long as this worker has seen them stand still.",
);

pub(crate) static REBUILD_STAGE: Level = Level::new(
    "catchword_rebuild_stage",
    &["collection", "stage"],
    "1 for the stage that a rebuild of the collection's index is in; all 0: none is under way, and no old index is kept.",
);
pub(crate) static REBUILD_PROGRESS: Level = Level::new(
    "catchword_rebuild_progress_ratio",
    COLLECTION,
    "How much of the new index is filled, from 0 to 1; 0: no rebuild is under way.",
);
pub(crate) static AUDIT_DIFFERENCES: Level = Level::new(
    "catchword_audit_differences",
    &["collection", "kind"],
    "What differed at the last finished audit of the whole collection, by kind.",
);
pub(crate) static AUDIT_FINISHED: Level = Level::new(
    "catchword_audit_finished_timestamp_seconds",
    COLLECTION,
    "When the last audit of the whole collection finished; 0: none did yet.",
);
pub(crate) static AUDIT_REPAIRED: Level =
    Level::counted("catchword_audit_repaired_total", COLLECTION, "Keys that audits scheduled for repair.");
pub(crate) static AUDIT_RUNNING: Level = Level::new("catchword_audit_running", COLLECTION, "1 while an audit runs.");
pub(crate) static LOST_WRITES: Level = Level::new(
    "catchword_index_lost_writes",
    COLLECTION,
    "1 when an index went back behind what it had acknowledged, or is another under the old name, until ten minutes after an audit with repair has finished.",
);
pub(crate) static SWITCHED: Level = Level::new(
    "catchword_server_switched",
    COLLECTION,
    "1 when Postgres is another server or timeline than before, or its sequence went back, so that commits may be lost; until an audit with content and repair, or a full reindex, has finished.",
);
pub(crate) static SWEPT: Count = Count::new("catchword_tombstones_swept_total", COLLECTION, "Old tombstones that were removed.");

pub(crate) static BREAKER: Level =
    Level::new("catchword_breaker_state", &["scope"], "1 while nothing is sent to Elasticsearch: for the cluster, or for one collection.");
pub(crate) static BLOCKED: Level = Level::new(
    "catchword_collection_blocked",
    COLLECTION,
    "1 while the collection cannot be worked on: its index, its view, its mapping or its triggers are at fault.",
);
pub(crate) static UP: Level = Level::new("catchword_up", &["server"], "1 while the server answers this process.");
pub(crate) static BUILD: Level = Level::new("catchword_build_info", &["version"], "Always 1.");
pub(crate) static MEMORY: Level = Level::new("catchword_process_resident_memory_bytes", &[], "Memory that this process holds.");
pub(crate) static CPU: Level = Level::counted("catchword_process_cpu_seconds_total", &[], "Time that this process has computed.");

/// All of them, in the order of the documentation.
pub(crate) static ALL: &[&Metric] = &[
    &JOBS.metric,
    &OLDEST_DUE.metric,
    &OLDEST_CHANGE.metric,
    &NO_PROGRESS.metric,
    &FAILING_TOUCHES.metric,
    &SCHEDULED.metric,
    &SETTLED.metric,
    &PUSHED_BACK.metric,
    &BURIED.metric,
    &FRESHNESS_SECONDS.metric,
    &CANARY_SECONDS.metric,
    &DIRECT.metric,
    &DIRECT_DURATION.metric,
    &WRITTEN.metric,
    &VERDICTS.metric,
    &ANSWERS.metric,
    &CONFLICTS.metric,
    &AHEAD.metric,
    &CLAIM_DURATION.metric,
    &LOOK_DURATION.metric,
    &BULK_DURATION.metric,
    &BULK_BYTES.metric,
    &PASS_DURATION.metric,
    &LAST_PASS.metric,
    &FAILED.metric,
    &PANICS.metric,
    &BREAKER.metric,
    &BLOCKED.metric,
    &PAUSED.metric,
    &PAUSED_SECONDS.metric,
    &REBUILD_STAGE.metric,
    &REBUILD_PROGRESS.metric,
    &AUDIT_DIFFERENCES.metric,
    &AUDIT_FINISHED.metric,
    &AUDIT_REPAIRED.metric,
    &AUDIT_RUNNING.metric,
    &LOST_WRITES.metric,
    &SWITCHED.metric,
    &SWEPT.metric,
    &UP.metric,
    &DEAD_TUPLES.metric,
    &TABLE_BYTES.metric,
    &INDEX_BYTES.metric,
    &HELD_BACK.metric,
    &BUILD.metric,
    &MEMORY.metric,
    &CPU.metric,
];
