//! One road from keys to writes: admit, wait for the others, read, send, answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{Instrument, debug_span};

use super::admit::admit;
use super::queue::{Caller, MOST_REQUESTS, Noted, PATIENCE, Queues, REQUESTS};
use super::read::{self, Read};
use super::{Direct, Kept, Stored};
use crate::collection::{Collection, Now, begin_saying};
use crate::config::DIRECT_DELAY;
use crate::context::{Context, refresh_in_background};
use crate::elastic::{Answer, Body, Refresh, Target, Write};
use crate::{Error, crash, database, metrics, traceparent};

/// A dead cluster costs a write this much at most, and only until the breaker opens.
const LIMIT: Duration = Duration::from_secs(1);
/// A bulk ends so much before the first of its callers gives up: when that caller comes again, the breaker has heard of the failure.
const AHEAD: Duration = Duration::from_millis(50);
/// A bulk has so much time at least, however late it begins: a slow read from Postgres must not look like a slow Elasticsearch.
const LEAST: Duration = Duration::from_millis(500);
/// Direct writes at a time; more are left to the loop. They go together, so that each costs little more than its own bytes.
const AT_A_TIME: usize = 256;
/// What a direct write is left for, when this process has not heard of a new index yet.
const REBUILT: &str = "its index is being rebuilt, and this process has just heard of it";
const CUT_SHORT: &str = "the direct write was cut short";

/// The direct path of a process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct DirectPath {
    context: Arc<Context>,
    queues: Arc<Queues>,
    permits: Arc<Semaphore>,
}

