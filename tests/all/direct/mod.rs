//! The direct path.

pub mod freeze;
pub mod writes;
