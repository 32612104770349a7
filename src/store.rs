//! The direct path: store, commit, and index at once. The job that the trigger left makes sure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::Instant;
use tracing::{Instrument, debug_span};

use crate::collection::{Collection, Document, Want};
use crate::elastic::{Answer, Body, Refresh, Target, Write};
use crate::sync::{Scope, State};
use crate::{Catchword, Error, crash, database, metrics, traceparent};

/// A dead cluster costs a write this much at most, and only until the breaker opens.
const LIMIT: Duration = Duration::from_secs(1);

/// What a direct write is left for, when this process has not heard of a new index yet.
pub(crate) const REBUILT: &str = "its index is being rebuilt, and this process has just heard of it";

/// How old what is known of the collections may be: a pause or a new target is heeded after this.
const REFRESH: Duration = Duration::from_secs(30);
/// The same while an index could not yet be asked whose it is.
const UNVERIFIED: Duration = Duration::from_secs(1);

/// What a store returns: your value, and the keys to index now.
#[derive(Clone, Debug)]
pub struct Stored<T> {
    value: T,
    keys: Vec<String>,
}

impl<T> Stored<T> {
    /// Your value, and the keys of the rows that were written.
    pub fn new<K: ToString>(value: T, keys: impl IntoIterator<Item = K>) -> Stored<T> {
        Stored { value, keys: keys.into_iter().map(|key| key.to_string()).collect() }
    }
}

/// What was stored, and whether it is indexed already.
#[derive(Clone, Debug)]
pub struct Kept<T> {
    /// Your value. It is committed.
    pub value: T,
    /// What became of the direct write.
    pub direct: Direct,
}

/// What became of a direct write. Never an error: the job makes sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direct {
    /// The index has this revision, or a newer one. Search shows it within the index's `refresh_interval`.
    Indexed,
    /// The loop will do it, and why.
    Left(String),
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Direct::Indexed => f.write_str("indexed"),
            Direct::Left(why) => write!(f, "left to the loop: {why}"),
        }
    }
}

impl Catchword {
    /// Runs `store` in a transaction, commits, and indexes the keys it returns, all before this returns.
    ///
    /// The trigger leaves the job in the same transaction, so the row and its job are committed together or not at all. The direct
    /// write comes after the commit, takes at most a second, and cannot fail the store: [`Kept::direct`] says what became of it.
    /// If the answer to the commit is lost, the error is [`Error::CommitUnknown`], and nothing is indexed directly.
    ///
    /// ```
    /// # use catchword::{Catchword, Direct, Error, Stored};
    /// # use sqlx::PgConnection;
    /// async fn save(catchword: &Catchword, author: &str, text: &str) -> Result<i64, Error> {
    ///     let kept = catchword
    ///         .store_and_schedule("note", async |tx: &mut PgConnection| {
    ///             let id: i64 = sqlx::query_scalar("insert into note (author, text) values ($1, $2) returning id")
    ///                 .bind(author)
    ///                 .bind(text)
    ///                 .fetch_one(tx)
    ///                 .await?;
    ///             Ok::<_, Error>(Stored::new(id, [id]))
    ///         })
    ///         .await?;
    ///     if let Direct::Left(why) = kept.direct {
    ///         println!("saved; searchable in a minute or two: {why}");
    ///     }
    ///     Ok(kept.value)
    /// }
    /// ```
    ///
    /// It is `Send`, inside a spawned task as well:
    ///
    /// ```
    /// # use catchword::{Catchword, Error, Stored};
    /// # use sqlx::PgConnection;
    /// fn save_later(catchword: Catchword, author: String, text: String) -> tokio::task::JoinHandle<Result<i64, Error>> {
    ///     tokio::spawn(async move {
    ///         let kept = catchword
    ///             .store_and_schedule("note", async |tx: &mut PgConnection| {
    ///                 let insert = "insert into note (author, text) values ($1, $2) returning id";
    ///                 let id: i64 = sqlx::query_scalar(insert).bind(&author).bind(&text).fetch_one(tx).await?;
    ///                 Ok::<_, Error>(Stored::new(id, [id]))
    ///             })
    ///             .await?;
    ///         Ok(kept.value)
    ///     })
    /// }
    /// ```
    pub async fn store_and_schedule<T, E, F>(&self, collection: &str, store: F) -> Result<Kept<T>, E>
    where
        F: AsyncFnOnce(&mut PgConnection) -> Result<Stored<T>, E>,
        E: From<Error>,
    {
        let mut transaction = database::begin(&self.inner.open_pool).await?;
        // the trigger writes it into the job, so that a pass can point back at this request
        if let Some(traceparent) = traceparent::current() {
            let set = sqlx::query("select pg_catalog.set_config('catchword.traceparent', $1, true)").bind(traceparent);
            set.execute(&mut *transaction).await.map_err(Error::from)?;
        }
        let stored = store(&mut transaction).await?;
        let written = Instant::now();
        transaction.commit().await.map_err(commit_error)?;
        crash::point("after-commit");
        let direct = self.index(collection, stored.keys, Refresh::No, written).await;
        Ok(Kept { value: stored.value, direct })
    }

