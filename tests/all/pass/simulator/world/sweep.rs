//! The sweeper: removes the tombstone of an old delete under the version it saw, and forgets the record when a later look sees it gone.
//! Records that nothing needs any more just go.

use catchword::elastic::Has;
use catchword::upkeep::tombstone;
use rand::Rng;

use super::Simulation;
use crate::pass::simulator::elastic::Body;
use crate::pass::simulator::postgres::{Demand, Key};
use crate::pass::simulator::rules::Rule;

#[derive(Clone, Debug)]
pub(super) enum Sweeper {
    Idle,
    /// Holds a record that nothing needs any more.
    Needless {
        key: Key,
        record: i64,
    },
    /// Holds the record of a delete that is old enough.
    Picked {
        key: Key,
        record: i64,
    },
    /// Sent a delete, or saw that none is needed.
    Swept {
        key: Key,
        record: i64,
    },
}

impl Simulation {
    pub(super) fn sweep(&mut self) {
        self.sweeper = match self.sweeper.clone() {
            Sweeper::Idle => self.pick(),
            Sweeper::Needless { key, record } => {
                self.say(format!("the record {record} of {key} is forgotten"));
                let is_same = self.postgres.now.records.get(&key).is_some_and(|now| *now <= record);
                if is_same && !self.is_needed(key, record) {
                    self.postgres.now.records.remove(&key);
                }
                Sweeper::Idle
            }
            Sweeper::Picked { key, record } => self.sweep_this(key, record),
            // it waits for the answer, which may be lost or late
            Sweeper::Swept { .. } if self.random.random_bool(0.8) => return,
            Sweeper::Swept { key, record } => {
                self.forget(key, record);
                Sweeper::Idle
            }
        };
    }

    /// A record that is old enough, if that is the rule: its job is settled, no worker is busy with its key, and whatever was sent until then
    /// has landed or is lost. A request has 30 s, a batch 50 s, a record an hour, and nothing is swept while jobs are due.
    fn pick(&mut self) -> Sweeper {
        let picked = self.postgres.now.records.iter().map(|(key, record)| (*key, *record)).find(|(key, record)| self.is_old(*key, *record));
        let Some((key, record)) = picked else { return Sweeper::Idle };
        self.say(format!("the sweeper picks the record of {key} at {record}"));
        let is_a_delete = record % 2 == 1 && !self.postgres.now.rows.contains_key(&key);
        if is_a_delete { Sweeper::Picked { key, record } } else { Sweeper::Needless { key, record } }
    }

    fn is_old(&self, key: Key, record: i64) -> bool {
        let late = self.network.iter().any(|message| message.key == key && message.version <= record);
        let busy = self.postgres.now.jobs.iter().any(|job| job.demand == Demand::Index(key));
        !self.is_needed(key, record) && !((late || busy) && self.on(Rule::SweepOld))
    }

    /// A row's version comes from it. An insert that was open all the time may have come since the sweeper looked.
    fn is_needed(&self, key: Key, record: i64) -> bool {
        let is_below = self.postgres.now.rows.get(&key).is_some_and(|row| self.postgres.own_version(row) < record);
        is_below && self.on(Rule::SweepKeepsWhatRowsNeed)
    }

    fn sweep_this(&mut self, key: Key, record: i64) -> Sweeper {
        let has = self.look(&[key]).remove(0);
        let sent = tombstone(record, &has).map(|version| self.send(key, version, Body::Swept));
        self.say(format!("the sweeper sees {has:?} of {key}, sends {sent:?}"));
        if sent.is_some() {
            self.swept.insert(key, record);
        }
        Sweeper::Swept { key, record }
    }

    fn forget(&mut self, key: Key, record: i64) {
        let has = self.look(&[key]).remove(0);
        let is_gone = has == Has::Absent || !self.on(Rule::SweepLooksAgain);
        let is_same = self.postgres.now.records.get(&key) == Some(&record);
        self.say(format!("the sweeper sees {has:?} of {key}, and the same delete: {is_same}"));
        if is_gone && is_same && !self.is_needed(key, record) {
            self.postgres.now.records.remove(&key);
        }
    }

    /// The tombstone is gone and the record not yet: nothing can come any more, and the next sweep goes on with it.
    pub(super) fn is_half_swept(&self, key: Key) -> bool {
        let record = self.postgres.now.records.get(&key);
        record.is_some()
            && record == self.swept.get(&key)
            && !self.postgres.now.rows.contains_key(&key)
            && self.elastic.look(key) == Has::Absent
    }
}
