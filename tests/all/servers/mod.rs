//! Other servers than one Postgres with a superuser and nothing in between.

mod hosts;
mod managed;
mod poolers;
