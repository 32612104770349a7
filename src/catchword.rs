//! The handle: a pool, a client, the configured collections, and what this process knows of their health.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::collection::{self, Collection, Found};
use crate::config::{self, CANARY, Config, ElasticsearchSettings, Environment, Tls};
use crate::drift::Drift;
use crate::elastic::{Address, Answer, Credentials, Elastic, Target, Transport};
use crate::explain::Explanation;
use crate::gather::Gather;
use crate::metrics::Gauges;
use crate::status::Status;
use crate::sync::{Blamed, Breakers, Pace, Steps};
use crate::{Error, check, database, drift, elastic, explain, metrics, migrate, status};

/// Direct writes at a time; more are left to the loop. They go together, so that each costs little more than its own bytes.
const DIRECT_IN_FLIGHT: usize = 256;
/// Connections for the reads of direct writes that go together: one for each flight that is usual, and some for the impatient.
const QUICK_CONNECTIONS: u32 = 4;
/// Connections beside those of batches: direct writes, health, a raise of the sequence.
const SPARE_CONNECTIONS: u32 = 8;
/// How long the check of an index may hold up a start.
const OWNERSHIP: Duration = Duration::from_secs(3);

/// Keeps the configured collections in step. Cheap to clone.
#[derive(Clone)]
pub struct Catchword {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub config: Config,
    pub prefix: String,
    pub pool: PgPool,
    /// For the statements of an application: its names are looked up by its own path.
    pub open_pool: PgPool,
    pub elastic: Elastic,
    pub breakers: Breakers,
    pub pace: Pace,
    pub steps: Steps,
    pub blamed: Blamed,
    pub direct: Arc<Semaphore>,
    pub gather: Gather,
    /// Reads for direct writes.
    pub quick_pool: PgPool,
    pub gauges: Gauges,
    known: Mutex<Known>,
    /// When the collections were last read, for processes that have no loop; held while they are being read.
    refreshed: tokio::sync::Mutex<Instant>,
}

/// What was last found out about the collections.
#[derive(Default)]
struct Known {
    collections: HashMap<String, Arc<Collection>>,
    /// Collections that cannot be served as they are: not attached, triggers off, another's index. Read anew at each tick.
    refused: BTreeMap<String, String>,
    /// Collections whose index could not be asked whose it is. Nothing is written to an index that may be another's.
    unverified: BTreeMap<String, String>,
    /// Collections whose index or view failed a whole batch. Tried with a small one at each tick.
    blocked: BTreeMap<String, String>,
    /// Indices that readers do not see and that may not be written to: gone, or another's.
    withheld: BTreeMap<String, String>,
    /// Collections one of whose indices that readers do not see lags behind. The readers' goes on; no job is satisfied until then.
    lagging: BTreeMap<String, String>,
    /// Collections whose rebuild a worker could not finish.
    tending: BTreeMap<String, String>,
    /// What is due because a mapping file or a view changed. Nothing is held up by it.
    drifted: BTreeMap<String, String>,
    /// Collections whose view or mapping is at fault: over half of the last batch was refused with one error.
    refusing: BTreeMap<String, String>,
    /// Collections whose touches could not be worked on, the last time they were tried. Their other jobs go on.
    touching: BTreeMap<String, String>,
    turns: Turns,
    /// Settings that the configuration has otherwise than the database. Nothing is held up by it.
    unmigrated: BTreeMap<String, String>,
}

/// What became of the batches since somebody last asked, by collection.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Jobs were settled, written, pushed back or buried, or rows touched.
    pub moved: BTreeSet<String>,
    /// Jobs were claimed, and none of that; and why, or nothing.
    pub stood: BTreeMap<String, String>,
}

impl Turns {
    /// Adds those that came later.
    pub fn add(&mut self, later: Turns) {
        self.moved.extend(later.moved);
        self.stood.extend(later.stood);
        self.stood.retain(|name, _| !self.moved.contains(name));
    }
}

