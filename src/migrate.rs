//! Makes the schema `catchword`, attaches tables, creates indices; and says whether the schema that is there is this version's.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sqlx::migrate::Migrator;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::alone::Alone;
use crate::collection::{self, Attached, Doubts, OfACopy};
use crate::config;
use crate::elastic::{Ensured, IndexPlan, Target};
use crate::{Catchword, Error, elastic};

/// The files of `migrations/`, with a bookkeeping table of our own: it never meets the application's.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!();
    migrator.create_schema("catchword");
    migrator.dangerous_set_table_name("catchword._migrations");
    // its own lock says nothing of who holds it
    migrator.set_locking(false);
    migrator
});

/// As Postgres calls it.
pub(crate) const UTF8: &str = "UTF8";

/// How long to wait for another migrate: a schema is made within seconds.
const TURN: Duration = Duration::from_secs(30);

/// What was done for one collection.
#[derive(Clone, Debug)]
pub struct Done {
    pub collection: String,
    pub attached: Attached,
    pub alias: String,
    pub index: Ensured,
    /// Fields that were added to the index's mapping.
    pub added: Vec<String>,
    /// What is due because the mapping file or the view changed since the index was filled.
    pub due: Option<String>,
    /// What is doubtful about its view.
    pub doubts: Doubts,
}

impl Catchword {
    /// Makes the schema, creates the indices with their aliases, attaches every configured table. Repeating it changes nothing. Both sides
    /// are asked before a table is changed: a mapping that Elasticsearch refuses leaves no triggers that nobody works for.
    pub async fn migrate(&self) -> Result<(Vec<String>, Vec<Done>), Error> {
        self.migrate_copy(OfACopy::Refused).await
    }

    /// The same for a database that may be a copy of another one.
    pub async fn migrate_copy(&self, copy: OfACopy) -> Result<(Vec<String>, Vec<Done>), Error> {
        let pool = &self.inner.pool;
        collection::refuse_standby(&mut *pool.acquire().await?).await?;
        refuse_encoding(&mut *pool.acquire().await?).await?;
        // what the mapping files say is checked before anything is changed
        for config in self.inner.config.served() {
            self.index_plan(config, Uuid::nil())?.create_request()?;
        }
        let applied = migrate(pool).await?;
        copy.settle(&mut *pool.acquire().await?).await?;
        self.take_over().await?;
        let installation = collection::installation(&mut *pool.acquire().await?).await?;
        // an index that is another's is refused before anything is made
        for config in self.inner.config.served() {
            let checked = self.inner.elastic.check_index(&self.index_plan(config, installation)?, &self.recorded(config).await?).await;
            checked.map_err(nothing_attached)?;
        }
        let mut indices = Vec::new();
        for config in self.inner.config.served() {
            let targets = self.recorded(config).await?;
            if targets.is_empty() {
                collection::try_attach(pool, config).await?;
            }
            let plan = self.index_plan(config, installation)?;
            indices.push(self.inner.elastic.ensure_index(&plan, &targets).await.map_err(nothing_attached)?);
        }
        let mut done: Vec<Done> = Vec::new();
        for (config, index) in self.inner.config.served().zip(indices) {
            let attached = collection::attach(pool, config).await.map_err(|error| half_done(error, &done))?;
            collection::set_targets(pool, &config.name, index.target.index()).await?;
            let plan = self.index_plan(config, installation)?;
            let (added, due) = self.bring_in_line(config, &plan).await?;
            let connection = &mut *pool.acquire().await?;
            let doubts = collection::load(connection, config, &self.inner.prefix).await?.doubts(connection).await?;
            done.push(Done { collection: config.name.clone(), attached, alias: plan.alias, index, added, due, doubts });
        }
        Ok((applied, done))
    }

    /// Claims the indices of the database that this one was copied from, if that was asked for. Cut short, the next one goes on.
    async fn take_over(&self) -> Result<(), Error> {
        let connection = &mut *self.inner.pool.acquire().await?;
        let Some(previous) = collection::previous_installation(connection).await? else { return Ok(()) };
        let installation = collection::installation(connection).await?;
        for config in self.inner.config.served() {
            let targets = collection::load(connection, config, &self.inner.prefix).await.map(|attached| attached.targets);
            for target in targets.unwrap_or_default() {
                self.inner.elastic.claim(&target, previous, installation).await?;
            }
        }
        collection::taken_over(connection).await
    }

    /// Asks Elasticsearch whether the indices that are wanted can be had, and makes nothing: for a dry run.
    pub async fn check_indices(&self, installation: Uuid) -> Result<(), Error> {
        for config in self.inner.config.served() {
            let plan = self.index_plan(config, installation)?;
            self.inner.elastic.check_index(&plan, &self.recorded(config).await?).await.map_err(nothing_attached)?;
        }
        Ok(())
    }

