//! Comparing, and what keeps the comparison true.

pub mod both_ways;
pub mod causes;
pub mod drift;
pub mod in_step;
pub mod put_back;
pub mod upkeep;
pub mod vanished;
pub mod vectors;
pub mod walk;
