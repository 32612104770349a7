//! The only code that sees both sides. A pass walks each collection's queue from the top, in batches, one per turn.

mod batch;
mod deadline;
mod drain;
mod fate;
mod find;
mod group;
mod groups;
mod lane;
mod panicked;
mod pass;
mod quick;
mod renumber;
mod search;
mod touches;
mod walk;
mod write;

pub(crate) use drain::{drain, log_switched, note_server, show, sync};
pub use fate::{Fate, Finding, fate, mass_refusal};
pub(crate) use pass::{Trial, pass};
pub(crate) use quick::{Seen, look_at_seen, write_unseen};
