//! What every part works with: pools, a client, the configuration, the collections as they were last read, and their health.

mod collections;
mod probe;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use uuid::Uuid;

use crate::collection::Collection;
use crate::config::{self, CANARY, Config, ElasticsearchSettings, Environment, Tls};
use crate::database::Hosts;
use crate::elastic::{Address, Certificate, Credentials, Elastic, IndexPlan, Target, Transport};
use crate::health::Health;
use crate::{Error, database};

pub(crate) use collections::{load_collections, refresh, refresh_in_background};
pub(crate) use probe::{Asked, index_answers, probe_in_background, why_not_send};

/// Connections for the reads of direct writes that go together: one for each flight that is usual, and some for the impatient.
const QUICK_CONNECTIONS: u32 = 4;
/// Connections beside those of batches: direct writes, health, a raise of the sequence.
const SPARE_CONNECTIONS: u32 = 8;

/// Who reads how things stand less often than this begins with a new connection.
const READINGS: Duration = Duration::from_secs(10);

/// What every part works with.
pub(crate) struct Context {
    pub config: Config,
    /// What stands before every index and alias.
    pub prefix: String,
    pub pool: PgPool,
    /// For the statements of an application: its names are looked up by its own path.
    pub open_pool: PgPool,
    /// Reads for direct writes.
    pub quick_pool: PgPool,
    pub elastic: Elastic,
    pub health: Health,
    hosts: Hosts,
    /// As long as this lives, the pools are kept at the primary of several hosts.
    _follows: Option<DropGuard>,
    /// Is `open_pool` the application's own?
    own_pool: bool,
    known: Mutex<Known>,
    /// Connections of the last readings of how things stand, by their limit, and when they were given back.
    readings: Mutex<HashMap<Duration, (Instant, PgConnection)>>,
    /// When the collections were last read, for processes that have no loop; held while they are being read.
    refreshed: tokio::sync::Mutex<Instant>,
}

/// What was last read of the collections.
#[derive(Default)]
struct Known {
    collections: HashMap<String, Arc<Collection>>,
    /// Indices that readers do not see and that may not be written to: gone, or another's.
    withheld: BTreeMap<String, String>,
}

impl Context {
    /// Opens pools and client. Nothing is sent yet, unless there are several hosts: then the primary is looked for.
    pub fn open(config: Config, environment: &Environment) -> Result<Context, Error> {
        Context::with(config, environment, None)
    }

    /// The same with the application's own pool: its transactions are begun there, and all else goes where the environment says.
    pub fn with_pool(config: Config, environment: &Environment, pool: PgPool) -> Result<Context, Error> {
        Context::with(config, environment, Some(pool))
    }

    fn with(config: Config, environment: &Environment, given: Option<PgPool>) -> Result<Context, Error> {
        let elastic = Elastic::open(&address(&environment.elasticsearch)?)?;
        let hosts = Hosts::of(&environment.database_url)?;
        let own_pool = given.is_some();
        let open_pool = given.unwrap_or_else(|| database::open_pool(&hosts, connections(&config)));
        let (pool, quick_pool) = (database::pool(&hosts, connections(&config)), database::quick_pool(&hosts, QUICK_CONNECTIONS));
        let mut context = Context {
            prefix: environment.index_prefix.clone(),
            pool,
            open_pool,
            quick_pool,
            elastic,
            health: Health::new(&config),
            hosts,
            _follows: None,
            own_pool,
            known: Mutex::default(),
            readings: Mutex::default(),
            refreshed: tokio::sync::Mutex::new(Instant::now()),
            config,
        };
        context._follows = context.hosts.follow(context.pools());
        Ok(context)
    }

