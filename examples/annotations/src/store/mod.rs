//! The service's own SQL: one verb, one file, and its statement beside it.
//!
//! These take a connection, so that `store_and_schedule` can run them inside its transaction. None
//! knows of jobs or of the index: the triggers leave the job.

mod change;
mod claim_key;
mod delete;
mod find;
mod insert;
mod page;

pub use change::change;
pub use claim_key::{Claim, claim_key};
pub use delete::delete;
pub use find::find;
pub use insert::insert;
