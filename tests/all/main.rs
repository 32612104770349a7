//! Promises, each a test that can fail: on a real Postgres and a real Elasticsearch, in a fresh world full of noise.
// a test never cancels its own begin
#![allow(clippy::disallowed_methods)]

mod cli;
mod common;
mod direct;
mod elastic;
mod interleavings;
mod outage;
mod queue;
mod refused;
mod reindex;
mod related;
mod restart;
mod status;
mod storm;
mod verdicts;
mod workers;
