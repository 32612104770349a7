//! An annotation service: the first user of catchword, and an example to copy from.
//!
//! * [`migrate()`] makes its tables and the view that says what a document is;
//! * [`uri`] lets the many spellings of one address meet;
//! * [`annotation`] is what a client may send, [`store`] its way into Postgres, [`search`] the way
//!   to find it again;
//! * [`routes`] is the HTTP interface to both, [`serve`](serve::serve) runs it;
//! * [`sync`] is the periodic task, for a service that runs it itself;
//! * [`generate`] writes realistic annotations from a seed, for the demo, tests and benchmarks.
//! * [`demo`] replays an outage of Elasticsearch against all of it.
//!
//! What makes it a user of catchword is little: the column and the view in the migration,
//! `catchword.toml`, and the three routes that write through
//! [`store_and_schedule`](catchword::Catchword::store_and_schedule).

#![forbid(unsafe_code)]

mod migrate;

pub mod annotation;
pub mod demo;
pub mod generate;
pub mod problem;
pub mod routes;
pub mod search;
pub mod serve;
pub mod store;
pub mod sync;
pub mod uri;

pub use migrate::migrate;
