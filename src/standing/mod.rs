//! How things stand. It is read here once, and then printed by `status`, judged by `check` and shown by the metrics.
//!
//! Each of these names the topics that it needs, and nothing else is read: a scrape comes every few seconds, and must cost little.

mod freshness;
mod indices;
mod read;
mod vacuum;

use crate::audit::Verified;
use crate::collection::Collection;
use crate::drift::Due;
use crate::heartbeat::{STILL_SECONDS, WorkerRow};
use crate::job::{Census, Letters, Storage};
use crate::pause::Pause;
use crate::rebuild::UnderWay;
use crate::reindex::Progress;

pub(crate) use freshness::{BURN_FAST_LONG_SECONDS, BURN_FAST_SHORT_SECONDS, BURN_SLOW_LONG_SECONDS, BURN_SLOW_SHORT_SECONDS, Seen};
pub(crate) use indices::{ELASTICSEARCH, document_count, why_silent};
pub(crate) use read::connect;
pub(crate) use vacuum::Holder;

/// What can be read, one statement or one for each collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Workers,
    Attached,
    Census,
    Letters,
    Pauses,
    Audits,
    Unaudited,
    Rebuilds,
    Reindexes,
    /// After the workers: what one of them serves is served.
    Unserved,
    Vacuum,
    Freshness,
    Canary,
    Storage,
}

impl Topic {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Topic::Workers => "the workers",
            Topic::Attached => "how the collections are attached",
            Topic::Census => "how many jobs there are",
            Topic::Letters => "the dead letters",
            Topic::Pauses => "what is paused",
            Topic::Audits => "the audits",
            Topic::Unaudited => "when all was last compared",
            Topic::Rebuilds => "the rebuilds",
            Topic::Reindexes => "the reindexes",
            Topic::Unserved => "jobs that nobody serves",
            Topic::Vacuum => "who holds vacuum back",
            Topic::Freshness => "how fresh search was",
            Topic::Canary => "the canary",
            Topic::Storage => "the size of the queue",
        }
    }
}

/// How things stand, as far as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub collections: Vec<CollectionStanding>,
    /// The workers of the last day.
    pub workers: Vec<WorkerRow>,
    /// Collections that have jobs, and are neither asked about here nor served by a living worker.
    pub unserved: Vec<String>,
    /// Reindexes that are not over.
    pub reindexes: Vec<Progress>,
    /// Who holds vacuum back.
    pub holders: Vec<Holder>,
    /// The changes that looks have seen lately, by collection and window.
    pub seen: Vec<Seen>,
    /// How long ago the canary was last changed; none: there is none, or it is paused.
    pub canary_seconds: Option<f64>,
    /// How the queue lies on disk.
    pub storage: Option<Storage>,
    /// Why Elasticsearch does not answer; none: it does, or was not asked.
    pub elasticsearch: Option<String>,
    /// What was read. An empty list of something else means nothing.
    pub known: Vec<Topic>,
    /// What Postgres refused to tell, and why.
    pub refused: Vec<(Topic, String)>,
}

/// How one collection stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct CollectionStanding {
    pub name: String,
    /// As it is attached; none: it is not, or that was not read.
    pub attached: Option<Collection>,
    /// Why it cannot be worked on, found just now.
    pub problem: Option<String>,
    pub census: Option<Census>,
    pub letters: Option<Letters>,
    pub paused: Option<Pause>,
    /// What audits and sentinels say of it; none: it is not attached, or that was not read.
    pub audit: Option<Verified>,
    /// How long ago all of it was compared, or else attached.
    pub unaudited_seconds: Option<f64>,
    /// A rebuild that is under way, or whose old index is kept.
    pub rebuild: Option<UnderWay>,
    /// What is due because the mapping file or the view changed since the index was filled.
    pub drift: Option<Due>,
    /// Why readers who search it together with others miss it, or find what is not its own. It is worked on all the same.
    pub not_shown: Option<String>,
}

impl Standing {
    /// Was this read?
    pub fn knows(&self, topic: Topic) -> bool {
        self.known.contains(&topic)
    }

    /// The workers that showed themselves lately.
    pub fn living(&self) -> impl Iterator<Item = &WorkerRow> {
        self.workers.iter().filter(|worker| worker.is_alive())
    }

    /// The living workers of a collection.
    pub fn serving(&self, collection: &str) -> Vec<&WorkerRow> {
        self.living().filter(|worker| worker.collections.iter().any(|served| served == collection)).collect()
    }

    /// Why a collection cannot be worked on. What is found now outweighs what a worker said at its last tick.
    pub fn why_blocked<'s>(&'s self, collection: &'s CollectionStanding) -> Option<&'s str> {
        let said = || self.serving(&collection.name).into_iter().find_map(|worker| worker.blocked.get(&collection.name)?.as_str());
        collection.problem.as_deref().or_else(said)
    }
}

impl CollectionStanding {
    /// For how long jobs have been due of which none has moved, if that is too long. While it is paused nothing is meant to move.
    pub fn stands_still_for(&self) -> Option<f64> {
        let seconds = self.census.as_ref()?.still_seconds.filter(|seconds| *seconds > STILL_SECONDS)?;
        self.paused.is_none().then_some(seconds)
    }
}
