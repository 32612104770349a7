//! Reads topics from Postgres.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::timeout;

use super::freshness::seen;
use super::vacuum::holders;
use super::{CollectionStanding, Standing, Topic};
use crate::config::CANARY;
use crate::context::Context;
use crate::heartbeat::workers;
use crate::pause::pauses;
use crate::{Error, audit, collection, config, database, job, migrate, rebuild, reindex};

/// A dead letter of the last hour is news; an older one was seen, or an alarm was lost, and is worth a word.
const LATELY_SECONDS: f64 = 3_600.0;

/// So many reindexes are read at most: their open jobs are counted, which takes some tens of milliseconds for a large one.
const REINDEXES: i64 = 20;

/// How long a connection of the last reading may take to show that it is still good.
const STILL_GOOD: Duration = Duration::from_millis(500);

/// A connection of its own, to a server that can be asked: no standby, and with the schema of this version. That of the last reading with
/// the same limit, if it was given back: whoever reads every two seconds would else make Postgres begin from nothing each time, which costs
/// several times as much as the reading.
pub(crate) async fn connect(context: &Context, limit: Duration) -> Result<PgConnection, Error> {
    if let Some(mut connection) = context.last_reading(limit)
        && timeout(STILL_GOOD, can_be_asked(&mut connection)).await.is_ok_and(|good| good.is_ok())
    {
        return Ok(connection);
    }
    context.reach_postgres().await?;
    let mut connection = database::beside(&context.pool, limit).await?;
    can_be_asked(&mut connection).await?;
    Ok(connection)
}

async fn can_be_asked(connection: &mut PgConnection) -> Result<(), Error> {
    collection::refuse_standby(connection).await?;
    migrate::check_version(connection).await
}

impl Standing {
    /// These collections, of which nothing is known yet.
    pub fn of<'c>(configs: impl IntoIterator<Item = &'c config::Collection>) -> Standing {
        let named = |config: &config::Collection| CollectionStanding { name: config.name.clone(), ..CollectionStanding::default() };
        Standing { collections: configs.into_iter().map(named).collect(), ..Standing::default() }
    }

    /// Reads these topics. One that Postgres refuses is left out, and why is noted; an error means that it does not answer at all.
    pub async fn read_what_is_told(&mut self, context: &Context, connection: &mut PgConnection, topics: &[Topic]) -> Result<(), Error> {
        for topic in topics {
            match self.read(context, connection, *topic).await {
                Err(error) if error.sqlstate().is_some() => {
                    tracing::debug!(?topic, "postgres refuses to tell: {error}");
                    self.refused.push((*topic, error.to_string()));
                }
                read => read?,
            }
        }
        Ok(())
    }

    /// Reads one topic.
    pub async fn read(&mut self, context: &Context, connection: &mut PgConnection, topic: Topic) -> Result<(), Error> {
        match topic {
            Topic::Workers => self.workers = workers(connection).await?,
            Topic::Attached => {
                for collection in &mut self.collections {
                    collection.read_attached(context, connection).await?;
                }
            }
            Topic::Census => {
                for collection in &mut self.collections {
                    collection.census = Some(job::census(connection, &collection.name).await?);
                }
            }
            Topic::Letters => {
                for collection in &mut self.collections {
                    collection.letters = Some(job::letters(connection, &collection.name, LATELY_SECONDS).await?);
                }
            }
            Topic::Audits => {
                for collection in &mut self.collections {
                    collection.audit = audit::verified(connection, &collection.name).await?;
                }
            }
            Topic::Pauses => {
                let pauses = pauses(connection).await?;
                for collection in &mut self.collections {
                    collection.paused = pauses.iter().find(|pause| pause.collection == collection.name).cloned();
                }
            }
            Topic::Unaudited => {
                let unaudited = self.unaudited(connection).await?;
                for collection in &mut self.collections {
                    collection.unaudited_seconds = unaudited.get(&collection.name).copied();
                }
            }
            Topic::Rebuilds => {
                let rebuilds = rebuild::under_way(connection, &self.names()).await?;
                for collection in &mut self.collections {
                    collection.rebuild = rebuilds.iter().find(|under_way| under_way.rebuild.collection == collection.name).cloned();
                }
            }
            Topic::Reindexes => {
                let newest = reindex::list(connection, None, REINDEXES).await?;
                self.reindexes = newest.into_iter().filter(|reindex| !reindex.state.is_over()).collect();
            }
            Topic::Unserved => self.unserved = self.unserved(connection).await?,
            Topic::Vacuum => self.holders = holders(connection).await?,
            Topic::Freshness => self.seen = seen(connection).await?,
            Topic::Canary if context.config.worker.canary => self.canary_seconds = canary_seconds(connection).await?,
            Topic::Canary => {}
            Topic::Storage => self.storage = Some(job::storage(connection).await?),
        }
        self.known.push(topic);
        Ok(())
    }

    fn names(&self) -> Vec<&str> {
        self.collections.iter().map(|collection| collection.name.as_str()).collect()
    }

    async fn unaudited(&self, connection: &mut PgConnection) -> Result<HashMap<String, f64>, Error> {
        let found: Vec<(String, f64)> = sqlx::query_as(include_str!("unaudited.sql")).bind(self.names()).fetch_all(connection).await?;
        Ok(found.into_iter().collect())
    }

    /// Collections that have jobs, and that nobody here or anywhere else serves.
    async fn unserved(&self, connection: &mut PgConnection) -> Result<Vec<String>, Error> {
        let elsewhere = self.living().flat_map(|worker| worker.collections.clone());
        // what a canary left when it was switched off concerns nobody
        let ours = self.names().into_iter().map(str::to_owned).chain([CANARY.to_owned()]);
        let served: Vec<String> = ours.chain(elsewhere).collect();
        job::unserved(connection, &served).await
    }
}

impl CollectionStanding {
    /// Reads how it is attached, and what keeps it from being worked on.
    async fn read_attached(&mut self, context: &Context, connection: &mut PgConnection) -> Result<(), Error> {
        let Some(config) = context.config.served().find(|config| config.name == self.name) else { return Ok(()) };
        match collection::load(connection, config, &context.prefix).await {
            Ok(attached) => {
                let mismatch = attached.check_targets().err().map(|error| error.to_string());
                let problem = || attached.problems.first().map(|problem| collection::with_remedy(problem).to_string());
                self.problem = mismatch.or_else(problem).or_else(|| attached.not_served());
                self.attached = Some(attached);
            }
            Err(refused @ Error::Refused { .. }) => self.problem = Some(refused.to_string()),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

async fn canary_seconds(connection: &mut PgConnection) -> Result<Option<f64>, Error> {
    Ok(sqlx::query_scalar(include_str!("canary.sql")).bind(CANARY).fetch_optional(connection).await?)
}
