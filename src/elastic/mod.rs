//! The only code that speaks HTTP to Elasticsearch.
//!
//! In the order the data travels: [`look`] asks which versions are there, [`bulk`] writes
//! documents under their versions, [`answer`] says what an answer means, [`index`] makes the index and its two aliases.
//! Everything that decides is a pure function of bytes; what is left does nothing but send and wait.

pub mod address;
pub mod answer;
pub mod bulk;
pub mod found;
pub mod index;
pub mod look;
pub mod point_in_time;
pub mod sources;
pub mod sweep;

mod ask;
mod chunks;
mod client;
mod engine;
mod error;
mod fault;
mod nodes;
mod percent;
mod redact;
mod survey;
mod target;
mod vectors;

pub use address::{Address, Certificate, Credentials, Transport};
pub use answer::Answer;
pub use bulk::{Body, MAX_DOCUMENT_BYTES, Refresh, Write};
pub use client::Elastic;
pub use engine::{Engine, Maker, Support};
pub use error::Error;
pub use found::MOST_FOUND;
pub use index::{Difference, Done, Ensured, IndexPlan, Room, Shown};
pub use look::Has;
pub use point_in_time::{PAGE, Page};
pub(crate) use redact::redact;
pub use sources::Stored;
pub use survey::{Actual, Cluster};
pub use target::Target;
pub use vectors::Vectors;