impl Catchword {
    /// Opens pool and client. Nothing is sent yet.
    pub fn open(config: Config, environment: &Environment) -> Result<Catchword, Error> {
        let elastic = Elastic::open(&address(&environment.elasticsearch)?)?;
        let size = config.worker.in_flight as u32 + SPARE_CONNECTIONS;
        let inner = Inner {
            prefix: environment.index_prefix.clone(),
            pool: database::pool(&environment.database_url, size)?,
            open_pool: database::open_pool(&environment.database_url, size)?,
            elastic,
            breakers: Breakers::default(),
            pace: Pace::new(config.worker.batch),
            steps: Steps::default(),
            blamed: Blamed::default(),
            direct: Arc::new(Semaphore::new(DIRECT_IN_FLIGHT)),
            gather: Gather::default(),
            quick_pool: database::quick_pool(&environment.database_url, QUICK_CONNECTIONS)?,
            gauges: Gauges::new(),
            known: Mutex::default(),
            refreshed: tokio::sync::Mutex::new(Instant::now()),
            config,
        };
        Ok(Catchword { inner: Arc::new(inner) })
    }

    /// Opens, and refuses what it will not work on: a standby, another version's schema, a collection that is not attached, triggers
    /// that are missing or off, another installation's index. An Elasticsearch that is away is no reason to refuse: writes go on.
    pub async fn connect(config: Config, environment: &Environment) -> Result<Catchword, Error> {
        let catchword = Catchword::open(config, environment)?;
        let mut connection = catchword.inner.pool.acquire().await?;
        collection::refuse_standby(&mut connection).await?;
        migrate::check_version(&mut connection).await?;
        drop(connection);
        catchword.refresh().await?;
        // what is wrong with the canary is no reason to keep an application from starting
        let users = |(name, _): &(&String, &String)| *name != CANARY;
        let refused = catchword.inner.lock().refused.iter().find(users).map(|(name, why)| format!("collection {name}: {why}"));
        match refused {
            Some(sentence) => Err(Error::Refused(sentence)),
            None => Ok(catchword),
        }
    }

    /// Reads the collections, and refuses only if none of them can be served: one that is refused is said, and the others go on.
    pub async fn serve_what_can_be_served(&self) -> Result<(), Error> {
        self.refresh().await?;
        let known = self.inner.lock();
        match known.refused.first_key_value() {
            Some((name, why)) if known.collections.keys().all(|name| name == CANARY) => {
                Err(Error::Refused(format!("collection {name}: {why}")))
            }
            _ => Ok(()),
        }
    }

    /// The pool, for an application that has none of its own. Begin transactions with [`database::begin`].
    #[expect(clippy::misnamed_getters, reason = "the other one is catchword's own: there, the application's names mean nothing")]
    pub fn pool(&self) -> &PgPool {
        &self.inner.open_pool
    }

    /// The client, for an application that searches with the same address and credentials.
    pub fn elastic(&self) -> &Elastic {
        &self.inner.elastic
    }

    /// The configuration it was opened with.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// What stands before every index and alias: `CATCHWORD_INDEX_PREFIX`.
    pub fn prefix(&self) -> &str {
        &self.inner.prefix
    }

    /// The alias that readers of a collection search.
    pub fn readers_alias(&self, collection: &str) -> Option<String> {
        self.inner.lock().collections.get(collection).map(|collection| collection.alias.clone())
    }

    /// Reads the collections anew: targets, pauses, triggers, and whose indices they are. What is wrong is remembered and said; the
    /// other collections go on.
    pub(crate) async fn refresh(&self) -> Result<(), Error> {
        let mut connection = self.inner.pool.acquire().await?;
        let found = Found::load(&mut connection, self.inner.config.served().collect::<Vec<_>>(), &self.inner.prefix).await?;
        drop(connection);
        self.take_in(found).await;
        Ok(())
    }

