//! Writers, workers, a sweeper, the network and bad luck, one step at a time, in an order that the seed decides.

mod sweep;

use std::collections::BTreeMap;

use catchword::collection::Want;
use catchword::compare::{Verdict, compare};
use catchword::elastic::{Answer, Has};
use catchword::job::Job;
use catchword::sync::{Fate, Finding, fate};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::elastic::{Body, Elastic, Message};
use super::postgres::{Committed, Content, Demand, Key, Postgres, REPLY, ROOT, Row};
use super::rules::Rule;
use sweep::Sweeper;

const KEYS: Key = 2;
const SESSIONS: usize = 3;
const WORKERS: usize = 2;
/// Steps with bad luck; then faults stop and it must converge.
const STORM: usize = 150;
const CALM: usize = 3_000;
/// Sessions beyond the writers': each worker's own.
const WORKER_SESSION: usize = 100;

/// How it went wrong.
pub struct Story {
    pub what: String,
    pub lines: Vec<String>,
}

#[derive(Clone, Debug)]
enum Writer {
    Idle,
    /// Holds the row's lock and a number; waits to commit.
    Changing {
        key: Key,
        row: Row,
    },
    Deleting {
        key: Key,
    },
    /// Drew its number, and waits at the unique index.
    Inserting {
        key: Key,
        row: Row,
    },
    /// Renamed the related row; the rows it touched in its own transaction, where that is the rule.
    Renaming {
        title: i64,
        touched: Vec<Key>,
    },
    /// Committed: the direct write reads the view next.
    Direct {
        key: Key,
    },
}

#[derive(Clone, Debug)]
enum Worker {
    Idle,
    Claimed {
        jobs: Vec<i64>,
        keys: Vec<Key>,
    },
    LookedAtElastic {
        jobs: Vec<i64>,
        keys: Vec<Key>,
        has: Vec<Has>,
    },
    /// Where Postgres is looked at first, or in two statements.
    HalfLooked {
        jobs: Vec<i64>,
        keys: Vec<Key>,
        has: Vec<Has>,
        wants: Vec<Option<Want>>,
    },
    Wrote {
        jobs: Vec<i64>,
        judged: Vec<Judged>,
        waiting: Vec<(u64, usize)>,
    },
}

#[derive(Clone, Debug)]
struct Judged {
    key: Key,
    want: Want,
    verdict: Verdict,
    seen: i64,
    answer: Option<Answer>,
}

pub struct Simulation {
    random: StdRng,
    off: Option<Rule>,
    postgres: Postgres,
    elastic: Elastic,
    writers: Vec<Writer>,
    workers: Vec<Worker>,
    sweeper: Sweeper,
    /// The deletes whose tombstones were sent for.
    swept: BTreeMap<Key, i64>,
    network: Vec<Message>,
    next_message: u64,
    /// What a failover goes back to.
    standby: Committed,
    /// Commits were lost or somebody meddled: an Ahead is no surprise then.
    explained: bool,
    faults: bool,
    time: u64,
    next_text: i64,
    story: Vec<String>,
}

type Step = Result<(), String>;

impl Simulation {
    pub fn new(seed: u64, off: Option<Rule>) -> Simulation {
        Simulation {
            random: StdRng::seed_from_u64(seed),
            off,
            postgres: Postgres::new(off),
            elastic: Elastic::new(off),
            writers: vec![Writer::Idle; SESSIONS],
            workers: vec![Worker::Idle; WORKERS],
            sweeper: Sweeper::Idle,
            swept: BTreeMap::new(),
            network: Vec::new(),
            next_message: 0,
            standby: Committed::default(),
            explained: false,
            faults: true,
            time: 0,
            next_text: 0,
            story: Vec::new(),
        }
    }

    pub fn run(mut self) -> Result<(), Story> {
        match self.play() {
            Ok(()) => Ok(()),
            Err(what) => Err(Story { what, lines: self.story }),
        }
    }

    fn play(&mut self) -> Step {
        for _ in 0..STORM {
            self.step()?;
        }
        self.faults = false;
        for _ in 0..CALM {
            if self.is_quiet() {
                return self.check_agreement();
            }
            self.step()?;
        }
        Err("it does not converge".into())
    }

    fn on(&self, rule: Rule) -> bool {
        self.off != Some(rule)
    }

    fn say(&mut self, line: String) {
        self.story.push(line);
    }

