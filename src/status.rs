//! Where things stand, for people and scripts. What cannot be asked is shown as such; it never fails the rest.

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;

use crate::collection;
use crate::elastic::Target;
use crate::job::{self, Census};
use crate::printable::printable;
use crate::reindex::{self, Unfinished};
use crate::sync::{WorkerRow, workers};
use crate::{Catchword, Error, config};

/// Elasticsearch is not waited for longer: somebody looks at a screen.
const PATIENCE: Duration = Duration::from_secs(3);
/// A worker that was not seen for longer than two ticks is worth a word.
const ABSENT_SECONDS: f64 = 150.0;

/// The state of everything.
#[derive(Debug, Serialize)]
pub struct Status {
    pub collections: Vec<CollectionStatus>,
    pub workers: Vec<WorkerRow>,
    /// Collections that have jobs, are not in this configuration, and are served by no living worker.
    pub unserved: Vec<String>,
    /// Reindexes that run, or were cut short.
    pub reindexes: Vec<Unfinished>,
}

/// The state of one collection.
#[derive(Debug, Serialize)]
pub struct CollectionStatus {
    pub name: String,
    #[serde(flatten)]
    pub census: Census,
    pub paused: Option<String>,
    /// Why it cannot be worked on: found now, or said by a worker.
    pub blocked: Option<String>,
    pub alias: String,
    pub indices: Vec<String>,
    /// What readers see.
    pub documents: Option<u64>,
    /// Why Elasticsearch did not say how many documents there are.
    pub uncounted: Option<String>,
    /// Is there a living worker for it?
    pub served: bool,
}

impl Catchword {
    /// Reads the state of every configured collection. Elasticsearch is asked first and for all at once, so that no connection to
    /// Postgres waits for it.
    pub async fn status(&self) -> Result<Status, Error> {
        let configs = &self.inner.config.collections;
        let alias = |config: &config::Collection| format!("{}{}", self.inner.prefix, config.index);
        let counts = join_all(configs.iter().map(|config| self.count(alias(config)))).await;
        let mut connection = self.inner.pool.acquire().await?;
        let workers = workers(&mut connection).await?;
        let mut collections = Vec::new();
        for (config, counted) in configs.iter().zip(counts) {
            let (loaded, refused) = match collection::load(&mut connection, config, &self.inner.prefix).await {
                Ok(loaded) => (Some(loaded), None),
                Err(Error::Refused(why)) => (None, Some(why)),
                Err(error) => return Err(error),
            };
            let problem = collection::problems(&mut connection, config).await?.into_iter().next();
            let serving = || workers.iter().filter(|worker| is_alive(worker) && worker.collections.contains(&config.name));
            let said = serving().find_map(|worker| worker.blocked.get(&config.name)?.as_str().map(str::to_owned));
            collections.push(CollectionStatus {
                name: config.name.clone(),
                census: job::census(&mut connection, &config.name).await?,
                paused: loaded.as_ref().and_then(|c| c.paused.clone()),
                indices: loaded.map(|c| c.targets.iter().map(Target::index).map(str::to_owned).collect()).unwrap_or_default(),
                blocked: refused.or(problem.map(|problem| format!("{problem}; run: catchword migrate"))).or(said),
                alias: alias(config),
                documents: counted.as_ref().ok().copied(),
                uncounted: counted.err(),
                served: serving().next().is_some(),
            });
        }
        let known = configs.iter().map(|config| &config.name);
        let elsewhere = workers.iter().filter(|worker| is_alive(worker)).flat_map(|worker| &worker.collections);
        let served: Vec<String> = known.chain(elsewhere).cloned().collect();
        Ok(Status {
            unserved: job::unserved(&mut connection, &served).await?,
            reindexes: reindex::unfinished(&mut connection, None, None).await?,
            collections,
            workers,
        })
    }

    async fn count(&self, alias: String) -> Result<u64, String> {
        let asked = tokio::time::timeout(PATIENCE, self.inner.elastic.document_count(&alias)).await;
        match asked {
            Ok(counted) => counted.map_err(|error| error.to_string()),
            Err(_) => Err("elasticsearch does not answer within 3 s".into()),
        }
    }
}

fn is_alive(worker: &WorkerRow) -> bool {
    worker.seen_seconds_ago < ABSENT_SECONDS
}

impl Status {
    /// Is there nothing that somebody should look at?
    pub fn is_well(&self) -> bool {
        self.unserved.is_empty() && self.collections.iter().all(CollectionStatus::is_well)
    }
}

impl CollectionStatus {
    fn counted(&self, n: i64) -> String {
        if self.census.estimated && n >= job::CENSUS_LIMIT { format!("about {n}") } else { n.to_string() }
    }

    fn is_well(&self) -> bool {
        let forgotten = !self.served && self.paused.is_none() && self.census.oldest_due_seconds.is_some_and(|age| age > ABSENT_SECONDS);
        self.blocked.is_none() && self.uncounted.is_none() && self.census.dead == 0 && self.census.expired == 0 && !forgotten
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, collection) in self.collections.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            collection.fmt(f)?;
        }
        writeln!(f)?;
        if self.workers.is_empty() {
            writeln!(f, "workers     none seen in the last day; start one: catchword worker")?;
        }
        for worker in &self.workers {
            let (seen, served) = (ago(worker.seen_seconds_ago), worker.collections.join(", "));
            let absent = if is_alive(worker) { "" } else { ", absent" };
            writeln!(f, "worker      {} {} serves {served}, seen {seen}{absent}", printable(&worker.host), printable(&worker.version))?;
            if worker.breaker != "closed" {
                writeln!(f, "            leaves elasticsearch alone for now: {}", printable(&worker.breaker))?;
            }
        }
        for reindex in &self.reindexes {
            writeln!(f, "unfinished  {reindex}: it runs, or was cut short; go on with: catchword reindex --resume {}", reindex.id)?;
        }
        for collection in &self.unserved {
            writeln!(
                f,
                "unserved    {} has jobs, is not in this configuration, and no worker serves it: they stay until somebody does",
                printable(collection)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for CollectionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let oldest = self.census.oldest_due_seconds.map_or(String::new(), |seconds| format!(", the first one due {}", ago(seconds)));
        writeln!(f, "{}", self.name)?;
        writeln!(f, "  due       {}{oldest}", self.counted(self.census.due))?;
        writeln!(f, "  waiting   {}", self.counted(self.census.waiting))?;
        writeln!(f, "  dead      {}", self.counted(self.census.dead))?;
        if self.census.expired > 0 {
            writeln!(f, "  expired   {}", self.counted(self.census.expired))?;
        }
        if let Some(why) = &self.paused {
            writeln!(f, "  paused    {}", printable(why))?;
        }
        if let Some(why) = &self.blocked {
            writeln!(f, "  blocked   {}", printable(why))?;
        }
        let indices = self.indices.join(", ");
        match (self.documents, &self.uncounted) {
            (Some(documents), _) => writeln!(f, "  index     {} -> {indices}, {documents} documents", self.alias)?,
            (None, why) => writeln!(
                f,
                "  index     {} -> {indices}, an unknown number of documents: {}",
                self.alias,
                printable(why.as_deref().unwrap_or("not asked"))
            )?,
        }
        if !self.served && self.census.due + self.census.waiting > 0 {
            writeln!(f, "  unserved  no living worker serves it; start one: catchword worker")?;
        }
        Ok(())
    }
}

fn ago(seconds: f64) -> String {
    let whole = Duration::from_secs(seconds.max(0.0) as u64);
    format!("{} ago", humantime::format_duration(whole))
}