    /// Takes in how the collections were found: asks whose their indices are, and remembers it all.
    pub(crate) async fn take_in(&self, Found { collections, mut refused, .. }: Found) {
        let mut loaded: Vec<Arc<Collection>> = collections.into_iter().map(Arc::new).collect();
        let (mut unverified, mut withheld) = (BTreeMap::new(), BTreeMap::new());
        for collection in &loaded {
            let Some((readers, others)) = collection.targets.split_first() else {
                unverified.insert(collection.name.clone(), "it has no index yet; run: catchword migrate".into());
                continue;
            };
            // an outage does not make an index another's: what was verified before it stays so
            if let Some(why) = self.why_not_send(collection).await {
                if self.inner.unverified(&collection.name).is_some() || self.inner.collection(&collection.name).is_none() {
                    unverified.insert(collection.name.clone(), why);
                }
                continue;
            }
            for other in others {
                if let Err(error) = self.ownership(other, collection).await {
                    withheld.insert(other.index().to_owned(), error.to_string());
                }
            }
            match self.ownership(readers, collection).await {
                Ok(()) => {}
                Err(elastic::Error::Request { answer, .. }) => {
                    self.inner.breakers.note(&collection.name, &answer);
                    unverified.insert(collection.name.clone(), answer.to_string());
                }
                Err(error) => _ = refused.insert(collection.name.clone(), error.to_string()),
            }
        }
        for collection in &loaded {
            self.inner.note_unmigrated(&collection.name, collection.not_migrated());
        }
        loaded.retain(|collection| !refused.contains_key(&collection.name));
        let mut known = self.inner.lock();
        for (name, why) in &refused {
            if known.refused.get(name) != Some(why) {
                tracing::error!(collection = name, "not served: {why}");
            }
        }
        known.collections = loaded.into_iter().map(|collection| (collection.name.clone(), collection)).collect();
        known.refused = refused;
        known.unverified = unverified;
        known.withheld = withheld;
        let known = &mut *known;
        known.lagging.retain(|name, _| known.collections.get(name).is_some_and(|collection| collection.targets.len() > 1));
    }

    /// Reads the collections anew beside a direct write, if nobody did for a while: a service may have no loop of its own. One at a time.
    pub(crate) fn refresh_in_background(&self, older_than: Duration) {
        // asked before a task is made of it: every direct write comes here
        if self.inner.refreshed.try_lock().is_ok_and(|refreshed| refreshed.elapsed() < older_than) {
            return;
        }
        let catchword = self.clone();
        tokio::spawn(async move {
            if let Ok(mut refreshed) = catchword.inner.refreshed.try_lock()
                && refreshed.elapsed() >= older_than
            {
                if let Err(error) = catchword.refresh().await {
                    tracing::debug!("the collections could not be read anew: {error}");
                }
                *refreshed = Instant::now();
            }
        });
    }

    /// Is this index of the collection ours?
    async fn ownership(&self, target: &Target, collection: &Collection) -> Result<(), elastic::Error> {
        let asked = self.inner.elastic.belongs(target, &collection.targets, &collection.alias, collection.installation);
        tokio::time::timeout(OWNERSHIP, asked).await.unwrap_or_else(|_| {
            let doing = format!("ask whose index {} is", target.index());
            Err(elastic::Error::Request { doing, answer: Answer::Unknown("no answer within 3 s".into()) })
        })
    }

    /// These collections (none: all of the user's), as far as they are served, in the order of the configuration.
    pub(crate) fn loaded(&self, names: &[&str]) -> Vec<Arc<Collection>> {
        let known = self.inner.lock();
        let served = self.inner.config.served().map(|config| config.name.as_str());
        let wanted = served.filter(|name| if names.is_empty() { *name != CANARY } else { names.contains(name) });
        wanted.filter_map(|name| known.collections.get(name).cloned()).collect()
    }
}

impl Inner {
    /// One collection, if it is served.
    pub fn collection(&self, name: &str) -> Option<Arc<Collection>> {
        self.lock().collections.get(name).cloned()
    }

