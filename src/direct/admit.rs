//! Whether a direct write may be sent now.

use std::sync::Arc;
use std::time::Duration;

use crate::collection::Collection;
use crate::context::{Context, probe_in_background, refresh_in_background};
use crate::health::{Fault, Scope, State};

/// How old what is known of the collections may be: a pause or a new target is heeded after this.
const REFRESH: Duration = Duration::from_secs(30);
/// The same while an index could not yet be asked whose it is.
const UNVERIFIED: Duration = Duration::from_secs(1);

/// Nothing is sent while a breaker is open, the collection is paused, or its index may be another's. Probes run beside the write.
pub(super) fn admit(context: &Arc<Context>, collection: &Arc<Collection>) -> Result<(), String> {
    if let Some(why) = context.health.faults.why(&collection.name, Fault::Unverified) {
        refresh_in_background(context, UNVERIFIED);
        return Err(why);
    }
    refresh_in_background(context, REFRESH);
    for scope in [Scope::Cluster, Scope::Collection(&collection.name)] {
        match context.health.breakers.state(scope) {
            State::Closed => {}
            State::Open(why) => return Err(why),
            State::ProbeDue => {
                probe_in_background(context, collection);
                return Err("a probe is under way".into());
            }
        }
    }
    match &collection.paused {
        Some(why) => Err(format!("paused {why}")),
        None => Ok(()),
    }
}
