//! Every metric's name, and where its values come from. The library writes to the global meter; [`telemetry`](crate::telemetry) serves it.
//!
//! Counters and histograms are recorded as things happen: once per batch, per pass, per direct write. Gauges are asked for at the scrape;
//! what only Postgres knows is read just before it, by [`Catchword::observe`](crate::Catchword::observe).

mod instrument;
mod names;
mod observe;
mod process;
mod record;
mod stood_still;
mod table;
mod watch;

pub use instrument::{Kind, Metric};
pub(crate) use observe::{Gauges, observe};
pub(crate) use record::{record_batch, record_canary, record_direct, record_failure, record_panic, record_pass, record_swept};
pub use table::{all, table};
pub use watch::{Part, watch};
