#![doc = include_str!("ARCHITECTURE.md")]
#![forbid(unsafe_code)]

mod catchword;
mod compare;
mod context;
mod direct;
mod health;
mod outcome;

pub mod sync;
pub mod worker;

pub mod alarm;
pub mod audit;
pub mod doctor;
pub mod drift;
pub mod explain;
pub mod migrate;
pub mod operate;
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
mod host;
mod printable;
mod traceparent;

pub use catchword::Catchword;
pub use compare::{Verdict, compare};
pub use direct::{Direct, Kept, Stored};
pub use error::Error;
pub use outcome::Outcome;
pub use worker::Worker;