    /// The indices that were recorded for a collection; none: it is not attached yet.
    async fn recorded(&self, config: &config::Collection) -> Result<Vec<Target>, Error> {
        match collection::load(&mut *self.inner.pool.acquire().await?, config, &self.inner.prefix).await {
            Ok(attached) => {
                attached.check_targets()?;
                Ok(attached.targets)
            }
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Adds the fields that the mapping file has and the index lacks. What an existing index cannot take is reported, and not changed.
    async fn bring_in_line(&self, config: &config::Collection, plan: &IndexPlan) -> Result<(Vec<String>, Option<String>), Error> {
        let drift = self.drift(config).await?;
        if drift.rebuilding || !drift.mapping.changed.is_empty() {
            return Ok((Vec::new(), drift.due()));
        }
        let attached = collection::load(&mut *self.inner.pool.acquire().await?, config, &self.inner.prefix).await?;
        let mut added = Vec::new();
        for target in &attached.targets {
            let found = self.inner.elastic.bring_in_line(plan, target).await?;
            added.extend(found.added.into_iter().filter(|_| Some(target) == attached.readers_target()));
        }
        Ok((added, self.drift(config).await?.due()))
    }

    /// The index of a collection as it would be created.
    pub fn index_plan(&self, config: &config::Collection, installation: Uuid) -> Result<IndexPlan, Error> {
        Ok(IndexPlan {
            alias: format!("{}{}", self.inner.prefix, config.index),
            mapping: config.mapping_json()?,
            installation,
            collection: config.name.clone(),
        })
    }
}

/// Elasticsearch could not be asked, or refuses the index: said with what that leaves.
fn nothing_attached(error: elastic::Error) -> Error {
    match error {
        elastic::Error::Request { .. } => Error::Refused(format!(
            "{error}; the schema catchword is in place, and no table was attached or changed: correct that, then run catchword migrate again"
        )),
        other => other.into(),
    }
}

/// A table could not be attached after others were.
fn half_done(error: Error, done: &[Done]) -> Error {
    let attached: Vec<&str> = done.iter().map(|done| done.collection.as_str()).collect();
    match attached.as_slice() {
        [] => error,
        attached => {
            Error::Refused(format!("{error}; attached before that: {}; run catchword migrate again for the rest", attached.join(", ")))
        }
    }
}

/// Applies what is missing. Repeating it changes nothing; two at once take turns.
pub async fn migrate(pool: &PgPool) -> Result<Vec<String>, Error> {
    let _turn = turn(pool).await?;
    let missing = pending(&mut *pool.acquire().await?).await?;
    MIGRATIONS.run(pool).await.map_err(|error| match error {
        sqlx::migrate::MigrateError::Execute(error) => Error::Postgres(error),
        other => Error::Schema(format!("the schema catchword cannot be migrated: {other}")),
    })?;
    Ok(missing.into_iter().map(|(name, _)| name).collect())
}

/// Documents and keys are UTF-8. Elsewhere Postgres keeps bytes that are none, or letters that others lack, and one such key would fail
/// every claim of its collection.
pub async fn refuse_encoding(connection: &mut PgConnection) -> Result<(), Error> {
    let encoding: String = sqlx::query_scalar(include_str!("encoding.sql")).fetch_one(connection).await?;
    if encoding == UTF8 {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "this database has the encoding {encoding}, and catchword needs {UTF8}; create one with encoding '{UTF8}' and move the data there by pg_dump"
    )))
}

/// Waits until no other migrate is at it. There may be no table to lock yet, so the lock is a session's.
async fn turn(pool: &PgPool) -> Result<Alone, Error> {
    let started = Instant::now();
    loop {
        let connection = pool.acquire().await?.detach();
        match Alone::take(connection, "catchword.migrate").await? {
            Ok(alone) => return Ok(alone),
            Err(holder) if started.elapsed() > TURN => {
                return Err(Error::Refused(format!("another migrate seems to run: its lock is held by {holder}; wait for it, or end it")));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The migrations that are not applied yet: name and SQL. A schema that is newer than this binary is refused.
pub async fn pending(connection: &mut PgConnection) -> Result<Vec<(String, String)>, Error> {
    let applied = applied(connection).await?;
    if let Some(newer) = applied.iter().find(|version| !MIGRATIONS.version_exists(**version)) {
        return Err(Error::Schema(format!(
            "the schema catchword is at version {newer}, newer than this binary; install the newer catchword"
        )));
    }
    let missing = MIGRATIONS.iter().filter(|migration| !applied.contains(&migration.version));
    Ok(missing.map(|m| (format!("{:04} {}", m.version, m.description), m.sql.as_str().to_owned())).collect())
}

/// Applies migrations inside the caller's transaction, which is meant to be undone: for a dry run.
pub async fn apply_for_a_look(connection: &mut PgConnection, pending: &[(String, String)]) -> Result<(), Error> {
    sqlx::query("create schema if not exists catchword").execute(&mut *connection).await?;
    let mine = MIGRATIONS.iter().map(|m| (format!("{:04} {}", m.version, m.description), &m.sql));
    for (name, sql) in mine {
        if pending.iter().any(|(pending, _)| *pending == name) {
            sqlx::raw_sql(sql.clone()).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

/// Refuses a schema that is missing, older or newer.
pub async fn check_version(connection: &mut PgConnection) -> Result<(), Error> {
    let missing = pending(connection).await?;
    match missing.first() {
        None => Ok(()),
        Some(_) if missing.len() == MIGRATIONS.iter().count() => {
            Err(Error::Schema("there is no schema catchword in this database; run: catchword migrate".into()))
        }
        Some((name, _)) => {
            Err(Error::Schema(format!("the schema catchword is older than this binary, it lacks {name}; run: catchword migrate")))
        }
    }
}

async fn applied(connection: &mut PgConnection) -> Result<Vec<i64>, Error> {
    let there: bool = sqlx::query_scalar("select to_regclass('catchword._migrations') is not null").fetch_one(&mut *connection).await?;
    if !there {
        return Ok(Vec::new());
    }
    Ok(sqlx::query_scalar("select version from catchword._migrations where success order by version").fetch_all(connection).await?)
}
