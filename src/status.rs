//! Where things stand, for people and scripts. What cannot be asked is shown as such; it never fails the rest.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::collection;
use crate::elastic::Target;
use crate::job::{self, CENSUS_LIMIT, Census};
use crate::sync::{WorkerRow, workers};
use crate::{Catchword, Error};

/// Elasticsearch is not waited for longer: somebody looks at a screen.
const PATIENCE: Duration = Duration::from_secs(3);
/// A worker that was not seen for longer than two ticks is worth a word.
const ABSENT_SECONDS: f64 = 150.0;

/// The state of everything.
#[derive(Debug, Serialize)]
pub struct Status {
    pub collections: Vec<CollectionStatus>,
    pub workers: Vec<WorkerRow>,
    /// Collections that have jobs and are not in this configuration.
    pub unserved: Vec<String>,
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
    /// What readers see; absent: Elasticsearch did not say.
    pub documents: Option<u64>,
    /// Is there a living worker for it?
    pub served: bool,
}

impl Catchword {
    /// Reads the state of every configured collection.
    pub async fn status(&self) -> Result<Status, Error> {
        let mut connection = self.inner.pool.acquire().await?;
        let workers = workers(&mut connection).await?;
        let mut collections = Vec::new();
        for config in &self.inner.config.collections {
            let loaded = collection::load(&mut connection, config, &self.inner.prefix).await;
            let problem = collection::problems(&mut connection, &config.name).await?.into_iter().next();
            let (loaded, refused) = match loaded {
                Ok(loaded) => (Some(loaded), None),
                Err(Error::Refused(why)) => (None, Some(why)),
                Err(error) => return Err(error),
            };
            let alias = format!("{}{}", self.inner.prefix, config.index);
            let asked = tokio::time::timeout(PATIENCE, self.inner.elastic.document_count(&alias)).await;
            let (documents, unasked) = match asked {
                Ok(Ok(count)) => (Some(count), None),
                Ok(Err(error)) => (None, Some(error.to_string())),
                Err(_) => (None, Some("elasticsearch does not answer".into())),
            };
            let living = |w: &&WorkerRow| w.collections.contains(&config.name) && w.seen_seconds_ago < ABSENT_SECONDS;
            let said = workers
                .iter()
                .filter(living)
                .find_map(|w| w.blocked.get(&config.name)?.as_str().map(str::to_owned));
            collections.push(CollectionStatus {
                name: config.name.clone(),
                census: job::census(&mut connection, &config.name).await?,
                paused: loaded.as_ref().and_then(|c| c.paused.clone()),
                indices: loaded
                    .map(|c| c.targets.iter().map(Target::index).map(str::to_owned).collect())
                    .unwrap_or_default(),
                blocked: refused.or(problem).or(said).or(unasked),
                alias,
                documents,
                served: workers.iter().any(|w| living(&w)),
            });
        }
        let configured: Vec<String> = self.inner.config.collections.iter().map(|c| c.name.clone()).collect();
        Ok(Status {
            collections,
            workers,
            unserved: job::unserved(&mut connection, &configured).await?,
        })
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
            let absent = if worker.seen_seconds_ago < ABSENT_SECONDS { "" } else { ", absent" };
            writeln!(
                f,
                "worker      {} {} serves {served}, seen {seen}{absent}",
                worker.host, worker.version
            )?;
            if worker.breaker != "closed" {
                writeln!(f, "            leaves elasticsearch alone for now: {}", worker.breaker)?;
            }
        }
        for collection in &self.unserved {
            writeln!(
                f,
                "unserved    {collection} has jobs and is not in this configuration: they stay until somebody serves it"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for CollectionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let oldest = self
            .census
            .oldest_due_seconds
            .map_or(String::new(), |seconds| format!(", the first one due {}", ago(seconds)));
        writeln!(f, "{}", self.name)?;
        writeln!(f, "  due       {}{oldest}", counted(self.census.due))?;
        writeln!(f, "  waiting   {}", counted(self.census.waiting))?;
        writeln!(f, "  dead      {}", counted(self.census.dead))?;
        if self.census.expired > 0 {
            writeln!(f, "  expired   {}", counted(self.census.expired))?;
        }
        if let Some(why) = &self.paused {
            writeln!(f, "  paused    {why}")?;
        }
        if let Some(why) = &self.blocked {
            writeln!(f, "  blocked   {why}")?;
        }
        let documents = self.documents.map_or("unknown".into(), |n| n.to_string());
        writeln!(
            f,
            "  index     {} -> {}, {documents} documents",
            self.alias,
            self.indices.join(", ")
        )?;
        if !self.served && self.census.due + self.census.waiting > 0 {
            writeln!(f, "  unserved  no living worker serves it; start one: catchword worker")?;
        }
        Ok(())
    }
}

fn counted(n: i64) -> String {
    if n >= CENSUS_LIMIT { format!("{n} or more") } else { n.to_string() }
}

fn ago(seconds: f64) -> String {
    let whole = Duration::from_secs(seconds.max(0.0) as u64);
    format!("{} ago", humantime::format_duration(whole))
}