impl DirectPath {
    pub fn new(context: Arc<Context>) -> DirectPath {
        DirectPath { context, queues: Arc::default(), permits: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    pub async fn store_and_schedule<T, E, F>(&self, collection: &str, tag: Option<&str>, store: F) -> Result<Kept<T>, E>
    where
        F: AsyncFnOnce(&mut PgConnection) -> Result<Stored<T>, E>,
        E: From<Error>,
    {
        // the direct write comes first, unless the configuration says otherwise; and a pass can point back at this request
        let waits = self.context.config.collection(Some(collection)).is_ok_and(|collection| collection.delay.is_none());
        let begin = begin_saying(waits.then_some(DIRECT_DELAY), traceparent::current().as_deref(), tag);
        let mut transaction = database::begin_by(&self.context.open_pool, begin).await?;
        let stored = store(&mut transaction).await?;
        let written = Instant::now();
        transaction.commit().await.map_err(commit_error)?;
        crash::point("after-commit");
        let (ends, noted) = (Instant::now() + LIMIT, Noted::default());
        let direct = self.index_noting(collection, stored.keys.clone(), Refresh::No, written, &noted).await;
        let revisions = match noted.get() {
            Some(revisions) => revisions.clone(),
            None if stored.keys.is_empty() => BTreeMap::new(),
            None => self.revisions(collection, stored.keys, ends).await,
        };
        Ok(Kept { value: stored.value, direct, revisions })
    }

    /// The revisions of keys for which no direct write was tried, or none came so far.
    async fn revisions(&self, name: &str, keys: Vec<String>, ends: Instant) -> BTreeMap<String, i64> {
        let Some(collection) = self.context.collection(name) else { return BTreeMap::new() };
        let context = self.context.clone();
        // in a task of its own, for the reason that a request is
        let read = tokio::spawn(async move {
            let keys: Vec<&str> = keys.iter().map(String::as_str).filter(|key| collection.key_type.fault(key).is_none()).collect();
            read::revisions(&context, &collection, &keys).await
        });
        timeout_at(ends, read).await.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Indexes what was `written` then, and counts what became of it.
    pub async fn index(&self, collection: &str, keys: Vec<String>, refresh: Refresh, written: Instant) -> Direct {
        self.index_noting(collection, keys, refresh, written, &Noted::default()).await
    }

    async fn index_noting(&self, collection: &str, keys: Vec<String>, refresh: Refresh, written: Instant, noted: &Noted) -> Direct {
        let (started, documents) = (Instant::now(), keys.len() as u64);
        let span = debug_span!("direct", collection, keys = documents);
        let direct = match self.write(collection, keys, refresh, noted).instrument(span).await {
            Ok(()) => Direct::Indexed,
            Err(why) => Direct::Left(why),
        };
        if self.context.config.collection(Some(collection)).is_ok() {
            metrics::record_direct(collection, direct == Direct::Indexed, documents, started.elapsed(), written.elapsed());
        }
        direct
    }

    async fn write(&self, name: &str, keys: Vec<String>, refresh: Refresh, noted: &Noted) -> Result<(), String> {
        let collection = self.context.collection(name).ok_or_else(|| format!("collection {name} is not served here"))?;
        if let Some(key) = keys.iter().find(|key| collection.key_type.fault(key).is_some()) {
            return Err(format!("{key:?} is not a key of {name}"));
        }
        if keys.is_empty() {
            return Ok(());
        }
        admit(&self.context, &collection)?;
        let permit = self.permits.clone().try_acquire_owned().map_err(|_| "too many direct writes at once")?;
        let written = timeout(LIMIT, async {
            let _permit = permit;
            let (caller, mut answer) = Caller::new(keys, noted.clone());
            match refresh {
                // a refresh is for this caller's documents alone
                Refresh::Now => self.write_alone(&collection, caller, refresh),
                Refresh::No => {
                    self.queues.add(name, caller);
                    self.start_request(name, REQUESTS);
                    if let Ok(answered) = timeout(PATIENCE, &mut answer).await {
                        return answered.unwrap_or_else(|_| Err(CUT_SHORT.into()));
                    }
                    self.start_request(name, MOST_REQUESTS);
                }
            }
            answer.await.unwrap_or_else(|_| Err(CUT_SHORT.into()))
        });
        written.await.unwrap_or_else(|_| Err("no answer within a second".into()))
    }

    /// In a task of its own: a query that is dropped half-way would hold up the next borrower of its connection.
    fn start_request(&self, collection: &str, most: usize) {
        let callers = self.queues.start(collection, most);
        if !callers.is_empty() {
            let request = Request { path: self.clone(), collection: collection.to_owned() };
            tokio::spawn(request.run(callers));
        }
    }

    /// One quick read and one bulk for all of them. Where somebody's row cannot be built, or takes too long, each goes alone.
    async fn write_together(&self, collection: &Arc<Collection>, callers: Vec<Caller>) {
        let keys: Vec<&str> = callers.iter().flat_map(|caller| caller.keys.iter().map(String::as_str)).collect();
        let alone = |caller| self.write_alone(collection, caller, Refresh::No);
        match read::quickly(&self.context, collection, &keys).await {
            Read::Found(found) => {
                let fits = |caller: &Caller| caller.keys.iter().all(|key| !matches!(found.get(key), None | Some(Now::Alone)));
                let (together, others): (Vec<Caller>, Vec<Caller>) = callers.into_iter().partition(fits);
                others.into_iter().for_each(alone);
                self.write_found(collection, &found, together, Refresh::No).await;
            }
            Read::OtherTargets => {
                refresh_in_background(&self.context, Duration::ZERO);
                callers.into_iter().for_each(|caller| caller.answer(Err(REBUILT.into())));
            }
            Read::Failed(why) => {
                tracing::debug!("direct writes go one by one: {why}");
                callers.into_iter().for_each(alone);
            }
        }
    }

    fn write_alone(&self, collection: &Arc<Collection>, caller: Caller, refresh: Refresh) {
        let (path, collection) = (self.clone(), collection.clone());
        tokio::spawn(async move {
            let keys: Vec<&str> = caller.keys.iter().map(String::as_str).collect();
            match read::carefully(&path.context, &collection, &keys).await {
                Read::Found(found) => path.write_found(&collection, &found, vec![caller], refresh).await,
                Read::OtherTargets => {
                    refresh_in_background(&path.context, Duration::ZERO);
                    caller.answer(Err(REBUILT.into()));
                }
                Read::Failed(why) => caller.answer(Err(why)),
            }
        });
    }

    /// One bulk for all of them, and to each the answer to its own keys.
    async fn write_found(&self, collection: &Collection, found: &HashMap<String, Now>, callers: Vec<Caller>, refresh: Refresh) {
        let write = |key| match found.get(key)? {
            Now::Document(version, bytes) => Some(Write { key, version: *version, body: Body::Document(bytes.clone()) }),
            Now::Gone(version) => Some(Write { key, version: *version, body: Body::Tombstone }),
            Now::Never | Now::Alone => None,
        };
        callers.iter().for_each(|caller| caller.note(|key| found.get(key)?.revision()));
        let keys: Vec<&str> = callers.iter().flat_map(|caller| caller.keys.iter().map(String::as_str)).collect();
        let ids = match collection.ids(&self.context.quick_pool, &keys).await {
            Ok(ids) => ids,
            Err(error) => return callers.into_iter().for_each(|caller| caller.answer(Err(error.to_string()))),
        };
        let (callers, unnamed): (Vec<Caller>, Vec<Caller>) =
            callers.into_iter().partition(|caller| caller.keys.iter().all(|key| is_gone(found.get(key)) || ids.fault(key).is_none()));
        unnamed.into_iter().for_each(|caller| caller.answer(Err("a document has no id of its own; the loop says why".into())));
        let each: Vec<Vec<Write<'_>>> = callers.iter().map(|c| c.keys.iter().filter_map(|key| write(key)).collect()).collect();
        let writes = each.concat();
        let named: Vec<_> = writes.iter().map(|write| ids.of(write.key)).collect();
        let sent_as: Vec<Write<'_>> = writes.iter().zip(&named).map(|(write, id)| write.under(id)).collect();
        let first = callers.iter().map(|caller| caller.since).min().unwrap_or_else(Instant::now);
        let mut answers = self.send(collection, &sent_as, refresh, first).await.into_iter();
        let own: Vec<Vec<Answer>> = each.iter().map(|writes| answers.by_ref().take(writes.len()).collect()).collect();
        for (caller, answers) in callers.into_iter().zip(own) {
            let refused = answers.iter().find(|answer| !matches!(answer, Answer::Applied | Answer::Conflict));
            caller.answer(refused.map_or(Ok(()), |answer| Err(answer.to_string())));
        }
    }

    /// Sends to every index, for callers of whom the first has waited since then; what the readers' one answered. The breakers hear of
    /// it once, however many are in it.
    async fn send(&self, collection: &Collection, writes: &[Write<'_>], refresh: Refresh, first: Instant) -> Vec<Answer> {
        let Some((readers, others)) = collection.targets.split_first() else {
            return vec![Answer::Blocked("it has no index yet".into()); writes.len()];
        };
        for other in others {
            self.send_to_hidden_index(other, writes, refresh).await;
        }
        let answers = self.context.elastic.bulk(readers, writes, refresh, time_left(first.elapsed())).await;
        let failed = |answer: &&Answer| !matches!(answer, Answer::Applied | Answer::Conflict | Answer::Refused(_) | Answer::TooLarge(_));
        if let Some(answer) = answers.iter().find(failed).or(answers.first()) {
            self.context.health.breakers.note(&collection.name, answer);
        }
        answers
    }

    /// Writes to an index that readers do not see, first: what they see, it has, so that nothing vanishes when the alias moves. What
    /// fails here is the loop's; it takes half of the time at most, and nothing from the readers' index.
    async fn send_to_hidden_index(&self, target: &Target, writes: &[Write<'_>], refresh: Refresh) {
        if self.context.admits_hidden_index(target).is_err() {
            return;
        }
        let answers = self.context.elastic.bulk(target, writes, refresh, LIMIT / 2).await;
        let failed = |answer: &&Answer| matches!(answer, Answer::Unknown(_) | Answer::Unavailable(_) | Answer::Unreachable(_));
        self.context.health.breakers.note_beside(target.index(), answers.iter().find(failed));
    }
}

/// Is nothing written for it but perhaps a tombstone?
fn is_gone(now: Option<&Now>) -> bool {
    !matches!(now, Some(Now::Document(..)))
}

/// A request for many callers, which counts until it is dropped: also when it panics.
struct Request {
    path: DirectPath,
    collection: String,
}

impl Request {
    async fn run(self, mut callers: Vec<Caller>) {
        while !callers.is_empty() {
            // asked each time: a request may go on as long as there are callers
            match self.path.context.collection(&self.collection) {
                Some(collection) => self.path.write_together(&collection, callers).await,
                None => callers.into_iter().for_each(|caller| caller.answer(Err("it is no longer served here".into()))),
            }
            callers = self.path.queues.go_on(&self.collection);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.path.queues.end(&self.collection);
    }
}

/// How long a bulk may take whose first caller has waited so long already.
fn time_left(waited: Duration) -> Duration {
    LIMIT.saturating_sub(AHEAD + waited).max(LEAST)
}

/// A server that answered with an error did not commit. Without an answer nobody knows.
fn commit_error(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::Database(_) => Error::Postgres(error),
        lost => Error::CommitUnknown(lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bulk_ends_before_its_first_caller_gives_up_and_has_half_a_second_at_least() {
        for waited in [0, 10, 300, 450].map(Duration::from_millis) {
            assert_eq!(time_left(waited) + waited + AHEAD, LIMIT, "{waited:?}");
        }
        for waited in [451, 999, 5000].map(Duration::from_millis) {
            assert_eq!(time_left(waited), LEAST, "{waited:?}");
        }
    }
}
