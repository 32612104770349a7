//! The service's promises, each a test that can fail: over HTTP, on a real Postgres and a real Elasticsearch.

mod world;

mod demo;
mod direct;
mod follows;
mod outage;
mod program;
mod requests;
mod search;
mod waits;