    fn is_quiet(&self) -> bool {
        self.writers.iter().all(|writer| matches!(writer, Writer::Idle))
            && self.workers.iter().all(|worker| matches!(worker, Worker::Idle))
            && matches!(self.sweeper, Sweeper::Idle)
            && self.network.is_empty()
            && self.postgres.now.jobs.is_empty()
    }

    fn step(&mut self) -> Step {
        self.time += 1;
        match self.random.random_range(0..100) {
            0..16 => self.sweep(),
            16..40 => {
                let session = self.random.random_range(0..SESSIONS);
                self.write(session);
            }
            40..74 => {
                let worker = self.random.random_range(0..WORKERS);
                self.work(worker)?;
            }
            74..90 => self.deliver(),
            90..93 if self.faults => self.crash(),
            93..94 if self.faults => self.fail_over(),
            94..96 if self.faults => self.rewrite(),
            96..98 if self.faults => self.meddle(),
            _ => {}
        }
        self.check_intent()
    }

    // ---- writers

    fn locked(&self, key: Key) -> bool {
        self.writers.iter().any(|w| matches!(w, Writer::Changing { key: k, .. } | Writer::Deleting { key: k } if *k == key))
    }

    fn write(&mut self, session: usize) {
        match self.writers[session].clone() {
            Writer::Idle if self.faults => self.begin(session),
            Writer::Idle => {}
            Writer::Direct { key } => self.direct(session, key),
            open => {
                if self.faults && self.random.random_bool(0.15) {
                    self.say(format!("session {session} rolls back {open:?}"));
                    self.writers[session] = Writer::Idle;
                } else if self.random.random_bool(0.6) {
                    self.commit(session, open);
                }
            }
        }
    }

    fn begin(&mut self, session: usize) {
        let key = self.random.random_range(0..KEYS);
        self.next_text += 1;
        let text = self.next_text;
        let kind = self.random.random_range(0..10);
        if kind == 9 {
            if !self.writers.iter().any(|w| matches!(w, Writer::Renaming { .. })) {
                let visible = self.postgres.now.rows.keys().copied().filter(|key| !self.locked(*key)).collect();
                let touched = if self.on(Rule::TouchAfterCommit) { Vec::new() } else { visible };
                self.say(format!("session {session} renames to {text}, open"));
                self.writers[session] = Writer::Renaming { title: text, touched };
            }
            return;
        }
        let there = self.postgres.now.rows.get(&key).copied();
        let locked = self.locked(key);
        let inserting = self.writers.iter().any(|w| matches!(w, Writer::Inserting { key: k, .. } if *k == key));
        match there {
            // an insert draws first, and waits at the unique index for an open delete
            _ if kind <= 3 && !inserting && (there.is_none() || self.deleting(key).is_some()) => {
                let revision = self.postgres.draw(session);
                self.say(format!("session {session} inserts {key}, draws {revision}"));
                self.writers[session] = Writer::Inserting { key, row: Row { revision, text, hidden: false } };
            }
            Some(_) if locked => {}
            Some(row) if kind <= 6 => {
                let revision = self.postgres.draw(session);
                let hidden = if kind == 6 { !row.hidden } else { row.hidden };
                self.say(format!("session {session} changes {key}, draws {revision}, hidden {hidden}"));
                self.writers[session] = Writer::Changing { key, row: Row { revision, text, hidden } };
            }
            Some(_) => {
                self.say(format!("session {session} deletes {key}, open"));
                self.writers[session] = Writer::Deleting { key };
            }
            None => {}
        }
    }

    fn deleting(&self, key: Key) -> Option<usize> {
        self.writers.iter().position(|w| matches!(w, Writer::Deleting { key: k } if *k == key))
    }

