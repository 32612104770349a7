//! The loop: what becomes of jobs.

pub mod bad_documents;
pub mod canary;
pub mod fair;
pub mod idle;
pub mod interleavings;
pub mod limits;
pub mod overload;
pub mod poison;
pub mod progress;
pub mod queue;
pub mod quick;
pub mod related;
pub mod simulator;
pub mod targets;
pub mod verdicts;
pub mod workers;