    /// Why a collection is not served at all.
    pub fn refused(&self) -> BTreeMap<String, String> {
        self.lock().refused.clone()
    }

    /// Why nothing may be written to a collection's index yet.
    pub fn unverified(&self, name: &str) -> Option<String> {
        self.lock().unverified.get(name).cloned()
    }

    /// Why a collection is blocked.
    pub fn blocked(&self, name: &str) -> Option<String> {
        self.lock().blocked.get(name).cloned()
    }

    /// Everything that keeps collections from being worked on, for people.
    pub fn troubles(&self) -> BTreeMap<String, String> {
        let known = self.lock();
        let all = known
            .tending
            .iter()
            .chain(&known.lagging)
            .chain(&known.touching)
            .chain(&known.refusing)
            .chain(&known.unverified)
            .chain(&known.blocked)
            .chain(&known.refused);
        all.map(|(name, why)| (name.clone(), why.clone())).collect()
    }

    /// Takes note of what a batch found at fault with its collection, or that nothing is any more. Said when it begins and ends.
    pub fn note_fault(&self, name: &str, blocked: Option<&String>, refusing: Option<&String>) {
        let mut known = self.lock();
        let changed = [
            note(&mut known.blocked, name, blocked).map(|why| ("blocked", why)),
            note(&mut known.refusing, name, refusing).map(|why| ("over half of a batch is refused with one error", why)),
        ];
        for (what, why) in changed.into_iter().flatten() {
            match why {
                Some(why) => tracing::error!(collection = name, "{what}: {why}"),
                None => tracing::info!(collection = name, "no longer: {what}"),
            }
        }
    }

    /// Takes note of why the touches of a collection could not be worked on; none: they could. It is logged when it begins and ends.
    pub fn note_touches(&self, name: &str, why: Option<&String>) {
        match note(&mut self.lock().touching, name, why) {
            Some(Some(why)) => tracing::warn!(collection = name, "changes of related tables wait: {why}"),
            Some(None) => tracing::info!(collection = name, "changes of related tables are worked on again"),
            None => {}
        }
    }

    /// Takes note that nothing of a collection waits: another worker may have done what this one could not.
    pub fn note_quiet(&self, name: &str) {
        self.note_touches(name, None);
        let blocked = self.blocked(name);
        self.note_fault(name, blocked.as_ref(), None);
    }

    /// Takes note of whether a batch moved anything, and why it did not if that is known.
    pub fn note_turn(&self, name: &str, moved: bool, why: Option<&str>) {
        let turns = &mut self.lock().turns;
        if moved {
            turns.stood.remove(name);
            turns.moved.insert(name.to_owned());
        } else if !turns.moved.contains(name) {
            turns.stood.insert(name.to_owned(), why.unwrap_or_default().to_owned());
        }
    }

    /// What became of the batches since this was last asked.
    pub fn take_turns(&self) -> Turns {
        std::mem::take(&mut self.lock().turns)
    }

    /// Is there anything to take?
    pub fn has_turns(&self) -> bool {
        let turns = &self.lock().turns;
        !turns.moved.is_empty() || !turns.stood.is_empty()
    }

    /// May an index that readers do not see be looked at and written to now?
    pub fn admits_beside(&self, target: &Target) -> Result<(), String> {
        if let Some(why) = self.lock().withheld.get(target.index()) {
            return Err(why.clone());
        }
        self.breakers.admits_beside(target.index())
    }

    /// Takes note of how an index that readers do not see answered; none: well. Said when it begins and ends.
    pub fn note_beside(&self, name: &str, target: &Target, failed: Option<Answer>) {
        let withheld = self.lock().withheld.contains_key(target.index());
        // what is closed or gone answers at once: asking it again costs nothing, and nothing else ends that
        if !withheld && !matches!(failed, Some(Answer::Blocked(_))) {
            self.breakers.note_beside(target.index(), failed.as_ref());
        }
        let why = failed.map(|answer| format!("index {target}, which readers do not see, lags behind, so no job settles: {answer}"));
        match note(&mut self.lock().lagging, name, why.as_ref()) {
            Some(Some(why)) => tracing::error!(collection = name, "{why}"),
            Some(None) => tracing::info!(collection = name, "index {target} no longer lags behind"),
            None => {}
        }
    }

