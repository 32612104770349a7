//! The door: every method that an application or a command calls, one line each. The work is in the parts.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::collection::OfACopy;
use crate::config::{CANARY, Config, Environment};
use crate::context::{Context, refresh};
use crate::direct::{Direct, DirectPath, Kept, Stored};
use crate::drift::Drift;
use crate::elastic::{Elastic, Refresh};
use crate::explain::Explanation;
use crate::gauges::{self, Gauges, Part};
use crate::migrate::Done;
use crate::outcome::Outcome;
use crate::rebuild::Rebuild;
use crate::status::{self, Status};
use crate::upkeep::Upkeep;
use crate::wait::{Until, Waited, Waits};
use crate::worker::Worker;
use crate::{Error, audit, check, collection, config, doctor, drift, explain, migrate, rebuild, sync};

/// Keeps the configured collections in step. Cheap to clone.
#[derive(Clone)]
pub struct Catchword {
    pub(crate) context: Arc<Context>,
    direct: DirectPath,
    waits: Waits,
    gauges: Arc<Gauges>,
}

impl Catchword {
    fn of(context: Context) -> Catchword {
        let context = Arc::new(context);
        Catchword { direct: DirectPath::new(context.clone()), waits: Waits::new(context.clone()), gauges: Arc::default(), context }
    }

    /// Opens, and refuses what it will not work on: a standby, another version's schema, a collection that is not attached, triggers
    /// that are missing or off, another installation's index. An Elasticsearch that is down is no reason to refuse: writes go on.
    pub async fn connect(config: Config, environment: &Environment) -> Result<Catchword, Error> {
        Catchword::of(Context::open(config, environment)?).checked().await
    }

    /// Like [`Catchword::connect`], with the application's own pool: [`Catchword::store_and_schedule`] begins its transactions there,
    /// whatever the settings of its sessions are, and whatever pooler is in between. What catchword itself reads and writes goes by
    /// connections of its own to the environment's `database_url`, because its promises rest on their settings. It must lead to the
    /// same database, directly or through a pooler in session mode.
    pub async fn with_pool(config: Config, environment: &Environment, pool: PgPool) -> Result<Catchword, Error> {
        Catchword::of(Context::with_pool(config, environment, pool)?).checked().await
    }

    /// Refuses what it will not work on.
    async fn checked(self) -> Result<Catchword, Error> {
        let catchword = self;
        catchword.context.reach_postgres().await?;
        let mut connection = catchword.context.pool.acquire().await?;
        collection::refuse_standby(&mut connection).await?;
        migrate::check_version(&mut connection).await?;
        drop(connection);
        let refused = refresh(&catchword.context).await?;
        // what is wrong with the canary is no reason to keep an application from starting
        match refused.iter().find(|(name, _)| *name != CANARY) {
            Some((name, why)) => Err(not_served(name, why)),
            None => Ok(catchword),
        }
    }

