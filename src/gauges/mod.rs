//! Gauges: what is asked for at each scrape. What only Postgres knows is read just before it.

mod observe;
mod process;
mod stood_still;
mod watch;

pub(crate) use observe::{Gauges, observe};
pub use watch::Part;
pub(crate) use watch::watch;
