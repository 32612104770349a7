#![doc = include_str!("ARCHITECTURE.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "internals"), deny(missing_docs))]
// without `internals`, what only the tests and benches ask for is asked for by nobody
#![cfg_attr(not(feature = "internals"), allow(dead_code, unused_imports))]

// The parts, in reading order. Nobody outside sees them but through the door below, or with the feature `internals`.
#[path = "."]
mod parts {
    // the heart
    pub mod catchword;
    pub mod compare;
    pub mod context;
    pub mod direct;
    pub mod health;
    pub mod look;
    pub mod outcome;
    pub mod sync;
    pub mod wait;
    pub mod worker;

    // operations
    #[cfg(feature = "cli")]
    pub mod accept;
    #[cfg(feature = "cli")]
    pub mod api_key;
    pub mod audit;
    pub mod check;
    #[cfg(feature = "cli")]
    pub mod cli;
    #[cfg(feature = "cli")]
    pub mod console;
    pub mod doctor;
    pub mod drift;
    pub mod explain;
    pub mod gauges;
    pub mod history;
    pub mod init;
    pub mod journal;
    pub mod metrics;
    pub mod migrate;
    pub mod pause;
    pub mod rebuild;
    pub mod reindex;
    #[cfg(feature = "cli")]
    pub mod serve;
    pub mod standing;
    pub mod status;
    #[cfg(feature = "otlp")]
    pub mod telemetry;
    pub mod upkeep;

    // the ground
    pub mod alone;
    pub mod collection;
    pub mod config;
    pub mod crash;
    pub mod database;
    pub mod elastic;
    pub mod error;
    pub mod heartbeat;
    pub mod host;
    pub mod job;
    pub mod printable;
    pub mod traceparent;
}

#[cfg(not(feature = "internals"))]
use parts::*;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub use parts::*;

// The door.
pub use parts::catchword::Catchword;
pub use parts::collection::Key;
pub use parts::compare::Verdict;
pub use parts::direct::{Direct, Kept, Stored};
pub use parts::elastic::Refresh;
pub use parts::error::Error;
pub use parts::outcome::Outcome;
pub use parts::wait::{Became, Until, Waited};
pub use parts::worker::Worker;

/// `catchword.toml`, and what the environment says.
pub use parts::config;

/// Metrics and traces of a process that has no OpenTelemetry of its own.
#[cfg(feature = "otlp")]
pub use parts::telemetry;

/// What a process is, for its metrics.
pub use parts::gauges::Part;

/// The command line. Not for applications.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use parts::cli;
