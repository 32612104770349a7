//! Any table: every shape of key and of table goes the whole way, and the checker compares every key both ways, number and content.

pub mod habits;
pub mod ids;
pub mod keys;
pub mod partitions;
pub mod schemas;
pub mod schemas_told;