    /// Runs `store` in a transaction, commits, and indexes the keys it returns, all before this returns.
    ///
    /// The trigger schedules the job in the same transaction, so the row and its job are committed together or not at all. The direct
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
        self.direct.store_and_schedule(collection, None, store).await
    }

    /// Like [`Catchword::store_and_schedule`], and its jobs have this tag: who asked, for people and metrics. It is cut to 100 letters.
    pub async fn store_and_schedule_as<T, E, F>(&self, tag: &str, collection: &str, store: F) -> Result<Kept<T>, E>
    where
        F: AsyncFnOnce(&mut PgConnection) -> Result<Stored<T>, E>,
        E: From<Error>,
    {
        self.direct.store_and_schedule(collection, Some(tag), store).await
    }

    /// Indexes committed rows directly: for callers that commit by themselves. Their triggers have scheduled the jobs, which are due at
    /// once: `set local catchword.delay = '60'` in the transaction keeps a worker from writing the same documents at the same time.
    pub async fn index_now<K: ToString>(&self, collection: &str, keys: impl IntoIterator<Item = K>) -> Direct {
        self.index_now_with(collection, keys, Refresh::No).await
    }

    /// Like [`Catchword::index_now`], and with [`Refresh::Now`] search shows it when this returns. A refresh per write is expensive.
    pub async fn index_now_with<K: ToString>(&self, collection: &str, keys: impl IntoIterator<Item = K>, refresh: Refresh) -> Direct {
        let keys = keys.into_iter().map(|key| key.to_string()).collect();
        self.direct.index(collection, keys, refresh, Instant::now()).await
    }

    /// Waits until what is committed of these keys now is in the readers' index, or until search shows it, and for `limit` at most (an hour;
    /// with 0 it looks once, which takes half a second at most). Says of each key, in their order, what became of it: one that is not there
    /// in time is [`Became::Waiting`](crate::Became::Waiting), also if Elasticsearch is down. At most 1,000 keys.
    ///
    /// It only looks, each time a little later, and those who wait at the same time share the requests. An error means that Postgres could
    /// not be asked, or that the collection or a key is none.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use catchword::{Catchword, Error, Until};
    /// async fn is_found(catchword: &Catchword, note: i64) -> Result<bool, Error> {
    ///     let waited = catchword.wait_until("note", [note], Until::Searchable, Duration::from_secs(2)).await?;
    ///     Ok(waited.iter().all(|key| key.has_come(Until::Searchable)))
    /// }
    /// ```
    pub async fn wait_until<K: ToString>(
        &self,
        collection: &str,
        keys: impl IntoIterator<Item = K>,
        until: Until,
        limit: Duration,
    ) -> Result<Vec<Waited>, Error> {
        self.waits.wait_until(collection, keys.into_iter().map(|key| key.to_string()).collect(), until, limit).await
    }

    /// One pass over the queues of these collections (none: of all that are configured). `name` is what its span and its log line are
    /// called.
    ///
    /// One bad document of 2,500 is a count in the [`Outcome`], never an error. An error means that Postgres could not be worked with;
    /// whatever was claimed then is free again.
    pub async fn sync(&self, name: &str, collections: &[&str]) -> Result<Outcome, Error> {
        sync::sync(&self.context, name, collections).await
    }

    /// Passes until one neither writes nor settles anything.
    pub async fn drain(&self, name: &str, collections: &[&str]) -> Result<Outcome, Error> {
        sync::drain(&self.context, name, collections).await
    }

    /// A worker for these collections (none: all that are configured). `name` is what its passes are called in logs and spans.
    pub fn worker(&self, name: &str, collections: &[&str]) -> Worker {
        Worker::new(self.context.clone(), name, collections)
    }

    /// Makes the series of this process' metrics. Once per process, after the global provider of OpenTelemetry is set;
    /// [`telemetry`](crate::telemetry) does it for a process that has none.
    pub fn watch(&self, part: Part) {
        gauges::watch(&self.context, &self.gauges, part);
    }

    /// Reads for the gauges what only Postgres knows: before each scrape and each export. Takes two seconds at most.
    pub async fn observe(&self) {
        gauges::observe(&self.context, &self.gauges).await
    }

    /// The pool, for an application that has none of its own.
    #[expect(clippy::misnamed_getters, reason = "the other one is catchword's own: there, the application's names mean nothing")]
    pub fn pool(&self) -> &PgPool {
        &self.context.open_pool
    }

    /// The configuration it was opened with.
    pub fn config(&self) -> &Config {
        &self.context.config
    }

    /// The alias that readers of a collection search.
    pub fn readers_alias(&self, collection: &str) -> Option<String> {
        self.context.collection(collection).map(|collection| collection.alias.clone())
    }
}

/// What the commands call. Not for applications: it may change with any version.
#[doc(hidden)]
impl Catchword {
    /// Opens pool and client. Nothing is sent yet.
    pub fn open(config: Config, environment: &Environment) -> Result<Catchword, Error> {
        Ok(Catchword::of(Context::open(config, environment)?))
    }

    /// Reads the collections, and refuses only if none of them can be served: one that is refused is logged, and the others go on.
    pub async fn serve_what_can_be_served(&self) -> Result<(), Error> {
        let refused = refresh(&self.context).await?;
        match refused.first_key_value() {
            Some((name, why)) if self.context.collections(&[]).is_empty() => Err(not_served(name, why)),
            _ => Ok(()),
        }
    }

    /// What stands before every index and alias: `CATCHWORD_INDEX_PREFIX`.
    pub fn prefix(&self) -> &str {
        &self.context.prefix
    }

    /// The client.
    pub fn elastic(&self) -> &Elastic {
        &self.context.elastic
    }

