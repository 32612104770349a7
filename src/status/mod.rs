//! How things stand, for people and scripts. What cannot be asked is shown as such; it never fails the rest.

mod print;

use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;
use tokio::time::{Instant, timeout};

use crate::Error;
use crate::audit::Verified;
use crate::collection::Collection;
use crate::context::Context;
use crate::elastic::Target;
use crate::heartbeat::{ABSENT_SECONDS, WorkerRow};
use crate::job::Census;
use crate::pause::Pause;
use crate::rebuild::UnderWay;
use crate::reindex::Progress;
use crate::standing::{self, CollectionStanding, ELASTICSEARCH, Standing, Topic};

pub(crate) use print::UNKNOWN;

/// Postgres is not waited for longer: somebody looks at a screen, and a census of a large queue takes a moment.
const POSTGRES: Duration = Duration::from_secs(8);

/// What is read.
const TOPICS: [Topic; 8] =
    [Topic::Workers, Topic::Attached, Topic::Audits, Topic::Census, Topic::Pauses, Topic::Unserved, Topic::Reindexes, Topic::Rebuilds];

/// The state of everything.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Why Postgres could not be asked; then most of the rest is empty.
    pub postgres: Option<String>,
    pub collections: Vec<CollectionStatus>,
    pub workers: Vec<WorkerRow>,
    /// Collections that have jobs, are not in this configuration, and are served by no living worker.
    pub unserved: Vec<String>,
    /// Reindexes that are not over.
    pub reindexes: Vec<Progress>,
}

/// The state of one collection.
#[derive(Clone, Debug, Serialize)]
pub struct CollectionStatus {
    pub name: String,
    #[serde(flatten)]
    pub census: Option<Census>,
    pub paused: Option<String>,
    /// Why it cannot be worked on: found now, or said by a worker.
    pub blocked: Option<String>,
    /// For how long due jobs have not moved, if that is too long.
    #[serde(skip)]
    pub stands_still_for: Option<f64>,
    pub alias: String,
    pub indices: Vec<String>,
    /// What readers see.
    pub documents: Option<u64>,
    /// Why Elasticsearch did not say how many documents there are.
    pub uncounted: Option<String>,
    /// Is there a living worker for it?
    pub served: bool,
    /// A rebuild that is under way, or whose old index is kept.
    pub rebuild: Option<UnderWay>,
    /// What is due because the mapping file or the view changed since the index was filled.
    pub drift: Option<String>,
    /// Why it is not found under its search alias, or not alone. It is worked on all the same.
    pub not_shown: Option<String>,
    /// Settings that the configuration has otherwise than the database.
    pub unmigrated: Option<String>,
    /// What audits and sentinels say of it.
    pub audit: Option<Verified>,
}

/// Reads the state of every configured collection. Both servers are asked at the same time, and one that is down or silent is shown
/// as such. An error is what a person must fix first: a standby, another version's schema, a wrong password.
pub(crate) async fn status(context: &Context) -> Result<Status, Error> {
    let started = Instant::now();
    let aliases: Vec<String> = context.config.collections.iter().map(|config| format!("{}{}", context.prefix, config.index)).collect();
    let counting = join_all(aliases.iter().map(|alias| standing::document_count(context, alias)));
    let (counts, read) = tokio::join!(counting, timeout(POSTGRES, read(context)));
    let unread = || Standing::of(&context.config.collections);
    let (mut standing, down) = match read {
        Ok(Ok(standing)) => (standing, None),
        Ok(Err(error)) if error.is_absence() => (unread(), Some(error.to_string())),
        Ok(Err(error)) => return Err(error),
        Err(_) => (unread(), Some("postgres does not answer within 8 s".into())),
    };
    // what a slow Postgres took is not taken once more
    standing.read_drift(context, ELASTICSEARCH.min(POSTGRES.saturating_sub(started.elapsed()))).await;
    let counted = standing.collections.iter().zip(aliases).zip(counts);
    let collections = counted.map(|((collection, alias), count)| CollectionStatus::of(&standing, collection, alias, count)).collect();
    let Standing { workers, unserved, reindexes, .. } = standing;
    Ok(Status { postgres: down, collections, workers, unserved, reindexes })
}

async fn read(context: &Context) -> Result<Standing, Error> {
    let mut connection = standing::connect(context, POSTGRES).await?;
    let mut standing = Standing::of(&context.config.collections);
    for topic in TOPICS {
        standing.read(context, &mut connection, topic).await?;
    }
    context.give_back(connection, POSTGRES);
    Ok(standing)
}

impl Status {
    /// The same for somebody who may know of these collections only; none: of all.
    pub fn only(&self, seen: Option<&[String]>) -> Status {
        let Some(seen) = seen else { return self.clone() };
        let mut status = self.clone();
        status.collections.retain(|collection| seen.contains(&collection.name));
        status.unserved.retain(|name| seen.contains(name));
        status.reindexes.retain(|reindex| seen.contains(&reindex.collection));
        status.workers.iter_mut().for_each(|worker| worker.only(seen));
        status
    }

    /// Is there nothing that somebody should look at?
    pub fn is_well(&self) -> bool {
        self.postgres.is_none() && self.unserved.is_empty() && self.collections.iter().all(CollectionStatus::is_well)
    }
}

impl CollectionStatus {
    fn of(standing: &Standing, collection: &CollectionStanding, alias: String, count: Result<u64, String>) -> CollectionStatus {
        let attached = collection.attached.as_ref();
        let indices = |attached: &Collection| attached.targets.iter().map(Target::index).map(str::to_owned).collect();
        CollectionStatus {
            name: collection.name.clone(),
            census: collection.census.clone(),
            paused: collection.paused.as_ref().map(Pause::since_when_and_why),
            blocked: standing.why_blocked(collection).map(str::to_owned),
            stands_still_for: collection.stands_still_for(),
            alias,
            indices: attached.map(indices).unwrap_or_default(),
            documents: count.as_ref().ok().copied(),
            uncounted: count.err(),
            served: !standing.serving(&collection.name).is_empty(),
            rebuild: collection.rebuild.clone(),
            drift: collection.drift.as_ref().map(ToString::to_string),
            not_shown: collection.not_shown.clone(),
            unmigrated: attached.and_then(Collection::not_migrated),
            audit: collection.audit.clone(),
        }
    }

    fn is_well(&self) -> bool {
        let Some(census) = &self.census else { return false };
        let forgotten = !self.served && self.paused.is_none() && census.oldest_due_seconds.is_some_and(|age| age > ABSENT_SECONDS);
        let differs = self.audit.as_ref().is_some_and(|audit| audit.lost.is_some() || audit.repairable() > 0 && audit.scheduled == 0);
        !differs
            && self.unmigrated.is_none()
            && self.not_shown.is_none()
            && self.stands_still_for.is_none()
            && self.blocked.is_none()
            && self.uncounted.is_none()
            && census.dead == 0
            && census.expired == 0
            && !forgotten
    }
}
