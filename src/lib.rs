#![doc = include_str!("ARCHITECTURE.md")]
#![forbid(unsafe_code)]

mod catchword;
mod gather;
mod store;

pub mod sync;

pub mod audit;
pub mod check;
pub mod doctor;
pub mod drift;
pub mod explain;
pub mod journal;
pub mod migrate;
pub mod pause;
pub mod rebuild;
pub mod reindex;
pub mod status;
pub mod upkeep;

pub mod collection;
pub mod elastic;
pub mod job;

pub mod cli;
pub mod config;
pub mod database;
pub mod metrics;
pub mod telemetry;

mod alone;
mod crash;
mod error;
mod printable;
mod standing;
mod traceparent;

pub use catchword::Catchword;
pub(crate) use catchword::Inner;
pub use error::Error;
pub use store::{Direct, Kept, Stored};
pub use sync::{Outcome, Verdict};
