//! What is asked and done, one function each: the API and the console call these. Each asks whether whoever wants it may, makes one call of
//! the library, and what changes something is in the journal under the name of that one.

mod audits;
mod dead;
mod jobs;
mod look;
mod pauses;
mod rebuilds;
mod reindexes;

pub use audits::{audit, audit_start, audit_stop, audits};
pub use dead::{Chosen, Count, MOST_LETTERS, REASONS, dead_groups, dead_letters, discard, replay};
pub(super) use jobs::DueJobs;
pub use jobs::{Scheduled, look_again, schedule};
pub use look::{LONGEST_HISTORY, MOST_LINES, explain, history, journal};
pub use pauses::{MOST_REASON, pause, resume};
pub(super) use rebuilds::Rebuilds;
pub use rebuilds::{Rebuilding, rebuild, rebuild_abort, rebuild_back, rebuild_plan, rebuild_start};
pub use reindexes::{
    NewReindex, Span, Value, WouldSchedule, reindex, reindex_cancel, reindex_count, reindex_pause, reindex_rate, reindex_resume,
    reindex_start, reindexes,
};

use serde::{Deserialize, Deserializer, Serialize};

use super::{Problem, Serve, Who};

/// Whether something changed, or was so already.
#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    pub collection: String,
    pub changed: bool,
}

/// What may be left out. A null is refused, as the description of the API says: it could mean "none" or "any".
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl Serve {
    /// The names of one collection, or of all, that exist for whoever asks.
    pub(crate) fn chosen(&self, who: &Who, collection: Option<&str>) -> Result<Vec<String>, Problem> {
        match collection {
            Some(name) => Ok(vec![self.collection(who, name)?.name.clone()]),
            None => Ok(self.collections(who).map(|known| known.name.clone()).collect()),
        }
    }
}