    /// Indexes committed rows directly: for callers that commit by themselves. Their triggers have left the jobs.
    pub async fn index_now<K: ToString>(&self, collection: &str, keys: impl IntoIterator<Item = K>) -> Direct {
        self.index_now_with(collection, keys, Refresh::No).await
    }

    /// Like [`Catchword::index_now`], and with [`Refresh::Now`] search shows it when this returns. A refresh per write is dear.
    pub async fn index_now_with<K: ToString>(&self, collection: &str, keys: impl IntoIterator<Item = K>, refresh: Refresh) -> Direct {
        let keys: Vec<String> = keys.into_iter().map(|key| key.to_string()).collect();
        self.index(collection, keys, refresh, Instant::now()).await
    }

    /// Indexes what was `written` then, and counts what became of it.
    async fn index(&self, collection: &str, keys: Vec<String>, refresh: Refresh, written: Instant) -> Direct {
        let (started, documents) = (Instant::now(), keys.len() as u64);
        let direct = self.direct(collection, keys, refresh).instrument(debug_span!("direct", collection, keys = documents)).await;
        let direct = direct.unwrap_or_else(Direct::Left);
        if self.inner.config.collection(Some(collection)).is_ok() {
            metrics::record_direct(collection, &direct, documents, started.elapsed(), written.elapsed());
        }
        direct
    }

    async fn direct(&self, name: &str, keys: Vec<String>, refresh: Refresh) -> Result<Direct, String> {
        let collection = self.inner.collection(name).ok_or_else(|| format!("collection {name} is not served here"))?;
        if let Some(key) = keys.iter().find(|key| collection.key_type.fault(key).is_some()) {
            return Err(format!("{key:?} is not a key of {name}"));
        }
        if keys.is_empty() {
            return Ok(Direct::Indexed);
        }
        self.admits(&collection)?;
        let permit = self.inner.direct.clone().try_acquire_owned().map_err(|_| "too many direct writes at once")?;
        let written = tokio::time::timeout(LIMIT, async {
            let _permit = permit;
            match refresh {
                Refresh::No => self.write_gathered(name, keys).await,
                Refresh::Now => self.write_in_a_task(&collection, keys, refresh).await,
            }
        });
        let written = written.await.unwrap_or_else(|_| Err("no answer within a second".into()));
        written.map(|()| Direct::Indexed)
    }

    /// In a task of its own: a query that is dropped half-way would hold up the next borrower of its connection.
    async fn write_in_a_task(&self, collection: &Arc<Collection>, keys: Vec<String>, refresh: Refresh) -> Result<(), String> {
        let (catchword, collection) = (self.clone(), collection.clone());
        let work = tokio::spawn(async move { catchword.write_now(&collection, &keys, refresh).await });
        work.await.unwrap_or_else(|_| Err("the direct write was cut short".into()))
    }

    /// Nothing is sent while a breaker is open, the collection is paused, or its index may be another's. Probes run beside the write.
    fn admits(&self, collection: &Arc<Collection>) -> Result<(), String> {
        if let Some(why) = self.inner.unverified(&collection.name) {
            self.refresh_in_background(UNVERIFIED);
            return Err(why);
        }
        self.refresh_in_background(REFRESH);
        for scope in [Scope::Cluster, Scope::Collection(&collection.name)] {
            match self.inner.breakers.state(scope) {
                State::Closed => {}
                State::Open(why) => return Err(why),
                State::ProbeDue => {
                    self.probe_in_background(collection);
                    return Err("a probe is under way".into());
                }
            }
        }
        match &collection.paused {
            Some(why) => Err(format!("paused {why}")),
            None => Ok(()),
        }
    }

