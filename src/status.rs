//! Where things stand, for people and scripts. What cannot be asked is shown as such; it never fails the rest.

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;
use sqlx::PgConnection;

use crate::audit::{self, Verified};
use crate::collection::{self, Collection};
use crate::config::CANARY;
use crate::elastic::Target;
use crate::job::{self, Census};
use crate::printable::printable;
use crate::rebuild::{self, Standing};
use crate::reindex::{self, Unfinished};
use crate::worker::{ABSENT_SECONDS, STILL_SECONDS, WorkerRow, workers};
use crate::{Catchword, Error, config, database, migrate};

/// Elasticsearch is not waited for longer: somebody looks at a screen.
const ELASTICSEARCH: Duration = Duration::from_secs(3);
/// Nor is Postgres. A census of a large queue takes a moment.
const POSTGRES: Duration = Duration::from_secs(8);

/// The state of everything.
#[derive(Debug, Serialize)]
pub struct Status {
    /// Why Postgres could not be asked; then most of the rest is empty.
    pub postgres: Option<String>,
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
    pub census: Option<Census>,
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
    /// A rebuild that is under way, or whose old index is kept.
    pub rebuild: Option<Standing>,
    /// What is due because the mapping file or the view changed since the index was filled.
    pub drift: Option<String>,
    /// Settings that the configuration has otherwise than the database.
    pub unmigrated: Option<String>,
    /// What audits and sentinels say of it.
    pub audit: Option<Verified>,
}

/// What Postgres says of a collection.
struct Known {
    census: Census,
    audit: Option<Verified>,
    loaded: Option<Collection>,
    /// Why it cannot be worked on.
    problem: Option<String>,
}

/// What Postgres says of everything.
#[derive(Default)]
struct InPostgres {
    collections: Vec<Known>,
    workers: Vec<WorkerRow>,
    unserved: Vec<String>,
    reindexes: Vec<Unfinished>,
    rebuilds: Vec<Standing>,
}

impl Catchword {
    /// Reads the state of every configured collection. Both servers are asked at the same time, and one that is away or silent is shown
    /// as such. An error is what a person must mend first: a standby, another version's schema, a wrong password.
    pub async fn status(&self) -> Result<Status, Error> {
        let configs = &self.inner.config.collections;
        let alias = |config: &config::Collection| format!("{}{}", self.inner.prefix, config.index);
        let counting = join_all(configs.iter().map(|config| self.count(alias(config))));
        let drifting = join_all(configs.iter().map(|config| self.due(config)));
        let (counts, drifts, asked) = tokio::join!(counting, drifting, tokio::time::timeout(POSTGRES, self.in_postgres()));
        let (known, away) = match asked {
            Ok(Ok(known)) => (known, None),
            Ok(Err(error)) if error.is_absence() => (InPostgres::default(), Some(error.to_string())),
            Ok(Err(error)) => return Err(error),
            Err(_) => (InPostgres::default(), Some("postgres does not answer within 8 s".into())),
        };
        let mut known_collections = known.collections.into_iter();
        let mut collections = Vec::new();
        for ((config, counted), drift) in configs.iter().zip(counts).zip(drifts) {
            let known_collection = known_collections.next();
            let serving = || known.workers.iter().filter(|worker| worker.is_alive() && worker.collections.contains(&config.name));
            let said = serving().find_map(|worker| worker.blocked.get(&config.name)?.as_str().map(str::to_owned));
            let loaded = known_collection.as_ref().and_then(|known| known.loaded.as_ref());
            let unmigrated = loaded.and_then(Collection::not_migrated);
            collections.push(CollectionStatus {
                name: config.name.clone(),
                paused: loaded.and_then(|c| c.paused.clone()),
                indices: loaded.map(|c| c.targets.iter().map(Target::index).map(str::to_owned).collect()).unwrap_or_default(),
                blocked: known_collection.as_ref().and_then(|known| known.problem.clone()).or(said),
                audit: known_collection.as_ref().and_then(|known| known.audit.clone()),
                census: known_collection.map(|known| known.census),
                alias: alias(config),
                documents: counted.as_ref().ok().copied(),
                uncounted: counted.err(),
                served: serving().next().is_some(),
                rebuild: known.rebuilds.iter().find(|standing| standing.rebuild.collection == config.name).cloned(),
                drift,
                unmigrated,
            });
        }
        Ok(Status { postgres: away, collections, workers: known.workers, unserved: known.unserved, reindexes: known.reindexes })
    }

