//! Whether the batches of a collection moved anything, for whoever tells that nothing does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What became of the batches since somebody last asked, by collection.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Jobs were settled, written or buried, or rows touched.
    pub moved: BTreeSet<String>,
    /// Jobs were claimed, and none of that; and why, or nothing.
    pub stood: BTreeMap<String, String>,
}

impl Turns {
    /// Adds those that came later.
    pub fn add(&mut self, later: Turns) {
        self.moved.extend(later.moved);
        self.stood.extend(later.stood);
        self.stood.retain(|name, _| !self.moved.contains(name));
    }
}

/// The turns of a process.
#[derive(Debug, Default)]
pub(crate) struct Noted(Mutex<Turns>);

impl Noted {
    /// Takes note of whether a batch moved anything, and why it did not if that is known.
    pub fn note(&self, collection: &str, moved: bool, why: Option<&str>) {
        let turns = &mut *self.lock();
        if moved {
            turns.stood.remove(collection);
            turns.moved.insert(collection.to_owned());
        } else if !turns.moved.contains(collection) {
            turns.stood.insert(collection.to_owned(), why.unwrap_or_default().to_owned());
        }
    }

    /// What became of the batches since this was last asked.
    pub fn take(&self) -> Turns {
        std::mem::take(&mut self.lock())
    }

    /// Is there nothing to take?
    pub fn is_empty(&self) -> bool {
        let turns = self.lock();
        turns.moved.is_empty() && turns.stood.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
