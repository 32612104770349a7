//! The demo: an outage of Elasticsearch, replayed, and what it stands on.

mod compare;
mod gate;
mod index;
mod scratch;

pub use compare::{Compared, Side, compare};
pub use gate::Gate;
pub use index::Index;
pub use scratch::{Clock, Scratch};
