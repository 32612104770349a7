//! An in-memory Postgres: rows under locks, one sequence, records of deletes and touches, jobs in the writer's transaction.

use std::collections::BTreeMap;

use catchword::collection::Want;

use super::rules::Rule;

pub type Key = u8;

/// The row that shows a reply, and itself.
pub const ROOT: Key = 0;
/// A row of the same table that refers to it.
pub const REPLY: Key = 1;

/// What a document shows: the row's text, the related row's title, the text of its reply in the same table, and the definition of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub text: i64,
    pub title: i64,
    pub reply: Option<i64>,
    pub view: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub revision: i64,
    pub text: i64,
    pub hidden: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    Index(Key),
    /// Touch every row: the related row changed.
    Touch,
    /// Touch this one: a row of the same table that it shows changed, or it was locked.
    TouchKey(Key),
    /// A row changed that others show, and nobody knows which.
    Failed,
}

#[derive(Clone, Debug)]
pub struct JobRow {
    pub id: i64,
    pub demand: Demand,
    pub attempts: i32,
    pub due: u64,
    pub claimed_by: Option<usize>,
}

/// What is committed. A failover goes back to an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    pub rows: BTreeMap<Key, Row>,
    /// The highest of each key: odd of a delete, even of a touch.
    pub records: BTreeMap<Key, i64>,
    pub jobs: Vec<JobRow>,
    pub title: i64,
    pub floor: i64,
    pub view: i64,
}

#[derive(Clone, Debug)]
pub struct Postgres {
    pub now: Committed,
    pub sequence: i64,
    next_job: i64,
    off: Option<Rule>,
    /// Numbers that a session has drawn ahead, where the cache is not 1.
    caches: BTreeMap<usize, Vec<i64>>,
}

impl Postgres {
    pub fn new(off: Option<Rule>) -> Postgres {
        Postgres { now: Committed::default(), sequence: 0, next_job: 0, off, caches: BTreeMap::new() }
    }

    fn on(&self, rule: Rule) -> bool {
        self.off != Some(rule)
    }

    /// `nextval`, for a session.
    pub fn draw(&mut self, session: usize) -> i64 {
        let step = if self.on(Rule::StepOfFour) { 4 } else { 2 };
        if self.on(Rule::CacheOne) {
            self.sequence += step;
            return self.sequence;
        }
        let cache = self.caches.entry(session).or_default();
        if cache.is_empty() {
            *cache = (1..=5).rev().map(|n| self.sequence + step * n).collect();
            self.sequence += 5 * step;
        }
        cache.pop().unwrap_or(self.sequence)
    }

    pub fn schedule(&mut self, demand: Demand) {
        self.next_job += 1;
        self.now.jobs.push(JobRow { id: self.next_job, demand, attempts: 0, due: 0, claimed_by: None });
    }

    /// The row's own number or the floor, whichever is higher.
    pub fn own_version(&self, row: &Row) -> i64 {
        row.revision.max(self.now.floor)
    }

    /// Never below the key's record.
    fn version(&self, key: Key, row: &Row) -> i64 {
        let recorded = self.now.records.get(&key).copied().filter(|_| self.on(Rule::AboveRecord)).unwrap_or(0);
        self.own_version(row).max(recorded + recorded % 2)
    }

    fn content(&self, key: Key, row: &Row) -> Content {
        let reply = self.now.rows.get(&REPLY).filter(|reply| key == ROOT && !reply.hidden).map(|reply| reply.text);
        Content { text: row.text, title: self.now.title, reply, view: self.now.view }
    }

    /// The view: version and document, if it returns the key.
    pub fn shown(&self, key: Key) -> Option<(i64, Content)> {
        let row = self.now.rows.get(&key).filter(|row| !row.hidden)?;
        Some((self.version(key, row), self.content(key, row)))
    }

    /// What Postgres wants, in one statement.
    pub fn want(&self, key: Key) -> Want {
        match self.shown(key) {
            Some((version, _)) => Want::Present(version),
            None => self.want_of_what_is_not_shown(key),
        }
    }

    /// The second of two statements, where the rule is off: a row that the first did not see is taken for hidden.
    pub fn want_of_what_is_not_shown(&self, key: Key) -> Want {
        match (self.now.rows.get(&key), self.now.records.get(&key)) {
            (Some(row), _) => Want::Hidden(self.version(key, row) + 1),
            (None, Some(n)) if n % 2 == 1 => Want::Deleted(*n),
            (None, _) => Want::Never,
        }
    }

    /// A delete's own number, recorded in its transaction.
    pub fn record(&mut self, key: Key, session: usize) {
        let number = self.draw(session) + 1;
        self.keep(key, number);
    }

    fn keep(&mut self, key: Key, number: i64) {
        let record = self.now.records.entry(key).or_default();
        *record = (*record).max(number);
    }

    /// Gives a row a new number, and does not write to it.
    pub fn renumber(&mut self, key: Key, session: usize) {
        let number = self.draw(session);
        if self.now.rows.contains_key(&key) {
            self.keep(key, number);
        }
    }

    /// The same, and leaves a job.
    pub fn touch(&mut self, key: Key, session: usize) {
        self.renumber(key, session);
        if self.now.rows.contains_key(&key) {
            self.schedule(Demand::Index(key));
            if key == ROOT && !self.on(Rule::TouchEndsThere) {
                self.schedule(Demand::TouchKey(ROOT));
            }
        }
    }
}
