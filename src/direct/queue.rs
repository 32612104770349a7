//! Direct writes that come at the same time share one read and one bulk. Nobody waits when nothing is under way; otherwise a caller waits
//! for the request before it, a few milliseconds, and shares the next. Each gets the answer to its own keys.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

/// Shared requests under way for a collection. With two, one reads while the other is written.
pub(super) const REQUESTS: usize = 2;
/// Upper limit once a caller has waited for [`PATIENCE`]: those before it are slow, so more are started.
pub(super) const MOST_REQUESTS: usize = 8;
/// How long a caller waits for the requests before it.
pub(super) const PATIENCE: Duration = Duration::from_millis(10);
/// Keys in a request: more make the answer later, and nothing cheaper.
const MOST_KEYS: usize = 256;

/// Whoever waits, by collection.
#[derive(Default)]
pub(super) struct Queues(Mutex<HashMap<String, Queue>>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Caller>,
    under_way: usize,
}

/// The revisions of a caller's keys, as soon as they are read: also for one who does not wait for the answer any more.
pub(super) type Noted = Arc<OnceLock<BTreeMap<String, i64>>>;

/// One direct write that waits for its answer.
pub(super) struct Caller {
    pub since: Instant,
    pub keys: Vec<String>,
    noted: Noted,
    answer: oneshot::Sender<Result<(), String>>,
}

impl Caller {
    /// A caller, and where its answer comes.
    pub fn new(keys: Vec<String>, noted: Noted) -> (Caller, oneshot::Receiver<Result<(), String>>) {
        let (answer, receiver) = oneshot::channel();
        (Caller { since: Instant::now(), keys, noted, answer }, receiver)
    }

    /// Tells which revisions its keys have.
    pub fn note(&self, revision: impl Fn(&str) -> Option<i64>) {
        let revisions = self.keys.iter().filter_map(|key| Some((key.clone(), revision(key)?)));
        _ = self.noted.set(revisions.collect());
    }

    /// A caller that has gone away is not an error.
    pub fn answer(self, written: Result<(), String>) {
        _ = self.answer.send(written);
    }
}

impl Queues {
    pub fn add(&self, collection: &str, caller: Caller) {
        self.with(collection, |queue| queue.waiting.push_back(caller));
    }

    /// The callers of a request that may start now, if fewer than so many are under way; beyond the usual number only for those who have
    /// waited long. Whoever takes some must [end](Queues::end) it.
    pub fn start(&self, collection: &str, most: usize) -> Vec<Caller> {
        self.with(collection, |queue| {
            let impatient = queue.waiting.front().is_some_and(|caller| caller.since.elapsed() >= PATIENCE);
            let free = queue.under_way < REQUESTS || (queue.under_way < most && impatient);
            let callers = if free { queue.next_callers() } else { Vec::new() };
            queue.under_way += usize::from(!callers.is_empty());
            callers
        })
    }

    /// The next callers for a request that goes on.
    pub fn go_on(&self, collection: &str) -> Vec<Caller> {
        self.with(collection, Queue::next_callers)
    }

    pub fn end(&self, collection: &str) {
        self.with(collection, |queue| queue.under_way -= 1);
    }

    fn with<T>(&self, collection: &str, work: impl FnOnce(&mut Queue) -> T) -> T {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(queues.entry(collection.to_owned()).or_default())
    }
}

impl Queue {
    /// The next callers that still wait for an answer, up to so many keys. One caller alone may have more.
    fn next_callers(&mut self) -> Vec<Caller> {
        let (mut callers, mut keys) = (Vec::new(), 0);
        while let Some(caller) = self.waiting.pop_front() {
            if caller.answer.is_closed() {
                continue;
            }
            if keys > 0 && keys + caller.keys.len() > MOST_KEYS {
                self.waiting.push_front(caller);
                break;
            }
            keys += caller.keys.len();
            callers.push(caller);
        }
        callers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_whom_it_can_in_their_order_and_nobody_who_has_gone() {
        let mut queue = Queue::default();
        let caller = |keys: usize| Caller::new(vec!["k".into(); keys], Noted::default());
        let (callers, mut waiting): (Vec<_>, Vec<_>) = [100, 100, 50, 100, 1_000].map(caller).into_iter().unzip();
        queue.waiting.extend(callers);
        drop(waiting.remove(1));
        let sizes = |queue: &mut Queue| queue.next_callers().iter().map(|caller| caller.keys.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&mut queue), [100, 50, 100]);
        assert_eq!(sizes(&mut queue), [1_000], "more than a request holds, alone");
        assert!(queue.next_callers().is_empty());
    }
}
