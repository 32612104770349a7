//! Promises, each a test that can fail: on a real Postgres and a real Elasticsearch, in a fresh world full of noise.

mod attach;
mod common;
mod loop_;
mod refusals;
mod roles;
mod schema;
mod statements;
