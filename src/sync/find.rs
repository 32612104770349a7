//! What a batch found out of each key, put together once. Pure.

use std::collections::HashMap;

use super::fate::Finding;
use super::group::{Key, Worked};
use super::renumber::Renumbered;
use super::search::Found;
use crate::collection::{KeyType, Want, no_id};
use crate::compare::Verdict;

/// What the steps of a batch came to.
pub(super) struct Facts<'a, 'k> {
    pub key_type: &'a KeyType,
    pub worked: &'a Worked<'k>,
    pub renumbered: &'a Renumbered<'k>,
    pub found: &'a Found<'k>,
    /// The readers' index could not be asked.
    pub is_down: bool,
}

/// A key that no document can have would fail the bulk: it is found bad before anybody is asked. The rest is looked at once per key.
pub(super) fn sort_out_bad_keys<'k>(keys: impl Iterator<Item = &'k str>) -> (Vec<&'k str>, HashMap<&'k str, Finding>) {
    let mut good: Vec<&str> = keys.collect();
    good.sort_unstable();
    good.dedup();
    let mut bad = HashMap::new();
    good.retain(|key| match no_id(key) {
        None => true,
        Some(fault) => {
            bad.insert(*key, Finding::BadKey(fault));
            false
        }
    });
    (good, bad)
}

/// What was found of a key; none: nothing, so its jobs are left as they are.
pub(super) fn find(key: &str, facts: &Facts<'_, '_>) -> Option<Finding> {
    let Facts { key_type, worked, renumbered, found, is_down } = facts;
    if found.suspected.contains_key(key) {
        return Some(Finding::Suspected);
    }
    if let Some(why) = found.blamed.get(key) {
        return Some(Finding::Unanswered(why.clone()));
    }
    if let Some(fault) = worked.unbuildable.iter().find(|fault| fault.key == key) {
        return Some(Finding::Unbuildable(fault.error.clone()));
    }
    if renumbered.hopeless.contains(key) {
        return Some(Finding::Hopeless);
    }
    if renumbered.remembered.contains(key) {
        return Some(Finding::Remembered);
    }
    let seen = worked.keys.get(key);
    if let Some(fault) = seen.filter(|seen| never_was(seen)).and_then(|_| key_type.fault(key)) {
        return Some(Finding::BadKey(fault));
    }
    let verdict = seen.map(Key::verdict).or(is_down.then_some(Verdict::Unknown))?;
    Some(Finding::Seen { verdict, answer: worked.written.worst(key).cloned() })
}

/// Neither side has it. If its key is not of the collection's type, somebody scheduled it by mistake; if it had a document, an audit found
/// it, and it is seen gone like any other orphan.
fn never_was(seen: &Key) -> bool {
    seen.want == Want::Never && seen.seen == 0 && seen.verdict() == Verdict::Gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::Unbuildable;

    fn worked(key: &'static str, want: Want, verdict: Verdict) -> Worked<'static> {
        let keys = HashMap::from([(key, Key { want, verdicts: vec![verdict], seen: 0 })]);
        let mut worked = Worked::default();
        worked.keys = keys;
        worked
    }

    fn found_of(key: &str, worked: &Worked<'static>, renumbered: &Renumbered<'static>, found: &Found<'static>) -> Option<Finding> {
        find(key, &Facts { key_type: &KeyType::named(&["bigint".to_owned()]).unwrap(), worked, renumbered, found, is_down: false })
    }

    #[test]
    fn whoever_may_be_innocent_is_not_blamed_for_what_else_was_seen() {
        let mut worked = worked("1", Want::Present(4), Verdict::Missing);
        let mut found = Found::default();
        let mut renumbered = Renumbered::default();
        let now = |worked: &_, renumbered: &_, found: &_| found_of("1", worked, renumbered, found).unwrap();
        assert_eq!(now(&worked, &renumbered, &found), Finding::Seen { verdict: Verdict::Missing, answer: None });
        renumbered.remembered.insert("1");
        assert_eq!(now(&worked, &renumbered, &found), Finding::Remembered);
        renumbered.hopeless.insert("1");
        assert_eq!(now(&worked, &renumbered, &found), Finding::Hopeless);
        worked.unbuildable.push(Unbuildable { key: "1".into(), error: "division by zero".into() });
        assert_eq!(now(&worked, &renumbered, &found), Finding::Unbuildable("division by zero".into()));
        found.blamed.insert("1", "no answer".into());
        assert_eq!(now(&worked, &renumbered, &found), Finding::Unanswered("no answer".into()));
        found.suspected.insert("1", 2);
        assert_eq!(now(&worked, &renumbered, &found), Finding::Suspected);
    }

    #[test]
    fn a_key_of_another_type_is_bad_only_where_nobody_has_it() {
        let (nothing, none) = (Renumbered::default(), Found::default());
        let gone = worked("x", Want::Never, Verdict::Gone);
        assert!(matches!(found_of("x", &gone, &nothing, &none), Some(Finding::BadKey(_))));
        let orphan = worked("x", Want::Never, Verdict::Orphan);
        assert!(matches!(found_of("x", &orphan, &nothing, &none), Some(Finding::Seen { verdict: Verdict::Orphan, .. })));
        assert_eq!(found_of("7", &gone, &nothing, &none), None, "it was not looked at");
    }
}