    /// Reads and writes for one caller alone.
    pub(crate) async fn write_now(&self, collection: &Collection, keys: &[String], refresh: Refresh) -> Result<(), String> {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let said = |error: Error| error.to_string();
        let mut connection = self.inner.pool.acquire().await.map_err(|error| said(error.into()))?;
        // asked before the documents are read: what is written to an index was committed after the index was made a target
        if !collection.targets_are_current(&mut connection).await.map_err(said)? {
            self.refresh_in_background(Duration::ZERO);
            return Err(REBUILT.into());
        }
        let writes = writes(collection, &mut connection, &keys).await?;
        drop(connection);
        for answer in self.send(collection, &writes, refresh).await {
            self.inner.breakers.note(&collection.name, &answer);
            if !matches!(answer, Answer::Applied | Answer::Conflict) {
                return Err(answer.to_string());
            }
        }
        Ok(())
    }

    /// Sends to every index; what the readers' one answered.
    pub(crate) async fn send(&self, collection: &Collection, writes: &[Write<'_>], refresh: Refresh) -> Vec<Answer> {
        let Some((readers, others)) = collection.targets.split_first() else {
            return vec![Answer::Blocked("it has no index yet".into()); writes.len()];
        };
        for other in others {
            self.write_beside(other, writes, refresh).await;
        }
        self.inner.elastic.bulk(readers, writes, refresh, LIMIT).await
    }

    /// Writes to an index that readers do not see, first: what they see, it has, so that nothing vanishes when the alias moves. What
    /// fails here is the loop's; it takes half of the time at most, and nothing from the readers' index.
    async fn write_beside(&self, target: &Target, writes: &[Write<'_>], refresh: Refresh) {
        if self.inner.admits_beside(target).is_err() {
            return;
        }
        let answers = self.inner.elastic.bulk(target, writes, refresh, LIMIT / 2).await;
        let failed = |answer: &&Answer| matches!(answer, Answer::Unknown(_) | Answer::Unavailable(_) | Answer::Unreachable(_));
        self.inner.breakers.note_beside(target.index(), answers.iter().find(failed));
    }
}

/// What Postgres wants of the keys now: documents, and tombstones for what is gone.
async fn writes<'k>(collection: &Collection, connection: &mut PgConnection, keys: &[&'k str]) -> Result<Vec<Write<'k>>, String> {
    let said = |error: Error| error.to_string();
    let (built, unbuildable) = collection.bodies(connection, keys).await.map_err(said)?;
    if let Some(fault) = unbuildable.into_iter().next() {
        return Err(fault.error);
    }
    let mut writes = Vec::with_capacity(keys.len());
    for built in built {
        let Some(key) = keys.iter().find(|key| **key == built.key) else {
            continue;
        };
        match built.document {
            Document::Body(bytes) => writes.push(Write { key, version: built.version, body: Body::Document(bytes) }),
            Document::TooLarge(_) | Document::Later(_) => return Err("the documents are too large for a direct write".into()),
        }
    }
    let gone: Vec<&str> = keys.iter().copied().filter(|key| !writes.iter().any(|write| write.key == *key)).collect();
    if !gone.is_empty() {
        let (wants, _) = collection.wants(connection, &gone).await.map_err(said)?;
        for key in gone {
            match wants.get(key) {
                Some(Want::Hidden(version) | Want::Deleted(version)) => {
                    writes.push(Write { key, version: *version, body: Body::Tombstone })
                }
                Some(Want::Present(_)) | None => return Err("the row changed meanwhile".into()),
                Some(Want::Never) => {}
            }
        }
    }
    Ok(writes)
}

/// A server that answered with an error did not commit. Without an answer nobody knows.
fn commit_error(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::Database(_) => Error::Postgres(error),
        lost => Error::CommitUnknown(lost),
    }
}
