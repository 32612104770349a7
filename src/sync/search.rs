//! Who makes a request fail? Keys that were in one without an answer are tried again in halves, down to one. Pure: keys and what came of
//! them go in, who is tried next and who is to blame come out; no client, no clock.
//!
//! A request can fail because of one document in it (the server falls over it, a proxy will not pass it on, it takes for ever) or
//! because the server is down. The second is an outage and charges nobody; whoever calls this finds out by a probe. The first would
//! hold up all others for ever, if they were sent together again and again.

use std::collections::{HashMap, HashSet};

use crate::health::Searched;

/// So many may fail alone although fewer pass: a quiet collection has few others. More than that must be outnumbered by those that
/// pass, or the index is at fault, not the documents.
const FEW: usize = 5;

/// Keys that are tried together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<'k> {
    pub keys: Vec<&'k str>,
    /// They were in a request without an answer.
    pub suspected: bool,
}

/// How far the search has come.
#[derive(Debug, Default)]
pub struct Search<'k> {
    /// Still to be tried.
    groups: Vec<Group<'k>>,
    /// For each suspect, how many keys were in the smallest request without an answer that it was in.
    among: HashMap<&'k str, usize>,
    /// What those died of that failed alone.
    alone: HashMap<&'k str, String>,
    /// They were answered.
    passed: HashSet<&'k str>,
}

/// What a search came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found<'k> {
    /// They failed alone while others passed, and of what.
    pub blamed: HashMap<&'k str, String>,
    /// Not yet found innocent or guilty; how many keys were in the smallest request without an answer that each was in.
    pub suspected: HashMap<&'k str, usize>,
    /// They were suspected before, and passed now.
    pub cleared: HashSet<&'k str>,
    /// Whether anybody passed; none: nobody was tried, or it was an outage.
    pub passed: Option<bool>,
}

impl<'k> Found<'k> {
    /// What this process remembers of it.
    pub fn searched(&self) -> Searched<'k> {
        Searched { passed: self.passed, blamed: self.blamed.keys().copied().collect(), cleared: self.cleared.clone() }
    }
}

impl<'k> Search<'k> {
    /// Those who are not suspected go together and first. A suspect goes with at most half as many as the last time.
    pub fn begin(keys: impl IntoIterator<Item = (&'k str, Option<usize>)>) -> Search<'k> {
        let (mut calm, mut suspects) = (Vec::new(), Vec::new());
        for (key, among) in keys {
            match among {
                None => calm.push(key),
                Some(among) => suspects.push((key, among)),
            }
        }
        let among = suspects.iter().copied().collect();
        let mut search = Search { among, ..Search::default() };
        suspects.sort_by_key(|(key, among)| (std::cmp::Reverse(*among), *key));
        let mut group = Vec::new();
        for (key, among) in suspects {
            if group.len() >= (among / 2).max(1) {
                search.push(std::mem::take(&mut group), true);
            }
            group.push(key);
        }
        search.push(group, true);
        search.push(calm, false);
        search
    }

    /// The next group to try: those who are not suspected, then the largest, so that most are found innocent soonest.
    pub fn next(&mut self) -> Option<Group<'k>> {
        let (at, _) = self.groups.iter().enumerate().max_by_key(|(_, group)| (!group.suspected, group.keys.len()))?;
        Some(self.groups.swap_remove(at))
    }

    /// A group was tried: these of its keys got no answer, because of this. The others passed. Whoever was not suspected before is
    /// tried once more, even alone.
    pub fn tried(&mut self, group: Group<'k>, silent: &HashSet<&'k str>, why: &str) {
        let (silent, passed): (Vec<&str>, Vec<&str>) = group.keys.into_iter().partition(|key| silent.contains(key));
        self.passed.extend(passed);
        self.among.extend(silent.iter().map(|key| (*key, silent.len())));
        match silent[..] {
            [alone] if group.suspected => _ = self.alone.insert(alone, why.to_owned()),
            [alone] => self.push(vec![alone], true),
            _ => {
                let (one, other) = silent.split_at(silent.len() / 2);
                self.push(one.to_vec(), true);
                self.push(other.to_vec(), true);
            }
        }
    }

    /// Elasticsearch named this one itself: its own answer was that the server failed.
    pub fn failed_alone(&mut self, key: &'k str, why: &str) {
        self.passed.remove(key);
        self.among.insert(key, 1);
        self.alone.insert(key, why.to_owned());
    }

    /// Do more fail alone than a few, and more than pass? Then the index is at fault: nothing is left to search for.
    pub fn is_in_vain(&self) -> bool {
        self.alone.len() > self.passed.len().max(FEW)
    }

    /// What is known when it ends, by whatever. One that was cut short blames nobody unless at least as many passed: those that it did not
    /// come to might have failed too. The same where nobody passed in the batches before: a batch may be the small rest of them.
    pub fn end(mut self, nobody_passed_before: bool) -> Found<'k> {
        let passed = Some(!self.passed.is_empty());
        if self.is_in_vain() {
            return Found { passed, ..Found::default() };
        }
        if (!self.groups.is_empty() || nobody_passed_before) && self.passed.len() < self.alone.len() {
            self.alone.clear();
        }
        let cleared = self.passed.into_iter().filter(|key| self.among.remove(key).is_some()).collect();
        self.among.retain(|key, _| !self.alone.contains_key(key));
        Found { blamed: self.alone, suspected: self.among, cleared, passed }
    }

