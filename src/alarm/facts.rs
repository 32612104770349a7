//! What the judgements are made of, read within some seconds.

use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::freshness::{Seen, seen};
use super::held_back::{HeldBack, held_back};
use super::thresholds::LATELY_SECONDS;
use crate::audit::{Verified, verified};
use crate::collection::{self, Collection};
use crate::config::CANARY;
use crate::job::{self, Census, Letters};
use crate::worker::{WorkerRow, workers};
use crate::{Catchword, Error, config, database, migrate};

/// Neither server is waited for longer: cron and Nagios give up after ten.
const POSTGRES: Duration = Duration::from_secs(4);
const ELASTICSEARCH: Duration = Duration::from_secs(3);

/// Everything that is judged.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub collections: Vec<CollectionFacts>,
    /// The workers of the last day.
    pub workers: Vec<WorkerRow>,
    /// Collections that have jobs and are neither configured here nor served by a living worker.
    pub unserved: Vec<String>,
    pub held_back: Vec<HeldBack>,
    /// The changes that looks have seen lately, by collection and window.
    pub seen: Vec<Seen>,
    /// How long ago the canary was last changed; none: there is none, or it is paused.
    pub canary_seconds: Option<f64>,
    /// Why Elasticsearch does not answer; none: it does.
    pub elasticsearch: Option<String>,
}

/// The facts of one collection.
#[derive(Clone, Debug)]
pub struct CollectionFacts {
    pub name: String,
    pub census: Census,
    pub letters: Letters,
    /// For how long it has been paused, and by whom and why.
    pub paused: Option<(f64, String)>,
    /// Why it cannot be worked on, found just now.
    pub blocked: Option<String>,
    /// What audits and sentinels say of it; none: it is not attached.
    pub verified: Option<Verified>,
    /// How long ago all of it was compared, or else attached.
    pub unaudited_seconds: f64,
}

#[derive(FromRow)]
struct Standing {
    paused_seconds: Option<f64>,
    paused_why: Option<String>,
    unaudited_seconds: Option<f64>,
}

impl Catchword {
    /// The facts; or why Postgres could not be asked, and Elasticsearch's part.
    pub(super) async fn facts(&self) -> Result<Facts, (String, Option<String>)> {
        let postgres = async {
            let asked = tokio::time::timeout(POSTGRES, self.read_postgres()).await;
            asked.map_or_else(|_| Err("postgres does not answer within 4 s".into()), |read| read.map_err(|error| error.to_string()))
        };
        let elasticsearch = async {
            let asked = tokio::time::timeout(ELASTICSEARCH, self.inner.elastic.version()).await;
            asked.map_or_else(|_| Some("it does not answer within 3 s".into()), |answered| answered.err().map(|error| error.to_string()))
        };
        let (postgres, elasticsearch) = tokio::join!(postgres, elasticsearch);
        let (mut facts, loaded, installation) = postgres.map_err(|why| (why, elasticsearch.clone()))?;
        if elasticsearch.is_none() {
            let asked = loaded.iter().map(|collection| self.index_trouble(collection, installation));
            for (facts, trouble) in facts.collections.iter_mut().zip(join_all(asked).await) {
                facts.blocked = facts.blocked.take().or(trouble);
            }
        }
        facts.elasticsearch = elasticsearch;
        Ok(facts)
    }

    async fn read_postgres(&self) -> Result<(Facts, Vec<Option<Collection>>, Uuid), Error> {
        let connection = &mut database::beside(&self.inner.pool, POSTGRES).await?;
        collection::refuse_standby(connection).await?;
        migrate::check_version(connection).await?;
        let (workers, held_back, seen) = (workers(connection).await?, held_back(connection).await?, seen(connection).await?);
        let mut facts = Facts { workers, held_back, seen, ..Facts::default() };
        if self.inner.config.worker.canary {
            facts.canary_seconds = sqlx::query_scalar(include_str!("canary.sql")).bind(CANARY).fetch_optional(&mut *connection).await?;
        }
        let mut loaded = Vec::new();
        for config in &self.inner.config.collections {
            let (found, collection) = of_collection(connection, config, &self.inner.prefix).await?;
            facts.collections.push(found);
            loaded.push(collection);
        }
        let living = facts.workers.iter().filter(|worker| worker.is_alive()).flat_map(|worker| worker.collections.clone());
        // what a canary left when it was switched off concerns nobody
        let ours = facts.collections.iter().map(|found| found.name.clone()).chain([CANARY.to_owned()]);
        let served: Vec<String> = ours.chain(living).collect();
        facts.unserved = job::unserved(connection, &served).await?;
        let installation = collection::installation(connection).await?;
        Ok((facts, loaded, installation))
    }

    /// What is wrong with the collection's indices and aliases, asked for now: a worker may have stopped before it could say so.
    async fn index_trouble(&self, collection: &Option<Collection>, installation: Uuid) -> Option<String> {
        let collection = collection.as_ref()?;
        for target in &collection.targets {
            let asked = self.inner.elastic.belongs(target, &collection.targets, &collection.alias, installation);
            match tokio::time::timeout(ELASTICSEARCH, asked).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Some(error.to_string()),
                Err(_) => return Some(format!("elasticsearch does not say within 3 s whose index {} is", target.index())),
            }
        }
        collection.targets.is_empty().then(|| "it has no index yet: run `catchword migrate`".into())
    }
}

async fn of_collection(
    connection: &mut PgConnection,
    config: &config::Collection,
    prefix: &str,
) -> Result<(CollectionFacts, Option<Collection>), Error> {
    let name = &config.name;
    let loaded = match collection::load(connection, config, prefix).await {
        Ok(loaded) => loaded.check_targets().map(|()| loaded),
        Err(error) => Err(error),
    };
    let (loaded, refused) = match loaded {
        Ok(loaded) => (Some(loaded), None),
        Err(Error::Refused(why)) => (None, Some(why)),
        Err(error) => return Err(error),
    };
    let problem = collection::problems(connection, config).await?.into_iter().next();
    let standing: Standing = sqlx::query_as(include_str!("standing.sql")).bind(name).fetch_one(&mut *connection).await?;
    let facts = CollectionFacts {
        name: name.clone(),
        census: job::census(connection, name).await?,
        letters: job::letters(connection, name, LATELY_SECONDS).await?,
        paused: standing.paused_seconds.map(|seconds| (seconds, standing.paused_why.unwrap_or_default())),
        blocked: refused.or(problem.map(|problem| format!("{problem}: run `catchword migrate`"))),
        verified: verified(connection, name).await?,
        unaudited_seconds: standing.unaudited_seconds.unwrap_or(0.0),
    };
    Ok((facts, loaded))
}
