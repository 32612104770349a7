//! Gathers direct writes that come at the same time: one read and one bulk for many callers. Nobody waits when nothing is under way;
//! otherwise a caller waits for the flight before it, a few milliseconds, and shares the next. Each gets the answer to its own keys.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::collection::{Collection, Now};
use crate::elastic::{Answer, Body, Refresh, Write};
use crate::store::REBUILT;
use crate::{Catchword, Error};

/// Flights at a time. With two, one reads while the other is written.
const FLIGHTS: usize = 2;
/// The same for callers who have waited long enough: those before them are slow.
const MOST_FLIGHTS: usize = 8;
/// How long a caller waits for the flights before it.
const PATIENCE: Duration = Duration::from_millis(10);
/// Keys in a flight: more make the answer later, and nothing cheaper.
const MOST_KEYS: usize = 256;

/// Whoever waits, by collection.
#[derive(Default)]
pub(crate) struct Gather {
    lines: Mutex<HashMap<String, Line>>,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Caller>,
    flights: usize,
}

struct Caller {
    since: Instant,
    keys: Vec<String>,
    answer: oneshot::Sender<Result<(), String>>,
}

impl Gather {
    fn with<T>(&self, collection: &str, work: impl FnOnce(&mut Line) -> T) -> T {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        work(lines.entry(collection.to_owned()).or_default())
    }
}

impl Line {
    /// The next callers that still wait for an answer, up to so many keys. One caller alone may have more.
    fn board(&mut self) -> Vec<Caller> {
        let (mut aboard, mut keys) = (Vec::new(), 0);
        while let Some(caller) = self.waiting.pop_front() {
            if caller.answer.is_closed() {
                continue;
            }
            if keys > 0 && keys + caller.keys.len() > MOST_KEYS {
                self.waiting.push_front(caller);
                break;
            }
            keys += caller.keys.len();
            aboard.push(caller);
        }
        aboard
    }
}

impl Catchword {
    /// Writes these keys, together with whatever else is waiting.
    pub(crate) async fn write_gathered(&self, collection: &str, keys: Vec<String>) -> Result<(), String> {
        let (sender, mut answer) = oneshot::channel();
        let caller = Caller { keys, since: Instant::now(), answer: sender };
        self.inner.gather.with(collection, |line| line.waiting.push_back(caller));
        self.take_off(collection, FLIGHTS);
        let cut_short = |_| Err("the direct write was cut short".to_owned());
        if let Ok(answered) = timeout(PATIENCE, &mut answer).await {
            return answered.unwrap_or_else(cut_short);
        }
        self.take_off(collection, MOST_FLIGHTS);
        answer.await.unwrap_or_else(cut_short)
    }

    /// Starts a flight for those who wait, if fewer than so many are under way; beyond the usual number for those only who waited long.
    fn take_off(&self, collection: &str, most: usize) {
        let aboard = self.inner.gather.with(collection, |line| {
            let impatient = line.waiting.front().is_some_and(|caller| caller.since.elapsed() >= PATIENCE);
            let aboard = if line.flights < FLIGHTS || (line.flights < most && impatient) { line.board() } else { Vec::new() };
            line.flights += usize::from(!aboard.is_empty());
            aboard
        });
        if !aboard.is_empty() {
            let flight = Flight { catchword: self.clone(), collection: collection.to_owned() };
            tokio::spawn(flight.fly(aboard));
        }
    }

    /// One read and one bulk for all of them.
    async fn write_together(&self, collection: &Arc<Collection>, callers: Vec<Caller>) {
        let keys: Vec<&str> = callers.iter().flat_map(|caller| caller.keys.iter().map(String::as_str)).collect();
        let found = match self.read_now(collection, &keys).await {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.refresh_in_background(Duration::ZERO);
                return callers.into_iter().for_each(|caller| caller.says(Err(REBUILT.into())));
            }
            // somebody's row cannot be built, or takes too long: then each for itself
            Err(error) => {
                tracing::debug!("direct writes go one by one: {error}");
                return callers.into_iter().for_each(|caller| self.write_alone(collection, caller));
            }
        };
        let fits = |caller: &Caller| caller.keys.iter().all(|key| !matches!(found.get(key), None | Some(Now::Alone)));
        let (callers, alone): (Vec<Caller>, Vec<Caller>) = callers.into_iter().partition(fits);
        alone.into_iter().for_each(|caller| self.write_alone(collection, caller));

