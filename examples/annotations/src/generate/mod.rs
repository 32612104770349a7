//! Realistic annotations from a seed, for the demo, tests and benchmarks.
//!
//! A seed names a data set: the same seed gives the same ids, texts and times, in the same order,
//! on every machine and in every run. The world around them (users, groups, pages) is the same for
//! all seeds, so that two data sets can live in one database and meet on the same pages.
//!
//! [`Generator`] makes [`Operation`]s and knows no database; [`Generator::insert_many`] writes them.

mod generator;
mod world;
mod write;

pub use generator::{Edit, Generator, Insert, Operation, Remove};
pub use write::{BATCH, Written};
