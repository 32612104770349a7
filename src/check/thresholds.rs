//! Where well ends, each with its reason. `dashboards/alarms.yaml` draws the same lines; there a `for` keeps a moment from waking anybody,
//! here the ages themselves do.

pub(super) use crate::outcome::OBJECTIVE_SECONDS;
pub(super) use crate::standing::{BURN_FAST_LONG_SECONDS, BURN_FAST_SHORT_SECONDS, BURN_SLOW_LONG_SECONDS, BURN_SLOW_SHORT_SECONDS};

/// Work that waits for a worker: longer than any deploy that replaces one.
pub(super) const STOPPED_SECONDS: f64 = 600.0;
/// Some minutes' work for one worker. Above 10,000 the census estimates, so nothing finer makes sense.
pub(super) const QUEUE_JOBS: i64 = 50_000;
/// A queue that long which is no older than this may be a bulk that was scheduled just now.
pub(super) const QUEUE_SECONDS: f64 = 1_800.0;
/// A live write is due after a minute and worked within the next one. A quarter of an hour is past every retry of an outage's end.
pub(super) const LIVE_DUE_SECONDS: f64 = 900.0;
/// A document that is refused is tried again for about 20 minutes and then given up, which has an alarm of its own.
pub(super) const CHANGE_SECONDS: f64 = 1_800.0;
/// Jobs of a bulk wait for their turn, millions of them for an hour or two.
pub(super) const BULK_DUE_SECONDS: f64 = 6.0 * 3_600.0;
/// 14.4 times as fast as the objective's one percent allows: a month's worth is spent in two days.
pub(super) const BURN_FAST_SHARE: f64 = 0.144;
/// Six times as fast: a month's worth in five days.
pub(super) const BURN_SLOW_SHARE: f64 = 0.06;
/// Slow changes of the long window: one of three in a quiet night is no rate.
pub(super) const BURN_CHANGES: i64 = 10;
/// The second tick that fails: one may have met a lock.
pub(super) const TROUBLED_SECONDS: f64 = 120.0;
/// Ten ticks, and the longest pass takes less than one.
pub(super) const PASSLESS_SECONDS: f64 = 600.0;
/// The canary is changed each minute by whatever worker lives; a quarter of an hour without is no deploy.
pub(super) const PRODUCERLESS_SECONDS: f64 = 900.0;
/// The schedule is a day or a week, and a day of grace.
pub(super) const UNAUDITED_SECONDS: f64 = 691_200.0;
/// Half a working day: a pause is for a deploy or a repair.
pub(super) const PAUSED_SECONDS: f64 = 4.0 * 3_600.0;
/// The job table lives by insert and delete; after an hour of full work its dead rows outnumber the living a thousand times.
pub(super) const HELD_BACK_SECONDS: f64 = 3_600.0;
/// Slots and standbys have no clock. This many transactions are some hours of a busy server.
pub(super) const HELD_BACK_TRANSACTIONS: i64 = 1_000_000;
