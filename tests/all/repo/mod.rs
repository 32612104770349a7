//! The repository itself: pages, schema, door, order of the parts.

pub mod alarms;
pub mod architecture;
pub mod dashboard;
pub mod deploy;
pub mod documents;
pub mod door;
#[cfg(not(feature = "crash-points"))]
pub mod release;
pub mod runbooks;
pub mod schema;
pub mod statements;
