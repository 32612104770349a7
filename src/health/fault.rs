//! What is wrong with a collection. One map, and one place that logs when a fault begins and when it ends.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What can be wrong, the worst last: of several, the worst is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The configuration has settings that the database has not. Nothing is held up by it.
    Unmigrated,
    /// A mapping file or a view changed since the index was filled. Nothing is held up by it.
    Drifted,
    /// Readers who search it together with others miss it, or find what is not its own. Its jobs go on.
    NotShown,
    /// A worker could not finish its rebuild.
    RebuildStuck,
    /// An index that readers do not see lags behind. The readers' goes on; no job is satisfied until then.
    Lagging,
    /// A schema of many cannot be served as it is. The others are.
    SchemaNotServed,
    /// A touch of it could not be worked on, the last time it was tried. Everything else goes on; where nothing does, the standstill is
    /// told, and where a change waits for long, its age.
    TouchesWait,
    /// Its view or mapping is at fault: over half of the last batch was refused with one error.
    Refusing,
    /// Its index could not be asked whose it is. Nothing is written to an index that may be another's.
    Unverified,
    /// Its index or view failed a whole batch. Tried with a small one at each tick.
    Blocked,
    /// It cannot be served as it is: not attached, triggers off, another's index. Read again at each tick.
    NotServed,
}

impl Fault {
    /// Does it keep jobs of the collection from being worked on?
    fn holds_up(self) -> bool {
        !matches!(self, Fault::Unmigrated | Fault::Drifted | Fault::NotShown | Fault::TouchesWait)
    }

    fn log_beginning(self, collection: &str, why: &str) {
        match self {
            Fault::Unmigrated | Fault::Drifted => tracing::warn!(collection, "{why}"),
            Fault::TouchesWait => tracing::warn!(collection, "changes of related tables wait: {why}"),
            Fault::NotShown | Fault::RebuildStuck | Fault::Lagging => tracing::error!(collection, "{why}"),
            Fault::Refusing => tracing::error!(collection, "more than half of a batch is refused with the same error: {why}"),
            Fault::Blocked => tracing::error!(collection, "blocked: {why}"),
            Fault::NotServed | Fault::SchemaNotServed => tracing::error!(collection, "not served: {why}"),
            // the breaker that opened was logged
            Fault::Unverified => {}
        }
    }

    fn log_end(self, collection: &str) {
        let says = match self {
            Fault::Unmigrated => "the database has what the configuration says",
            Fault::Drifted => "mapping and view are as the index was filled",
            Fault::NotShown => "it is found under its search alias",
            Fault::RebuildStuck => "the rebuild went on",
            Fault::Lagging => "no index lags behind any more",
            Fault::TouchesWait => "changes of related tables are worked on again",
            Fault::Refusing => "documents are no longer refused with one error",
            Fault::Blocked => "no longer blocked",
            Fault::NotServed | Fault::SchemaNotServed => "served again",
            Fault::Unverified => return,
        };
        tracing::info!(collection, "{says}");
    }
}

/// The faults of the collections of a process, and why.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<BTreeMap<(String, Fault), String>>);

impl Faults {
    /// Takes note of a fault, or that it is over (none). It is logged when it begins and when it ends.
    pub fn note(&self, collection: &str, fault: Fault, why: Option<String>) {
        let at = (collection.to_owned(), fault);
        match why {
            Some(why) => {
                let before = self.lock().insert(at, why.clone());
                // another reason not to serve a collection is news: its remedy is another one
                if before.is_none() || matches!(fault, Fault::NotServed | Fault::SchemaNotServed) && before.as_ref() != Some(&why) {
                    fault.log_beginning(collection, &why);
                }
            }
            None => {
                if self.lock().remove(&at).is_some() {
                    fault.log_end(collection);
                }
            }
        }
    }

    /// Takes note of which collections have this fault now: all others have it no more.
    pub fn note_all(&self, fault: Fault, now: &BTreeMap<String, String>) {
        let before = self.all(fault);
        for name in before.keys().filter(|name| !now.contains_key(*name)) {
            self.note(name, fault, None);
        }
        for (name, why) in now {
            self.note(name, fault, Some(why.clone()));
        }
    }

    /// Why a collection has this fault; none: it has not.
    pub fn why(&self, collection: &str, fault: Fault) -> Option<String> {
        self.lock().get(&(collection.to_owned(), fault)).cloned()
    }

    /// The collections that have this fault, and why.
    pub fn all(&self, fault: Fault) -> BTreeMap<String, String> {
        let faults = self.lock();
        faults.iter().filter(|((_, known), _)| *known == fault).map(|((name, _), why)| (name.clone(), why.clone())).collect()
    }

    /// The collections that something holds up, each with the worst of it.
    pub fn worst(&self) -> BTreeMap<String, String> {
        // in the order of their rank: the last one stays
        self.lock().iter().filter(|((_, fault), _)| fault.holds_up()).map(|((name, _), why)| (name.clone(), why.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, Fault), String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_told_and_what_holds_nothing_up_is_not() {
        let faults = Faults::default();
        for (fault, why) in
            [(Fault::Blocked, "closed"), (Fault::Lagging, "full"), (Fault::TouchesWait, "a lock"), (Fault::Drifted, "another view")]
        {
            faults.note("one", fault, Some(why.into()));
        }
        faults.note("two", Fault::Unmigrated, Some("delay".into()));
        assert_eq!(faults.worst(), BTreeMap::from([("one".into(), "closed".into())]));
        faults.note("one", Fault::Blocked, None);
        assert_eq!(faults.worst()["one"], "full");
        faults.note("one", Fault::Lagging, None);
        assert_eq!(faults.worst(), BTreeMap::new());
        assert_eq!(faults.why("one", Fault::Drifted).as_deref(), Some("another view"));
    }

    #[test]
    fn what_is_not_named_any_more_is_over() {
        let faults = Faults::default();
        faults.note_all(Fault::NotServed, &BTreeMap::from([("one".into(), "off".into()), ("two".into(), "off".into())]));
        faults.note_all(Fault::NotServed, &BTreeMap::from([("two".into(), "gone".into())]));
        assert_eq!(faults.all(Fault::NotServed), BTreeMap::from([("two".into(), "gone".into())]));
    }
}
