//! Every metric's name, and where its values come from. The library writes to the global meter; [`telemetry`](crate::telemetry) serves it.
//!
//! Counters and histograms are recorded as things happen: once per batch, per pass, per direct write. Gauges are asked for at the scrape,
//! by [`gauges`](crate::gauges).

mod instrument;
pub(crate) mod names;
mod record;
mod table;

pub(crate) use instrument::Level;
pub use instrument::{Kind, Metric};
pub(crate) use record::{
    LAST_PASS_AT, record_batch, record_canary, record_direct, record_failure, record_panic, record_pass, record_swept, zero_direct,
    zero_loop,
};
pub use table::{all, table};
