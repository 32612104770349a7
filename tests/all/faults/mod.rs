//! Servers and processes that fail.

pub mod answers;
pub mod lane_restart;
mod network;
pub mod nodes;
pub mod outage;
pub mod restart;
pub mod restore;
pub mod storm;
pub mod workers_killed;