    fn commit(&mut self, session: usize, open: Writer) {
        let mut next = Writer::Idle;
        match open {
            Writer::Inserting { key, row } => {
                if self.postgres.now.rows.contains_key(&key) {
                    if self.locked(key) {
                        return; // still waits
                    }
                    self.say(format!("session {session}: {key} is there already"));
                } else {
                    self.say(format!("session {session} commits the insert of {key} as {}", row.revision));
                    self.postgres.now.rows.insert(key, row);
                    self.postgres.schedule(Demand::Index(key));
                    self.touch_who_shows(key);
                    next = Writer::Direct { key };
                }
            }
            Writer::Changing { key, row } => {
                self.say(format!("session {session} commits {key} as {}", row.revision));
                self.postgres.now.rows.insert(key, row);
                self.postgres.schedule(Demand::Index(key));
                self.touch_who_shows(key);
                next = Writer::Direct { key };
            }
            Writer::Deleting { key } => {
                self.postgres.now.rows.remove(&key);
                self.postgres.record(key, session);
                self.say(format!("session {session} commits the delete of {key}, record {:?}", self.postgres.now.records.get(&key)));
                self.postgres.schedule(Demand::Index(key));
                self.touch_who_shows(key);
            }
            Writer::Renaming { title, touched } => {
                self.say(format!("session {session} commits the title {title}"));
                self.postgres.now.title = title;
                if self.on(Rule::TouchAfterCommit) {
                    self.postgres.schedule(Demand::Touch);
                }
                for key in touched {
                    self.postgres.touch(key, session);
                }
            }
            Writer::Idle | Writer::Direct { .. } => {}
        }
        self.writers[session] = next;
    }

    /// In the transaction of the change. Now and then the value that names the other row cannot be told.
    fn touch_who_shows(&mut self, key: Key) {
        if key != REPLY || !self.on(Rule::TouchSelf) {
            return;
        }
        if self.faults && self.random.random_bool(0.1) {
            self.say(format!("who shows {key} cannot be told"));
            if self.on(Rule::FailedTouchIsLeft) {
                self.postgres.schedule(Demand::Failed);
            }
        } else {
            self.postgres.schedule(Demand::TouchKey(ROOT));
        }
    }

    /// The direct write: version and document of one statement, after the commit. Sometimes it never happens.
    fn direct(&mut self, session: usize, key: Key) {
        self.writers[session] = Writer::Idle;
        if self.random.random_bool(0.6)
            && let Some((version, content)) = self.postgres.shown(key)
        {
            self.say(format!("direct write of {key} at {version} is sent"));
            self.send(key, version, Body::Document(content));
        }
    }

    fn send(&mut self, key: Key, version: i64, body: Body) -> u64 {
        self.next_message += 1;
        self.network.push(Message { id: self.next_message, key, version, body });
        self.next_message
    }

    // ---- the network

    fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        // any of them: late ones overtake nobody, or everybody. One in four is very late
        let n = self.random.random_range(0..self.network.len());
        if self.network[n].id.is_multiple_of(4) && self.faults && self.random.random_bool(0.9) {
            return;
        }
        let message = self.network.swap_remove(n);
        if self.faults && self.random.random_bool(0.15) {
            self.say(format!("lost: {message:?}"));
            return;
        }
        let before = self.elastic.documents.get(&message.key).map(|(version, _)| *version);
        let answer = self.elastic.write(&message);
        self.say(format!("lands: {} at {} on {before:?}: {answer}", message.key, message.version));
        // the answer may be lost on its way back; then the worker gives up waiting
        if self.faults && self.random.random_bool(0.15) {
            return;
        }
        for worker in &mut self.workers {
            if let Worker::Wrote { judged, waiting, .. } = worker {
                waiting.retain(|(id, n)| {
                    if *id == message.id {
                        judged[*n].answer = Some(answer.clone());
                    }
                    *id != message.id
                });
            }
        }
    }

    // ---- workers

    fn work(&mut self, n: usize) -> Step {
        self.workers[n] = match std::mem::replace(&mut self.workers[n], Worker::Idle) {
            Worker::Idle => self.claim(n),
            Worker::Claimed { jobs, keys } => {
                if self.on(Rule::ElasticFirst) {
                    let has = self.look(&keys);
                    Worker::LookedAtElastic { jobs, keys, has }
                } else {
                    let wants = keys.iter().map(|key| Some(self.postgres.want(*key))).collect();
                    Worker::HalfLooked { jobs, keys, has: Vec::new(), wants }
                }
            }
            Worker::LookedAtElastic { jobs, keys, has } => {
                let wants = keys.iter().map(|key| self.postgres.shown(*key).map(|(version, _)| Want::Present(version))).collect();
                Worker::HalfLooked { jobs, keys, has, wants }
            }
            Worker::HalfLooked { jobs, keys, has, wants } => {
                let has = if has.is_empty() { self.look(&keys) } else { has };
                let mut all = Vec::new();
                for (key, shown) in keys.iter().zip(wants) {
                    all.push(match shown {
                        Some(want) => want,
                        // what the first statement did not return is for the second alone; without the rule it takes the first one's word
                        None if self.on(Rule::OneStatement) => self.want(*key, n),
                        None => self.postgres.want_of_what_is_not_shown(*key),
                    });
                }
                self.judge(jobs, keys, &has, &all)?
            }
            Worker::Wrote { jobs, judged, waiting } => {
                if !waiting.is_empty() && self.random.random_bool(0.7) {
                    Worker::Wrote { jobs, judged, waiting }
                } else {
                    self.settle(n, &jobs, judged, &waiting);
                    Worker::Idle
                }
            }
        };
        Ok(())
    }

    /// What Postgres wants. Where deletes are not recorded, the worker draws a number for itself.
    fn want(&mut self, key: Key, worker: usize) -> Want {
        match self.postgres.want(key) {
            Want::Deleted(_) if !self.on(Rule::RecordedNumber) => Want::Deleted(self.postgres.draw(WORKER_SESSION + worker) + 1),
            want => want,
        }
    }

    fn claim(&mut self, n: usize) -> Worker {
        let time = self.time;
        let mut jobs = Vec::new();
        let mut keys = Vec::new();
        let mut touch = None;
        for job in &mut self.postgres.now.jobs {
            if job.claimed_by.is_none() && job.due <= time {
                match job.demand {
                    Demand::Touch | Demand::TouchKey(_) | Demand::Failed => touch = touch.or(Some((job.id, job.demand))),
                    Demand::Index(key) => {
                        job.claimed_by = Some(n);
                        jobs.push(job.id);
                        if !keys.contains(&key) {
                            keys.push(key);
                        }
                    }
                }
            }
            if jobs.len() == 3 {
                break;
            }
        }
        if let Some((id, demand)) = touch {
            self.expand(id, demand, n);
        }
        if jobs.is_empty() {
            return Worker::Idle;
        }
        self.say(format!("worker {n} claims {jobs:?} for {keys:?}"));
        Worker::Claimed { jobs, keys }
    }

    /// Touches the rows found now. A locked one may be rolled back: it is touched later, by a job of its own.
    fn expand(&mut self, id: i64, demand: Demand, n: usize) {
        if demand == Demand::Failed {
            // it is refused until somebody reads it and does what it says: everything is written again
            if self.everything_again() {
                self.postgres.now.jobs.retain(|job| job.id != id);
            }
            return;
        }
        let is_meant = |key: &Key| !matches!(demand, Demand::TouchKey(only) if only != *key);
        let keys: Vec<Key> = self.postgres.now.rows.keys().copied().filter(is_meant).collect();
        self.say(format!("worker {n} touches {keys:?}"));
        for key in keys {
            if self.locked(key) && self.on(Rule::TouchUnderLock) {
                self.postgres.schedule(Demand::TouchKey(key));
            } else {
                self.postgres.touch(key, WORKER_SESSION + n);
            }
        }
        self.postgres.now.jobs.retain(|job| job.id != id);
    }

    fn look(&mut self, keys: &[Key]) -> Vec<Has> {
        let mut has = Vec::new();
        for key in keys {
            let unknown = self.faults && self.random.random_bool(0.08);
            has.push(if unknown { Has::Unknown("no answer".into()) } else { self.elastic.look(*key) });
        }
        has
    }

    fn judge(&mut self, jobs: Vec<i64>, keys: Vec<Key>, has: &[Has], wants: &[Want]) -> Result<Worker, String> {
        let mut judged = Vec::new();
        let mut waiting = Vec::new();
        for (n, key) in keys.into_iter().enumerate() {
            let verdict = self.adjusted(compare(wants[n], &has[n]), wants[n], &has[n]);
            self.say(format!("{key}: Postgres wants {:?}, Elasticsearch has {:?}: {verdict:?}", wants[n], has[n]));
            if verdict == Verdict::Ahead && !self.explained {
                return Err(format!("{key} is ahead, and no commit was lost"));
            }
            let sent = match (verdict, wants[n]) {
                // version and document of one statement, maybe newer than what was looked at
                (Verdict::Missing | Verdict::Stale, _) => {
                    self.postgres.shown(key).map(|(version, content)| self.send(key, version, Body::Document(content)))
                }
                (Verdict::Untold | Verdict::Orphan, Want::Hidden(n) | Want::Deleted(n)) => Some(self.send(key, n, Body::Tombstone)),
                _ => None,
            };
            waiting.extend(sent.map(|id| (id, n)));
            let seen = if let Has::Present(version) = has[n] { version } else { 0 };
            judged.push(Judged { key, want: wants[n], verdict, seen, answer: None });
        }
        Ok(Worker::Wrote { jobs, judged, waiting })
    }

    /// What a verdict would be without a rule.
    fn adjusted(&self, verdict: Verdict, want: Want, has: &Has) -> Verdict {
        match (verdict, self.off) {
            (Verdict::Untold, Some(Rule::Untold | Rule::Tombstones)) => Verdict::Gone,
            // a number of the worker's own says nothing about the one before
            (Verdict::Orphan, Some(Rule::RecordedNumber)) => match (want, has) {
                (Want::Deleted(_), Has::Present(seen)) if seen % 2 != 0 => Verdict::Gone,
                _ => verdict,
            },
            _ => verdict,
        }
    }

    fn settle(&mut self, n: usize, ids: &[i64], mut judged: Vec<Judged>, waiting: &[(u64, usize)]) {
        for (_, lost) in waiting {
            judged[*lost].answer = Some(Answer::Unknown("no answer in time".into()));
        }
        self.repair(n, &judged);
        let mut settled = Vec::new();
        for id in ids {
            let Some(row) = self.postgres.now.jobs.iter().find(|job| job.id == *id).cloned() else {
                continue;
            };
            let Demand::Index(key) = row.demand else { continue };
            let Some(found) = judged.iter().find(|judged| judged.key == key) else {
                continue;
            };
            let job = Job {
                id: row.id,
                key: key.to_string(),
                priority: 1,
                enqueued_at: chrono::DateTime::UNIX_EPOCH,
                scheduled_at: chrono::DateTime::UNIX_EPOCH,
                claimed_at: chrono::DateTime::UNIX_EPOCH,
                // an Ahead after a failover is repaired sooner or later; giving up is another test's matter
                attempts: row.attempts.min(2),
                unanswered: None,
                tag: "simulator".into(),
                traceparent: None,
                expired: false,
                lane: None,
            };
            let decided = match (&found.answer, found.verdict) {
                (Some(Answer::Conflict), _) if !self.on(Rule::ConflictIsNotDone) => Fate::Settle,
                (_, Verdict::Unknown) if !self.on(Rule::UnknownNeverSettles) => Fate::Settle,
                _ => fate(&job, &Finding::Seen { verdict: found.verdict, answer: found.answer.clone() }),
            };
            let later = self.time + self.random.random_range(1..15);
            if let Some(row) = self.postgres.now.jobs.iter_mut().find(|job| job.id == *id) {
                row.claimed_by = None;
                match &decided {
                    Fate::Settle => settled.push(*id),
                    Fate::Postpone => row.due = later,
                    Fate::PushBack { .. } => row.attempts += 1,
                    Fate::Leave | Fate::Bury { .. } => {}
                }
            }
        }
        self.say(format!("worker {n} settles {settled:?} of {ids:?}"));
        self.postgres.now.jobs.retain(|job| !settled.contains(&job.id));
    }

    /// New numbers where the index has what Postgres never committed.
    fn repair(&mut self, n: usize, judged: &[Judged]) {
        for found in judged {
            match (found.verdict, found.want) {
                (Verdict::Ahead, want) => {
                    if found.seen >= self.postgres.sequence {
                        // far above, as in reality: what somebody else wrote a moment later lies below
                        self.postgres.sequence = (found.seen + 100_000) / 4 * 4;
                    }
                    match want {
                        Want::Present(_) | Want::Hidden(_) if !self.locked(found.key) => {
                            self.postgres.renumber(found.key, WORKER_SESSION + n)
                        }
                        Want::Deleted(_) => self.record_gone(found.key, n),
                        _ => {}
                    }
                }
                (Verdict::Orphan, Want::Never) => self.record_gone(found.key, n),
                _ => {}
            }
        }
    }

    /// A row may have come since it was looked for.
    fn record_gone(&mut self, key: Key, n: usize) {
        if !self.postgres.now.rows.contains_key(&key) || !self.on(Rule::RecordWithoutRow) {
            self.postgres.record(key, WORKER_SESSION + n);
        }
    }

    // ---- bad luck

    fn crash(&mut self) {
        let n = self.random.random_range(0..WORKERS);
        self.say(format!("worker {n} dies"));
        self.workers[n] = Worker::Idle;
        // its connection ends, and its row locks with it
        for job in &mut self.postgres.now.jobs {
            if job.claimed_by == Some(n) {
                job.claimed_by = None;
            }
        }
        // a copy to which a failover may go back is taken now and then
        if self.random.random_bool(0.5) {
            self.standby = self.postgres.now.clone();
        }
    }

    /// The primary is lost with its last commits. Everybody's connection ends; the sequence jumps ahead, and everything is looked at.
    /// A failover takes longer than a request may: what was on its way has landed or is lost by then.
    fn fail_over(&mut self) {
        self.say("failover".into());
        while !self.network.is_empty() {
            self.deliver();
        }
        self.explained = true;
        self.postgres.now = self.standby.clone();
        for job in &mut self.postgres.now.jobs {
            job.claimed_by = None;
        }
        self.writers = vec![Writer::Idle; SESSIONS];
        self.workers = vec![Worker::Idle; WORKERS];
        self.sweeper = Sweeper::Idle;
        self.postgres.sequence += 1_000;
        for key in 0..KEYS {
            self.postgres.touch(key, WORKER_SESSION);
            self.postgres.schedule(Demand::Index(key));
        }
    }

    /// Somebody writes to the index while a worker's write to the same key is on its way.
    fn meddle(&mut self) {
        let awaited = |message: &Message| {
            let waits =
                |worker: &Worker| matches!(worker, Worker::Wrote { waiting, .. } if waiting.iter().any(|(id, _)| *id == message.id));
            self.workers.iter().any(waits)
        };
        let Some(message) = self.network.iter().find(|message| awaited(message)).cloned() else {
            return;
        };
        self.say(format!("somebody writes {} to the index", message.key));
        self.explained = true;
        let content = Content { text: -1, title: -1, reply: None, view: -1 };
        // far above: a number that the sequence is about to draw would be an equal number with another document
        let version = self.postgres.sequence + 1_000_000;
        self.elastic.documents.insert(message.key, (version, Body::Document(content)));
    }

    /// The view changes, and `reindex --all --rewrite`.
    fn rewrite(&mut self) {
        if self.everything_again() {
            self.say("the view changed before that".into());
            self.postgres.now.view += 1;
        }
    }

    /// A new floor, and a job for every key. False: it waits for open writers.
    fn everything_again(&mut self) -> bool {
        let open = self.writers.iter().any(|w| !matches!(w, Writer::Idle | Writer::Direct { .. } | Writer::Renaming { .. }));
        if open && self.on(Rule::FloorUnderLock) {
            return false;
        }
        self.postgres.now.floor = self.postgres.draw(WORKER_SESSION + 50);
        self.say(format!("everything again, floor {}", self.postgres.now.floor));
        let keys: Vec<Key> = self.postgres.now.rows.keys().copied().collect();
        for key in keys {
            self.postgres.schedule(Demand::Index(key));
        }
        true
    }

    // ---- promises

    /// Promise 3, after every step: what Elasticsearch does not show has a job. After a failover an index may be ahead of a key that
    /// nobody changed since; that is what the jobs of the failover are for.
    fn check_intent(&mut self) -> Step {
        for key in 0..KEYS {
            let agrees = compare(self.postgres.want(key), &self.elastic.look(key)).is_satisfied();
            let has_job = self
                .postgres
                .now
                .jobs
                .iter()
                .any(|job| [Demand::Index(key), Demand::TouchKey(key), Demand::Touch, Demand::Failed].contains(&job.demand));
            if !agrees && !has_job && !self.is_half_swept(key) && self.off.is_none() && !self.explained {
                return Err(format!("{key} is forgotten"));
            }
        }
        Ok(())
    }

    /// Promises 1 and 4, when nothing is left to do.
    fn check_agreement(&mut self) -> Step {
        for key in 0..KEYS {
            let want = self.postgres.shown(key).map(|(_, content)| content);
            let has = self.elastic.documents.get(&key).and_then(|(_, body)| match body {
                Body::Document(content) => Some(*content),
                Body::Tombstone | Body::Swept => None,
            });
            if want != has {
                return Err(format!("{key}: Postgres wants {want:?}, Elasticsearch has {:?}", self.elastic.documents.get(&key)));
            }
            let kept = matches!(self.elastic.documents.get(&key), Some((_, Body::Tombstone)));
            if kept && self.postgres.want(key) == Want::Never && !self.explained {
                return Err(format!("{key}: its tombstone stays for ever, nobody knows of it"));
            }
        }
        Ok(())
    }
}
