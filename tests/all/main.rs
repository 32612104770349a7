//! Promises, each a test that can fail: on a real Postgres and a real Elasticsearch, in a fresh world full of noise.

// a test never cancels its own begin
#![allow(clippy::disallowed_methods)]

#[allow(dead_code, unused_imports, reason = "tests/crash uses the rest")]
mod common;

mod alarms;
mod architecture;
mod attach;
mod audit;
mod canary;
mod check;
mod cli;
mod commands;
mod dashboard;
mod deploy;
mod direct;
mod doctor;
mod documents;
mod door;
mod drift;
mod elastic;
mod encoding;
mod faults;
mod foreign;
mod freeze;
mod held_back;
mod http;
mod idle;
mod in_step;
mod interleavings;
mod limits;
mod locks;
mod logs;
mod metrics;
mod names;
mod network;
mod operate;
mod otlp;
mod outage;
mod overload;
mod planted;
mod poison;
mod progress;
mod properties;
mod put_back;
mod queue;
mod rebuild;
mod refusals;
mod refused;
mod reindex;
mod related;
#[cfg(not(feature = "crash-points"))]
mod release;
mod restart;
mod restore;
mod roles;
mod runbooks;
mod schema;
mod simulator;
mod statements;
mod status;
mod storm;
mod targets;
mod upkeep;
mod vanished;
mod verdicts;
mod watched;
mod workers;