    async fn in_postgres(&self) -> Result<InPostgres, Error> {
        let connection = &mut database::beside(&self.inner.pool, POSTGRES).await?;
        collection::refuse_standby(connection).await?;
        migrate::check_version(connection).await?;
        let mut known = InPostgres { workers: workers(connection).await?, ..InPostgres::default() };
        for config in &self.inner.config.collections {
            known.collections.push(of_collection(connection, config, &self.inner.prefix).await?);
        }
        let elsewhere = known.workers.iter().filter(|worker| worker.is_alive()).flat_map(|worker| worker.collections.clone());
        // what a canary left when it was switched off concerns nobody
        let ours = self.inner.config.collections.iter().map(|config| config.name.clone()).chain([CANARY.to_owned()]);
        let served: Vec<String> = ours.chain(elsewhere).collect();
        known.unserved = job::unserved(connection, &served).await?;
        known.reindexes = reindex::unfinished(connection, None, None).await?;
        let names: Vec<&str> = self.inner.config.collections.iter().map(|config| config.name.as_str()).collect();
        known.rebuilds = rebuild::standing(connection, &names).await?;
        Ok(known)
    }

    /// What cannot be asked is shown as such elsewhere.
    async fn due(&self, config: &config::Collection) -> Option<String> {
        tokio::time::timeout(ELASTICSEARCH, self.drift(config)).await.ok()?.ok()?.due()
    }

    async fn count(&self, alias: String) -> Result<u64, String> {
        let asked = tokio::time::timeout(ELASTICSEARCH, self.inner.elastic.document_count(&alias)).await;
        match asked {
            Ok(counted) => counted.map_err(|error| error.to_string()),
            Err(_) => Err("elasticsearch does not answer within 3 s".into()),
        }
    }
}

async fn of_collection(connection: &mut PgConnection, config: &config::Collection, prefix: &str) -> Result<Known, Error> {
    let (loaded, refused) = match collection::load(connection, config, prefix).await {
        Ok(loaded) => (Some(loaded), None),
        Err(Error::Refused(why)) => (None, Some(why)),
        Err(error) => return Err(error),
    };
    let problem = collection::problems(connection, config).await?.into_iter().next();
    let problem = refused.or(problem.map(|problem| collection::with_remedy(&problem)));
    let audit = audit::verified(connection, &config.name).await?;
    Ok(Known { census: job::census(connection, &config.name).await?, audit, loaded, problem })
}

impl Status {
    /// Is there nothing that somebody should look at?
    pub fn is_well(&self) -> bool {
        self.postgres.is_none() && self.unserved.is_empty() && self.collections.iter().all(CollectionStatus::is_well)
    }
}

impl CollectionStatus {
    fn is_well(&self) -> bool {
        let Some(census) = &self.census else { return false };
        let forgotten = !self.served && self.paused.is_none() && census.oldest_due_seconds.is_some_and(|age| age > ABSENT_SECONDS);
        let drifted = self.audit.as_ref().is_some_and(|audit| audit.lost.is_some() || audit.mendable() > 0 && audit.scheduled == 0);
        !drifted
            && self.unmigrated.is_none()
            && self.standing_still().is_none()
            && self.blocked.is_none()
            && self.uncounted.is_none()
            && census.dead == 0
            && census.expired == 0
            && !forgotten
    }
}

