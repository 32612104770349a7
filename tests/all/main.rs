//! Promises, each a test that can fail: on a real Postgres and a real Elasticsearch, in a fresh world full of noise.

// a test never cancels its own begin
#![allow(clippy::disallowed_methods)]

#[allow(dead_code, unused_imports, reason = "tests/crash uses the rest")]
mod common;

mod attach;
mod audit;
mod direct;
mod faults;
mod h;
mod in_browser;
mod operate;
mod pass;
mod rebuild;
mod reindex;
mod related;
mod repo;
mod serve;
mod servers;
mod tables;
mod wait;
