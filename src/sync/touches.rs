//! What changes of related tables left behind: one small step per turn of a collection, so that nobody waits for a long one.

use std::time::Duration;

use tokio::time::Instant;

use crate::Error;
use crate::collection::{Expanded, expand_touches};
use crate::context::Context;
use crate::health::Fault;

/// A step that takes longer makes the next one smaller: this is what a live write may have to wait, and for how long rows are locked.
const LONG: Duration = Duration::from_millis(250);

/// Takes one step, and says how many rows drew a number: of one large touch, or of as many small ones as there is time for. None: there is
/// nothing to do now, or it cannot be done. What is wrong with the touches of one collection keeps no other waiting; only a lost Postgres
/// is an error.
pub(super) async fn step(context: &Context, collection: &str) -> Result<Option<u64>, Error> {
    let (pace, started) = (context.health.steps.of(collection), Instant::now());
    let mut touched = None;
    let mut trouble = None;
    while trouble.is_none() && started.elapsed() < LONG / 2 {
        match expand_touches(&context.pool, collection, pace.size() as i32).await {
            Ok(Expanded { jobs: 0, slow, .. }) => {
                context.health.faults.note(collection, Fault::TouchesWait, slow);
                return Ok(touched);
            }
            Ok(Expanded { slow: None, touched: rows, .. }) => *touched.get_or_insert(0) += rows as u64,
            Ok(Expanded { slow, .. }) => trouble = slow,
            Err(error) if error.sqlstate().is_some() => trouble = Some(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    match trouble.is_some() || started.elapsed() > LONG {
        true => pace.slower(),
        false => pace.faster(),
    }
    if touched.is_some() {
        context.health.turns.note(collection, true, None);
    } else if let Some(why) = &trouble {
        context.health.turns.note(collection, false, Some(why));
    }
    context.health.faults.note(collection, Fault::TouchesWait, trouble);
    Ok(touched)
}