    fn push(&mut self, keys: Vec<&'k str>, suspected: bool) {
        if !keys.is_empty() {
            self.groups.push(Group { keys, suspected });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_is_cut_short_blames_nobody_while_nobody_passed() {
        let names = names(200);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        for tries in 1..420 {
            let (found, _) = search(all.iter().map(|key| (*key, None)), &all, tries);
            assert!(found.blamed.is_empty(), "after {tries}: {:?}", found.blamed);
        }
        let mut rest = Search::begin([(all[0], Some(1))]);
        let group = rest.next().unwrap();
        rest.tried(group, &HashSet::from([all[0]]), "no answer");
        assert!(rest.end(true).blamed.is_empty(), "nobody passed before either");
        let few = &all[..3];
        let (found, _) = search(few.iter().map(|key| (*key, None)), &few[..1], usize::MAX);
        assert_eq!(found.blamed.len(), 1, "all were tried, and the others passed");
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("{n:04}")).collect()
    }

    /// Searches to its end; a group fails if a bad key is in it. What was found, and how many groups were tried.
    fn search<'k>(keys: impl IntoIterator<Item = (&'k str, Option<usize>)>, bad: &[&str], tries: usize) -> (Found<'k>, usize) {
        let mut search = Search::begin(keys);
        let mut tried = 0;
        while tried < tries
            && let Some(group) = search.next()
        {
            tried += 1;
            let fails = group.keys.iter().any(|key| bad.contains(key));
            let silent = if fails { group.keys.iter().copied().collect() } else { HashSet::new() };
            search.tried(group, &silent, "no answer");
            if search.is_in_vain() {
                break;
            }
        }
        (search.end(false), tried)
    }

    #[test]
    fn one_of_many_is_found_in_halves() {
        let names = names(2_500);
        let (found, tried) = search(names.iter().map(|name| (name.as_str(), None)), &["1234"], usize::MAX);
        assert_eq!(found.blamed.into_keys().collect::<Vec<_>>(), ["1234"]);
        assert_eq!((found.suspected.len(), found.cleared.len()), (0, 2_499));
        assert!(tried <= 26, "{tried}");
    }

    #[test]
    fn several_are_found_each() {
        let names = names(2_500);
        let bad = ["0000", "0001", "0700", "1250", "2499"];
        let (found, tried) = search(names.iter().map(|name| (name.as_str(), None)), &bad, usize::MAX);
        let mut blamed: Vec<&str> = found.blamed.into_keys().collect();
        blamed.sort_unstable();
        assert_eq!(blamed, bad);
        assert!(tried <= 100, "{tried}");
    }

    #[test]
    fn what_is_not_finished_goes_on_later_with_smaller_groups() {
        let names = names(200);
        let (found, _) = search(names.iter().map(|name| (name.as_str(), None)), &["0100"], 5);
        assert!(found.blamed.is_empty() && (1..=50).contains(&found.suspected.len()), "{found:?}");
        let left = found.suspected;
        assert_eq!(left.values().max(), left.values().min());
        let again = names.iter().map(String::as_str).filter(|name| left.contains_key(name)).map(|name| (name, left.get(name).copied()));
        let mut groups = Search::begin(again.clone());
        let size = left.values().max().unwrap() / 2;
        while let Some(group) = groups.next() {
            assert!(group.keys.len() <= size && group.suspected, "{group:?}");
        }
        let (found, tried) = search(again, &["0100"], usize::MAX);
        assert_eq!(found.blamed.into_keys().collect::<Vec<_>>(), ["0100"]);
        assert!(tried <= 14, "{tried}");
    }

    #[test]
    fn nobody_is_blamed_where_nobody_passes() {
        let names = names(200);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let (found, tried) = search(all.iter().map(|name| (*name, None)), &all, usize::MAX);
        assert_eq!(found, Found { passed: Some(false), ..Found::default() });
        assert!(tried < 300, "{tried}");
    }

    #[test]
    fn one_alone_is_tried_twice_before_it_is_blamed() {
        let mut search = Search::begin([("a", None)]);
        for suspected in [false, true] {
            let group = search.next().unwrap();
            assert_eq!(group, Group { keys: vec!["a"], suspected });
            search.tried(group, &HashSet::from(["a"]), "no answer");
        }
        assert_eq!(search.next(), None);
        assert_eq!(search.end(false).blamed, HashMap::from([("a", "no answer".to_owned())]));
    }

    #[test]
    fn those_who_are_not_suspected_go_first_and_together() {
        let mut search = Search::begin([("a", Some(8)), ("b", None), ("c", Some(2)), ("d", None), ("e", Some(8)), ("f", Some(8))]);
        assert_eq!(search.next(), Some(Group { keys: vec!["b", "d"], suspected: false }));
        assert_eq!(search.next(), Some(Group { keys: vec!["a", "e", "f"], suspected: true }));
        assert_eq!(search.next(), Some(Group { keys: vec!["c"], suspected: true }));
        assert_eq!(search.next(), None);
    }

    #[test]
    fn one_that_the_server_names_is_blamed_at_once() {
        let mut search = Search::begin([("a", None), ("b", None)]);
        let group = search.next().unwrap();
        search.tried(group, &HashSet::new(), "");
        search.failed_alone("b", "500");
        let found = search.end(false);
        assert_eq!(found.blamed, HashMap::from([("b", "500".to_owned())]));
        assert!(found.suspected.is_empty() && found.cleared.is_empty());
    }
}