    /// Takes note of whether a collection's rebuild could be finished. Said when it begins and ends.
    pub fn note_tending(&self, name: &str, why: Option<String>) {
        match note(&mut self.lock().tending, name, why.as_ref()) {
            Some(Some(why)) => tracing::error!(collection = name, "{why}"),
            Some(None) => tracing::info!(collection = name, "the rebuild went on"),
            None => {}
        }
    }

    /// Takes note of settings that were changed and not migrated. Said when it begins and ends.
    pub fn note_unmigrated(&self, name: &str, differ: Option<String>) {
        match note(&mut self.lock().unmigrated, name, differ.as_ref()) {
            Some(Some(differ)) => tracing::warn!(collection = name, "{differ}"),
            Some(None) => tracing::info!(collection = name, "the database has what the configuration says"),
            None => {}
        }
    }

    /// Takes note of what is due because a mapping file or a view changed. Said when it begins and ends.
    pub fn note_drift(&self, name: &str, due: Option<String>) {
        match note(&mut self.lock().drifted, name, due.as_ref()) {
            Some(Some(due)) => tracing::warn!(collection = name, "{due}"),
            Some(None) => tracing::info!(collection = name, "mapping and view are as the index was filled"),
            None => {}
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The settings as the client takes them.
fn address(settings: &ElasticsearchSettings) -> Result<Address, Error> {
    let credentials = match (&settings.username, &settings.password, &settings.api_key) {
        (_, _, Some(key)) => Credentials::ApiKey(key.expose().to_owned()),
        (Some(username), Some(password), None) => Credentials::Basic { username: username.clone(), password: password.expose().to_owned() },
        _ => Credentials::None,
    };
    let transport = match settings.tls {
        Tls::Verified => Transport::Verified,
        Tls::Insecure => Transport::Insecure,
    };
    Ok(Address::new(&settings.url, credentials, settings.ca_file.clone(), transport)?)
}

/// Remembers or forgets a fault; some, if it began or ended now.
fn note(faults: &mut BTreeMap<String, String>, name: &str, why: Option<&String>) -> Option<Option<String>> {
    match why {
        Some(why) => faults.insert(name.to_owned(), why.clone()).is_none().then(|| Some(why.clone())),
        None => faults.remove(name).map(|_| None),
    }
}

/// How things stand.
impl Catchword {
    /// Reads the state of every configured collection, for `catchword status`. An error is what a person must fix first.
    pub async fn status(&self) -> Result<Status, Error> {
        status::status(&self.inner).await
    }

    /// Reads what can be read within some seconds, and judges it, for `catchword check`. A server that is down or silent is a judgement too.
    pub async fn check(&self) -> check::Report {
        check::check(&self.inner).await
    }

    /// Looks at both sides of a key, for `catchword explain`.
    pub async fn explain(&self, config: &config::Collection, key: &str) -> Result<Explanation, Error> {
        explain::explain(&self.inner, config, key).await
    }

    /// What changed in the mapping file or the view of a collection since its index was filled. It changes nothing.
    pub async fn drift(&self, config: &config::Collection) -> Result<Drift, Error> {
        drift::drift(&self.inner, config).await
    }

    /// Logs what drifted, at a worker's tick.
    pub(crate) async fn note_drift(&self) {
        drift::note(&self.inner).await
    }

    /// Reads for the gauges what only Postgres knows: before each scrape and each export. Takes two seconds at most.
    pub async fn observe(&self) {
        metrics::observe(&self.inner).await
    }
}
