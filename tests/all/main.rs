//! Promises, each a test that can fail: on a real Postgres and a real Elasticsearch, in a fresh world full of noise.
// a test never cancels its own begin
#![allow(clippy::disallowed_methods)]

mod architecture;
mod common;
mod deploy;
mod direct;
mod documents;
mod interleavings;
mod outage;
mod queue;
mod refused;
mod related;
mod restart;
mod simulator;
mod storm;
mod verdicts;
mod workers;