        let write = |key| match found.get(key)? {
            Now::Document(version, bytes) => Some(Write { key, version: *version, body: Body::Document(bytes.clone()) }),
            Now::Gone(version) => Some(Write { key, version: *version, body: Body::Tombstone }),
            Now::Never | Now::Alone => None,
        };
        let each: Vec<Vec<Write<'_>>> = callers.iter().map(|c| c.keys.iter().filter_map(|key| write(key)).collect()).collect();
        let mut answers = self.send_now(collection, &each.concat()).await.into_iter();
        let ours: Vec<Vec<Answer>> = each.iter().map(|writes| answers.by_ref().take(writes.len()).collect()).collect();
        for (caller, answers) in callers.into_iter().zip(ours) {
            let refused = answers.iter().find(|answer| !matches!(answer, Answer::Applied | Answer::Conflict));
            caller.says(refused.map_or(Ok(()), |answer| Err(answer.to_string())));
        }
    }

    async fn read_now(&self, collection: &Collection, keys: &[&str]) -> Result<Option<HashMap<String, Now>>, Error> {
        let mut connection = self.inner.quick_pool.acquire().await?;
        collection.now(&mut connection, keys).await
    }

    /// One request for all; the breakers hear of it once, however many are in it.
    async fn send_now(&self, collection: &Collection, writes: &[Write<'_>]) -> Vec<Answer> {
        let answers = self.send(collection, writes, Refresh::No).await;
        let failed = |answer: &&Answer| !matches!(answer, Answer::Applied | Answer::Conflict | Answer::Refused(_) | Answer::TooLarge(_));
        if let Some(answer) = answers.iter().find(failed).or(answers.first()) {
            self.inner.breakers.note(&collection.name, answer);
        }
        answers
    }

    fn write_alone(&self, collection: &Arc<Collection>, caller: Caller) {
        let (catchword, collection) = (self.clone(), collection.clone());
        tokio::spawn(async move {
            let written = catchword.write_now(&collection, &caller.keys, Refresh::No).await;
            caller.says(written);
        });
    }
}

impl Caller {
    /// A caller that has gone away is not an error.
    fn says(self, written: Result<(), String>) {
        _ = self.answer.send(written);
    }
}

/// A flight, which counts until it is dropped: also when it panics.
struct Flight {
    catchword: Catchword,
    collection: String,
}

impl Flight {
    async fn fly(self, mut aboard: Vec<Caller>) {
        while !aboard.is_empty() {
            // asked each time: a flight may go on as long as there are callers
            match self.catchword.inner.collection(&self.collection) {
                Some(collection) => self.catchword.write_together(&collection, aboard).await,
                None => aboard.into_iter().for_each(|caller| caller.says(Err("it is no longer served here".into()))),
            }
            aboard = self.catchword.inner.gather.with(&self.collection, Line::board);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.catchword.inner.gather.with(&self.collection, |line| line.flights -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(keys: usize) -> (Caller, oneshot::Receiver<Result<(), String>>) {
        let (answer, receiver) = oneshot::channel();
        (Caller { since: Instant::now(), keys: vec!["k".into(); keys], answer }, receiver)
    }

    #[test]
    fn a_flight_takes_whom_it_can_in_their_order_and_nobody_who_has_gone() {
        let mut line = Line::default();
        let (callers, mut waiting): (Vec<_>, Vec<_>) = [100, 100, 50, 100, 1_000].map(caller).into_iter().unzip();
        line.waiting.extend(callers);
        drop(waiting.remove(1));
        let sizes = |line: &mut Line| line.board().iter().map(|caller| caller.keys.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&mut line), [100, 50, 100]);
        assert_eq!(sizes(&mut line), [1_000], "more than a flight holds, alone");
        assert!(line.board().is_empty());
    }
}
