//! The index of a collection and its two aliases: what they must look like, making them, checking them.
//!
//! `annotation-000001` is the index. Readers search `annotation`, which hides tombstones; looks and writes name
//! `annotation-000001-write`.

mod belongs;
mod beside;
mod difference;
mod drop;
mod ensure;
mod flood_stage;
mod identity;
mod missing_fields;
mod plan;
mod room;
mod search_alias;
mod seen;
mod settings;

pub use difference::Difference;
pub use ensure::{Done, Ensured};
pub use plan::IndexPlan;
pub(super) use plan::shown_to_readers;
pub use room::Room;
pub use search_alias::Shown;