    /// Before anything else is asked of Postgres: finds the primary of several hosts, and refuses a pooler that shares sessions.
    pub async fn reach_postgres(&self) -> Result<(), Error> {
        self.hosts.point(&self.pools()).await?;
        if self.own_pool && !database::lead_to_one_database(&self.open_pool, &self.pool).await? {
            return Err(Error::refused_with(
                "the application's pool leads to another database than DATABASE_URL",
                "set DATABASE_URL to the database of the pool",
            ));
        }
        Ok(())
    }

    /// The connection that was given back with this limit, if that was a moment ago.
    pub fn last_reading(&self, limit: Duration) -> Option<PgConnection> {
        let kept = self.readings.lock().unwrap_or_else(PoisonError::into_inner).remove(&limit);
        kept.filter(|(at, _)| at.elapsed() < READINGS).map(|(_, connection)| connection)
    }

    /// For the next reading. Only one that was read to its end: whatever else it may be in the middle of is nobody's to find.
    pub fn give_back(&self, connection: PgConnection, limit: Duration) {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner).insert(limit, (Instant::now(), connection));
    }

    /// Those that lead where the environment says.
    fn pools(&self) -> Vec<PgPool> {
        let open = (!self.own_pool).then(|| self.open_pool.clone());
        [self.pool.clone(), self.quick_pool.clone()].into_iter().chain(open).collect()
    }

    /// One collection, if it is served.
    pub fn collection(&self, name: &str) -> Option<Arc<Collection>> {
        self.known().collections.get(name).cloned()
    }

    /// These collections (none: all of the user's), as far as they are served, in the order of the configuration.
    pub fn collections(&self, names: &[&str]) -> Vec<Arc<Collection>> {
        let known = self.known();
        let served = self.config.served().map(|config| config.name.as_str());
        let wanted = served.filter(|name| if names.is_empty() { *name != CANARY } else { names.contains(name) });
        wanted.filter_map(|name| known.collections.get(name).cloned()).collect()
    }

    /// Why an index that readers do not see may not be written to; none: it may.
    pub fn withheld(&self, target: &Target) -> Option<String> {
        self.known().withheld.get(target.index()).cloned()
    }

    /// May an index that readers do not see be looked at and written to now?
    pub fn admits_hidden_index(&self, target: &Target) -> Result<(), String> {
        match self.withheld(target) {
            Some(why) => Err(why),
            None => self.health.breakers.admits_beside(target.index()),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of a collection as it would be created.
pub(crate) fn index_plan(context: &Context, config: &config::Collection, installation: Uuid) -> Result<IndexPlan, Error> {
    Ok(IndexPlan {
        alias: format!("{}{}", context.prefix, config.index),
        search_alias: config.search_alias.as_ref().map(|alias| format!("{}{alias}", context.prefix)),
        mapping: config.mapping_json()?,
        installation,
        collection: config.name.clone(),
    })
}

/// Those of batches, and some beside them. None is opened before it is needed.
fn connections(config: &Config) -> u32 {
    config.worker.in_flight as u32 + SPARE_CONNECTIONS
}

/// The settings as the client takes them.
fn address(settings: &ElasticsearchSettings) -> Result<Address, Error> {
    let credentials = match (&settings.username, &settings.password) {
        (Some(username), Some(password)) => Credentials::Basic { username: username.clone(), password: password.expose().to_owned() },
        _ => match (&settings.api_key, &settings.bearer_token) {
            (Some(key), _) => Credentials::ApiKey(key.expose().to_owned()),
            (None, Some(token)) => Credentials::Bearer(token.expose().to_owned()),
            (None, None) => Credentials::None,
        },
    };
    let transport = match settings.tls {
        Tls::Verified => Transport::Verified,
        Tls::Insecure => Transport::Insecure,
    };
    let certificate = settings.client_cert_file.clone().zip(settings.client_key_file.clone());
    let certificate = certificate.map(|(certificate, key)| Certificate { certificate, key });
    let address = Address::of_nodes(settings.urls(), credentials, settings.ca_file.clone(), transport)?;
    Ok(Address { certificate, ..address })
}
