//! What changes of related tables left behind: one small step per turn of a collection, so that nobody waits for a long one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::pace::Pace;
use crate::collection::{Expanded, expand_touches};
use crate::{Error, Inner};

/// Rows of one step at most: as many as a batch has jobs.
const ROWS: u32 = 2_500;
/// A step that takes longer makes the next one smaller: this is what a live write may have to wait, and for how long rows are locked.
const LONG: Duration = Duration::from_millis(250);

/// How many rows the next step of each collection touches.
#[derive(Debug, Default)]
pub(crate) struct Steps(Mutex<HashMap<String, Arc<Pace>>>);

impl Steps {
    fn of(&self, collection: &str) -> Arc<Pace> {
        let mut paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paces.entry(collection.to_owned()).or_insert_with(|| Arc::new(Pace::new(ROWS))).clone()
    }
}

/// Takes one step, and says how many rows drew a number: of one large touch, or of as many small ones as there is time for. None: there is
/// nothing to do now, or it cannot be done. What is wrong with the touches of one collection keeps no other waiting; only a lost Postgres
/// is an error.
pub(super) async fn step(inner: &Inner, collection: &str) -> Result<Option<u64>, Error> {
    let (pace, started) = (inner.steps.of(collection), Instant::now());
    let mut touched = None;
    let mut trouble = None;
    while trouble.is_none() && started.elapsed() < LONG / 2 {
        match expand_touches(&inner.pool, collection, pace.size() as i32).await {
            Ok(Expanded { jobs: 0, slow, .. }) => {
                inner.note_touches(collection, slow.as_ref());
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
        inner.note_turn(collection, true, None);
    } else if let Some(why) = &trouble {
        inner.note_turn(collection, false, Some(why));
    }
    inner.note_touches(collection, trouble.as_ref());
    Ok(touched)
}
