//! How the collections of this process are: what is at fault, whom to leave alone for a while, and how much to take at once.

mod blamed;
mod breaker;
mod fault;
mod pace;
mod turns;

use crate::config::Config;
use crate::elastic::{Answer, Target};

pub(crate) use blamed::{Blamed, Searched};
pub(crate) use breaker::{Breakers, Scope, State};
pub(crate) use fault::{Fault, Faults};
pub(crate) use pace::Paces;
pub(crate) use turns::Turns;

/// Rows of one step of touches at most: as many as a batch has jobs.
const TOUCHED_ROWS: u32 = 2_500;

/// What this process knows of how its collections are.
pub(crate) struct Health {
    pub faults: Faults,
    pub breakers: Breakers,
    /// How many jobs the next batch of a collection claims.
    pub batches: Paces,
    /// How many rows the next step of a collection's touches takes.
    pub steps: Paces,
    pub blamed: Blamed,
    pub turns: turns::Noted,
}

impl Health {
    pub fn new(config: &Config) -> Health {
        Health {
            faults: Faults::default(),
            breakers: Breakers::default(),
            batches: Paces::new(config.worker.batch),
            steps: Paces::new(TOUCHED_ROWS),
            blamed: Blamed::default(),
            turns: turns::Noted::default(),
        }
    }

    /// Nothing of a collection waits: another worker may have done what this one could not.
    pub fn is_quiet(&self, collection: &str) {
        self.faults.note(collection, Fault::TouchesWait, None);
        self.faults.note(collection, Fault::Refusing, None);
        self.faults.note(collection, Fault::Blocked, None);
    }

    /// How an index that readers do not see answered; none: well.
    pub fn note_hidden_index(&self, collection: &str, target: &Target, withheld: bool, failed: Option<Answer>) {
        // what is closed or gone answers at once: asking it again costs nothing, and nothing else ends that
        if !withheld && !matches!(failed, Some(Answer::Blocked(_))) {
            self.breakers.note_beside(target.index(), failed.as_ref());
        }
        let why = failed.map(|answer| format!("index {target}, which readers do not see, lags behind, so no job settles: {answer}"));
        self.faults.note(collection, Fault::Lagging, why);
    }
}
