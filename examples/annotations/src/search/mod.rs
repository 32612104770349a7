//! Search, answered by Elasticsearch through the readers' alias.

mod ask;
mod client;
mod query;

pub use ask::Ask;
pub use client::{Found, SearchClient, SearchError};
