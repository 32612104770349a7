//! Scheduling many.

pub mod commands;
