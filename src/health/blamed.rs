//! Which keys this process has found to get no answer. A new write of such a key brings a new job, which remembers nothing: it is tried
//! alone all the same, so that the others in its batch do not wait for it once more.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

/// So many are remembered for each collection: more is no matter of single documents.
const MOST: usize = 1_000;

/// What a search for the keys to blame found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Searched<'k> {
    /// Did anybody get an answer? None: nobody was asked.
    pub passed: Option<bool>,
    pub blamed: HashSet<&'k str>,
    pub cleared: HashSet<&'k str>,
}

/// By collection. Forgotten when they pass, and with the process.
#[derive(Debug, Default)]
pub(crate) struct Blamed(Mutex<HashMap<String, HashSet<String>>>, Mutex<HashSet<String>>);

impl Blamed {
    /// Of these keys, those that are known.
    pub fn among<'k>(&self, collection: &str, keys: &[&'k str]) -> HashSet<&'k str> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.get(collection).filter(|known| !known.is_empty()) else { return HashSet::new() };
        keys.iter().copied().filter(|key| known.contains(*key)).collect()
    }

    /// Did the last batch of a collection end with nobody answered, and nobody to blame?
    pub fn nobody_passes(&self, collection: &str) -> bool {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).contains(collection)
    }

    /// Takes note of what a search found.
    pub fn note(&self, collection: &str, found: &Searched<'_>) {
        let mut nobody = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        match found.passed {
            Some(true) => _ = nobody.remove(collection),
            Some(false) if found.blamed.is_empty() => _ = nobody.insert(collection.to_owned()),
            _ => {}
        }
        drop(nobody);
        if found.blamed.is_empty() && found.cleared.is_empty() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(collection.to_owned()).or_default();
        found.cleared.iter().for_each(|key| _ = known.remove(*key));
        let room = MOST.saturating_sub(known.len());
        known.extend(found.blamed.iter().take(room).map(|key| key.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_from_its_blame_until_it_passes() {
        let blamed = Blamed::default();
        let found = Searched { blamed: HashSet::from(["a"]), ..Searched::default() };
        blamed.note("one", &found);
        assert_eq!(blamed.among("one", &["a", "b"]), HashSet::from(["a"]));
        assert!(blamed.among("other", &["a"]).is_empty());
        blamed.note("one", &Searched { cleared: HashSet::from(["a"]), ..Searched::default() });
        assert!(blamed.among("one", &["a"]).is_empty());
    }
}
