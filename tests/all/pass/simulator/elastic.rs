//! An in-memory Elasticsearch: external versions, and answers as the real one words them.

use std::collections::BTreeMap;

use catchword::elastic::answer::of_item;
use catchword::elastic::{Answer, Has};

use super::postgres::{Content, Key};
use super::rules::Rule;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    Document(Content),
    Tombstone,
    /// No document: a tombstone is removed.
    Swept,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub id: u64,
    pub key: Key,
    pub version: i64,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub struct Elastic {
    pub documents: BTreeMap<Key, (i64, Body)>,
    off: Option<Rule>,
}

impl Elastic {
    pub fn new(off: Option<Rule>) -> Elastic {
        Elastic { documents: BTreeMap::new(), off }
    }

    /// Applies a write, if its version is higher, and answers.
    pub fn write(&mut self, message: &Message) -> Answer {
        if message.body == Body::Swept {
            return self.sweep(message);
        }
        let lower = self.documents.get(&message.key).is_some_and(|(version, _)| *version >= message.version);
        if lower && self.off != Some(Rule::ExternalVersions) {
            return of_item(409, Some("version_conflict_engine_exception"), Some("current version is higher"));
        }
        if message.body == Body::Tombstone && self.off == Some(Rule::Tombstones) {
            // a real delete, forgotten after `gc_deletes`
            self.documents.remove(&message.key);
        } else {
            self.documents.insert(message.key, (message.version, message.body));
        }
        of_item(200, None, None)
    }

    /// Removes what is there under this version or a lower one, and forgets at once that it was there: `gc_deletes` may be 0.
    fn sweep(&mut self, message: &Message) -> Answer {
        let higher = self.documents.get(&message.key).is_some_and(|(version, _)| *version > message.version);
        if higher && self.off != Some(Rule::SweepVersioned) {
            return of_item(409, Some("version_conflict_engine_exception"), Some("current version is higher"));
        }
        self.documents.remove(&message.key);
        of_item(200, None, None)
    }

    pub fn look(&self, key: Key) -> Has {
        match self.documents.get(&key) {
            Some((version, _)) => Has::Present(*version),
            None => Has::Absent,
        }
    }
}