impl CollectionStatus {
    /// For how long due jobs have not moved, if that is too long.
    fn standing_still(&self) -> Option<f64> {
        let seconds = self.census.as_ref().and_then(|census| census.still_seconds).filter(|seconds| *seconds > STILL_SECONDS);
        seconds.filter(|_| self.paused.is_none())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.postgres {
            writeln!(f, "postgres    could not be asked: {}\n", printable(why))?;
        }
        for (n, collection) in self.collections.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            collection.fmt(f)?;
        }
        writeln!(f)?;
        if self.workers.is_empty() && self.postgres.is_none() {
            writeln!(f, "workers     none is running; start one: catchword worker")?;
        }
        for worker in &self.workers {
            let (seen, served) = (ago(worker.seen_seconds_ago), worker.collections.join(", "));
            let absent = if worker.is_alive() { "" } else { ", absent" };
            writeln!(f, "worker      {} {} serves {served}, seen {seen}{absent}", printable(&worker.host), printable(&worker.version))?;
            if let Some(trouble) = &worker.trouble {
                writeln!(f, "            its last tick failed: {}", printable(trouble))?;
            }
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
        writeln!(f, "{}", self.name)?;
        match &self.census {
            Some(census) => write_census(f, census)?,
            None => writeln!(f, "  jobs      unknown")?,
        }
        if let Some(seconds) = self.standing_still() {
            let why = self
                .census
                .as_ref()
                .and_then(|census| census.still_why.as_deref())
                .or(self.blocked.as_deref())
                .unwrap_or("why is not known");
            writeln!(f, "  still     jobs wait, and none has moved for {}: {}", whole(seconds), printable(why))?;
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
            (None, _) if self.indices.is_empty() => writeln!(f, "  index     none yet; make it: catchword migrate")?,
            (None, why) => writeln!(
                f,
                "  index     {} -> {indices}, an unknown number of documents: {}",
                self.alias,
                printable(why.as_deref().unwrap_or("not asked"))
            )?,
        }
        if let Some(standing) = &self.rebuild {
            writeln!(f, "  rebuild   {standing}")?;
        }
        if let Some(due) = &self.drift {
            writeln!(f, "  drift     {due}")?;
        }
        if let Some(differ) = &self.unmigrated {
            writeln!(f, "  migrate   {differ}")?;
        }
        if let Some(audit) = &self.audit {
            writeln!(f, "  verified  {}", verified(&self.name, audit))?;
            if let Some(lost) = &audit.lost {
                writeln!(f, "  lost      {}; an audit is asked for", printable(lost))?;
            }
        }
        if !self.served && self.census.as_ref().is_some_and(|census| census.due + census.waiting > 0) {
            writeln!(f, "  unserved  no living worker serves it; start one: catchword worker")?;
        }
        Ok(())
    }
}

fn write_census(f: &mut fmt::Formatter<'_>, census: &Census) -> fmt::Result {
    let oldest = match (census.oldest_change_seconds, census.oldest_due_seconds) {
        (Some(seconds), _) => format!(", the oldest change is {} old", whole(seconds)),
        (None, Some(seconds)) => format!(", the first one due {}", ago(seconds)),
        (None, None) => String::new(),
    };
    let counted = |n: i64| if census.estimated && n >= job::CENSUS_LIMIT { format!("about {n}") } else { n.to_string() };
    writeln!(f, "  due       {}{oldest}", counted(census.due))?;
    writeln!(f, "  waiting   {}", counted(census.waiting))?;
    writeln!(f, "  dead      {}", counted(census.dead))?;
    if let (touches @ 1.., Some(seconds)) = (census.failing_touches, census.failing_touch_seconds) {
        let error = census.failing_touch_error.as_deref().unwrap_or("why is not known");
        writeln!(f, "  touches   {} failing, the oldest is {} old: {}", counted(touches), whole(seconds), printable(error))?;
    }
    if census.expired > 0 {
        writeln!(f, "  expired   {}", counted(census.expired))?;
    }
    Ok(())
}

/// Up to when both sides were seen to agree, and what was repaired for it.
fn verified(name: &str, audit: &Verified) -> String {
    let runs = if audit.running { "; an audit runs" } else { "" };
    let Some(at) = audit.verified_up_to else { return format!("never; a worker audits it by itself, or: catchword audit {name}{runs}") };
    let at = at.format("%Y-%m-%d %H:%M UTC");
    let mended = match (audit.mendable(), audit.scheduled) {
        (0, _) => format!("up to {at}"),
        (_, scheduled @ 1..) if audit.healing => format!("up to {at}, {scheduled} scheduled for repair"),
        (_, repaired @ 1..) => format!("up to {at}, {repaired} repaired"),
        (differ, 0) => format!("not: {differ} differed at {at}; repair them: {}", audit.repair(name)),
    };
    let given_up = match audit.given_up() {
        0 => String::new(),
        dead => format!("; {dead} given up: {}", audit.correct(name)),
    };
    format!("{mended}{given_up}{runs}")
}

fn ago(seconds: f64) -> String {
    format!("{} ago", whole(seconds))
}

fn whole(seconds: f64) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(seconds.max(0.0) as u64))
}