    /// Makes the schema, creates the indices with their aliases, attaches every configured table.
    pub async fn migrate(&self) -> Result<(Vec<String>, Vec<Done>), Error> {
        migrate::migrate(&self.context).await
    }

    /// The same for a database that may be a copy of another one.
    pub async fn migrate_copy(&self, copy: OfACopy) -> Result<(Vec<String>, Vec<Done>), Error> {
        migrate::migrate_copy(&self.context, copy).await
    }

    /// What changed in the mapping file or the view of a collection since its index was filled. It changes nothing.
    pub async fn drift(&self, config: &config::Collection) -> Result<Drift, Error> {
        drift::drift(&self.context, config).await
    }

    /// What a worker does beside the loop, for these collections (none: all).
    pub fn upkeep(&self, collections: &[&str]) -> Upkeep {
        Upkeep::new(self.context.clone(), collections)
    }

    /// Looks at everything that could stand in the way of a worker.
    pub async fn doctor(&self, environment: &Environment) -> doctor::Report {
        doctor::doctor(&self.context, environment).await
    }

    /// Compares, from the beginning to the end.
    pub async fn audit(&self, request: &audit::Request) -> Result<audit::Report, Error> {
        audit::audit(&self.context, request).await
    }

    /// The same, watched and with a way to stop it between two pieces.
    pub async fn audit_watched(
        &self,
        request: &audit::Request,
        watch: audit::Watch<'_>,
        stop: &CancellationToken,
    ) -> Result<audit::Report, Error> {
        audit::audit_watched(&self.context, request, watch, stop).await
    }

    /// Goes on with an audit that was cut short, where it was.
    pub async fn resume_audit(
        &self,
        id: i64,
        rate: Option<u32>,
        watch: audit::Watch<'_>,
        stop: &CancellationToken,
    ) -> Result<audit::Report, Error> {
        audit::resume_audit(&self.context, id, rate, watch, stop).await
    }

    /// Looks at everything that could stand in the way of a rebuild, and changes nothing.
    pub async fn plan_rebuild(&self, request: &rebuild::Request) -> Result<rebuild::Plan, Error> {
        rebuild::plan_rebuild(&self.context, request).await
    }

    /// Rebuilds the index of a collection, or goes on with a rebuild that was cut short.
    pub async fn rebuild(&self, request: &rebuild::Request, watch: rebuild::Watch<'_>, stop: &CancellationToken) -> Result<Rebuild, Error> {
        rebuild::rebuild(&self.context, request, watch, stop).await
    }

    /// The rebuild of a collection that is not over, if there is one.
    pub async fn unfinished_rebuild(&self, collection: &str) -> Result<Option<Rebuild>, Error> {
        rebuild::unfinished_rebuild(&self.context, collection).await
    }

    /// Swaps back to the index that readers saw before.
    pub async fn rebuild_back(&self, collection: &str, who: &str) -> Result<Rebuild, Error> {
        rebuild::rebuild_back(&self.context, collection, who).await
    }

    /// Undoes a rebuild that is not swapped in yet: the new index is dropped.
    pub async fn rebuild_abort(&self, collection: &str, who: &str) -> Result<Rebuild, Error> {
        rebuild::rebuild_abort(&self.context, collection, who).await
    }

    /// Drops the index that is kept and that readers do not see, before its time.
    pub async fn rebuild_drop(&self, collection: &str, who: &str) -> Result<Rebuild, Error> {
        rebuild::rebuild_drop(&self.context, collection, who).await
    }

    /// Reads the state of every configured collection. An error is what a person must fix first.
    pub async fn status(&self) -> Result<Status, Error> {
        status::status(&self.context).await
    }

    /// Reads what can be read within some seconds, and judges it. A server that is down or silent is a judgement too.
    pub async fn check(&self) -> check::Report {
        check::check(&self.context).await
    }

    /// Looks at both sides of a key.
    pub async fn explain(&self, config: &config::Collection, key: &str) -> Result<Explanation, Error> {
        explain::explain(&self.context, config, key).await
    }
}

/// The refusal to serve a collection, with the remedy of what is wrong with it.
fn not_served(name: &str, why: &Error) -> Error {
    Error::Refused { what: format!("collection {name}: {}", why.what()), remedy: why.remedy() }
}
