//! Makes a configured table a collection. The SQL is `migrations/0004_attach.sql`; here are the retries.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool, Row};

use super::{check, load, watched};
use crate::Error;
use crate::config;
use crate::database::{self, Question};

/// A lock that is not had within this time is given back, so that the application's traffic never queues behind it.
const LOCK_TIMEOUT: &str = "set local lock_timeout = '2s'";
/// Tries before it answers that the table is too busy: about a minute in all.
const TRIES: u32 = 15;

/// What attaching did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attached {
    /// It was all there.
    Unchanged,
    /// The first time, or its triggers were not all in place: every document is stale until `reindex --all`.
    Stale(String),
    /// Triggers were replaced; what was in step still is.
    Changed,
    /// Schemas came or went; an audit finds their documents.
    Schemas { added: Vec<String>, gone: Vec<String> },
}

/// Attaches the table of a configured collection, if its view is what it must be. Repeating it changes nothing; a refusal leaves
/// nothing behind, because the view is looked at before the commit.
pub async fn attach(pool: &PgPool, config: &config::Collection) -> Result<Attached, Error> {
    match attach_what_fits(pool, config).await? {
        (attached, refused) if refused.is_empty() => Ok(attached),
        (_, refused) => Err(Error::refused(refused.join("; "))),
    }
}

/// The same; of many schemas those that do not fit hold up nobody else, and are named with the remedy.
pub async fn attach_what_fits(pool: &PgPool, config: &config::Collection) -> Result<(Attached, Vec<String>), Error> {
    if config.schemas().is_some() {
        return attach_schemas(pool, config).await;
    }
    require_table(&mut *pool.acquire().await?, config).await?;
    let work = async |connection: &mut PgConnection| attach_in(connection, config, None).await;
    let done = with_lock_retries(pool, &config.table, End::Commit, work).await?;
    let attached = match done.as_str() {
        "unchanged" => Attached::Unchanged,
        "changed" => Attached::Changed,
        _ => Attached::Stale(done),
    };
    Ok((attached, Vec::new()))
}

/// The table in each of its schemas, one after the other: nobody waits for the writers of all of them. A schema that is no longer meant is
/// let go first, so that a table whose schema was renamed is free.
async fn attach_schemas(pool: &PgPool, config: &config::Collection) -> Result<(Attached, Vec<String>), Error> {
    let is_new: bool = sqlx::query_scalar(include_str!("is_new.sql")).bind(&config.name).fetch_one(pool).await?;
    attach_whole(&mut *pool.acquire().await?, config).await?;
    let schemas = matching(&mut *pool.acquire().await?, config).await?;
    let forget = async |connection: &mut PgConnection| forget_members(connection, config, &schemas).await;
    let gone: Vec<String> = with_lock_retries(pool, &config.table, End::Commit, forget).await?;
    let (mut added, mut refused, mut stale, mut changed) = (Vec::new(), Vec::new(), None, false);
    for schema in schemas {
        let work = async |connection: &mut PgConnection| attach_in(connection, config, Some(&schema)).await;
        match with_lock_retries(pool, &format!("{} in schema {schema}", config.table), End::Commit, work).await {
            Ok(done) => match done.as_str() {
                "unchanged" => {}
                "changed" => changed = true,
                "attached" => added.push(schema),
                _ => stale = Some(done),
            },
            Err(error) if is_of_the_schema(&error) => refused.push(format!("schema {schema}: {error}")),
            Err(error) => return Err(error),
        }
    }
    let attached = match (stale, added, gone) {
        _ if is_new => Attached::Stale("attached".into()),
        (Some(done), ..) => Attached::Stale(done),
        (None, added, gone) if added.is_empty() && gone.is_empty() => {
            if changed {
                Attached::Changed
            } else {
                Attached::Unchanged
            }
        }
        (None, added, gone) => Attached::Schemas { added, gone },
    };
    Ok((attached, refused))
}

/// Does it lie with this schema alone? A server that is down is down for all of them.
fn is_of_the_schema(error: &Error) -> bool {
    !error.is_absence() && matches!(error, Error::Refused { .. } | Error::View(_) | Error::Postgres(_))
}

/// The schemas that have the table now.
async fn matching(connection: &mut PgConnection, config: &config::Collection) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar("select catchword.matching($1)").bind(&config.table).fetch_all(connection).await?)
}

async fn forget_members(connection: &mut PgConnection, config: &config::Collection, but: &[String]) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar("select catchword.forget_members($1, $2)").bind(&config.name).bind(but).fetch_one(connection).await?)
}

async fn attach_whole(connection: &mut PgConnection, config: &config::Collection) -> Result<(), Error> {
    bind_settings(sqlx::query(include_str!("attach_whole.sql")), config).execute(connection).await?;
    Ok(())
}

/// Binds what the configuration says: $1 to $12.
fn bind_settings(question: Question, config: &config::Collection) -> Question {
    question
        .bind(config.name.clone())
        .bind(config.table.clone())
        .bind(config.key.clone())
        .bind(config.view.clone())
        .bind(config.revision.clone())
        .bind(config.watch.clone())
        .bind(touches(config))
        .bind(delay(config))
        .bind(json!(config.scopes))
        .bind(config.period.clone())
        .bind(config.unwatched.clone())
        .bind(config.fair_by.clone())
}

/// Attaches and undoes it: every refusal is heard before anything is made for the collection elsewhere. Of many schemas one must fit.
pub async fn try_attach(pool: &PgPool, config: &config::Collection) -> Result<(), Error> {
    if config.schemas().is_some() {
        let schemas = matching(&mut *pool.acquire().await?, config).await?;
        let (mut refused, mut fit) = (None, false);
        for schema in schemas.iter().map(Some).chain([None]) {
            let work = async |connection: &mut PgConnection| {
                attach_whole(&mut *connection, config).await?;
                forget_members(&mut *connection, config, &schemas).await?;
                match schema {
                    Some(schema) => attach_in(connection, config, Some(schema)).await,
                    None => Ok(String::new()),
                }
            };
            match with_lock_retries(pool, &config.table, End::Rollback, work).await {
                Ok(_) => fit |= schema.is_some(),
                Err(error) if schema.is_some() && is_of_the_schema(&error) => _ = refused.get_or_insert(error),
                Err(error) => return Err(error),
            }
        }
        return refused.filter(|_| !fit).map_or(Ok(()), Err);
    }
    require_table(&mut *pool.acquire().await?, config).await?;
    let work = async |connection: &mut PgConnection| attach_in(connection, config, None).await;
    with_lock_retries(pool, &config.table, End::Rollback, work).await?;
    Ok(())
}

async fn attach_in(connection: &mut PgConnection, config: &config::Collection, schema: Option<&str>) -> Result<String, Error> {
    let question = bind_settings(sqlx::query(include_str!("attach.sql")), config).bind(schema.map(str::to_owned));
    let done = question.fetch_one(&mut *connection).await?.try_get(0)?;
    // of many schemas this one alone: each takes as long, however many there are
    let name = match schema {
        None => config.name.clone(),
        Some(schema) => {
            sqlx::query_scalar("select catchword.member_name($1, $2)").bind(&config.name).bind(schema).fetch_one(&mut *connection).await?
        }
    };
    let attached = load(&mut *connection, &config::Collection { name, ..config.clone() }, "").await?;
    check::check_view(connection, config, &attached, schema).await?;
    watched::check_watched(config, &attached)?;
    Ok(done)
}

/// The SQL that attaching would run, after the same refusals.
pub async fn attach_statements(connection: &mut PgConnection, config: &config::Collection) -> Result<Vec<String>, Error> {
    if config.schemas().is_none() {
        require_table(connection, config).await?;
        return statements_in(connection, config, None).await;
    }
    attach_whole(&mut *connection, config).await?;
    let mut statements = Vec::new();
    for schema in matching(&mut *connection, config).await? {
        statements.extend(statements_in(&mut *connection, config, Some(&schema)).await?);
    }
    Ok(statements)
}

async fn statements_in(connection: &mut PgConnection, config: &config::Collection, schema: Option<&str>) -> Result<Vec<String>, Error> {
    Ok(sqlx::query_scalar(include_str!("attach_statements.sql"))
        .bind(&config.name)
        .bind(&config.table)
        .bind(&config.key)
        .bind(&config.revision)
        .bind(&config.watch)
        .bind(touches(config))
        .bind(delay(config))
        .bind(&config.fair_by)
        .bind(schema)
        .fetch_all(connection)
        .await?)
}

/// Remembers the index that was made for a collection.
pub async fn set_targets(pool: &PgPool, collection: &str, index: &str) -> Result<(), Error> {
    sqlx::query(include_str!("set_targets.sql")).bind(collection).bind(index).execute(pool).await?;
    Ok(())
}

/// Undoes an attachment; the sentence says what stays.
pub async fn detach(pool: &PgPool, collection: &str) -> Result<String, Error> {
    with_lock_retries(pool, collection, End::Commit, async |connection: &mut PgConnection| {
        Ok(sqlx::query_scalar("select catchword.detach($1)").bind(collection).fetch_one(connection).await?)
    })
    .await
}

async fn require_table(connection: &mut PgConnection, config: &config::Collection) -> Result<(), Error> {
    if sqlx::query_scalar(include_str!("table_exists.sql")).bind(&config.table).fetch_one(connection).await? {
        return Ok(());
    }
    let folded = config.table.contains(char::is_uppercase) && !config.table.contains('"');
    let example = if folded { "'schema.\"Table\"': a name with capitals is quoted, as in SQL" } else { "\"schema.table\"" };
    Err(Error::refused_with(
        format!("collection {}: the table {} does not exist", config.name, config.table),
        format!("create it with your own migrations first, or write table = {example}"),
    ))
}

/// How a transaction ends that went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Commit,
    Rollback,
}

async fn with_lock_retries<T>(
    pool: &PgPool,
    what: &str,
    end: End,
    work: impl AsyncFn(&mut PgConnection) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut tries = 0;
    loop {
        let mut transaction = database::begin(pool).await?;
        sqlx::query(LOCK_TIMEOUT).execute(&mut *transaction).await?;
        match work(&mut transaction).await {
            Ok(done) => {
                match end {
                    End::Commit => transaction.commit().await?,
                    End::Rollback => transaction.rollback().await?,
                }
                return Ok(done);
            }
            Err(error) if is_lock_timeout(&error) && tries < TRIES => {
                transaction.rollback().await?;
                tries += 1;
                tracing::info!(what, tries, "the table is busy; trying again");
                tokio::time::sleep(Duration::from_millis(500 * u64::from(tries.min(4)))).await;
            }
            Err(error) if is_lock_timeout(&error) => {
                return Err(Error::refused_with(
                    format!("{what} is too busy: a long transaction holds it"),
                    "end that one, or repeat this later",
                ));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Lock not available; a deadlock that was resolved at our cost.
fn is_lock_timeout(error: &Error) -> bool {
    matches!(error.sqlstate().as_deref(), Some(Error::LOCK_NOT_AVAILABLE | Error::DEADLOCK_DETECTED))
}

/// What the configuration says of how a collection is attached, beside its names.
pub(super) fn said(config: &config::Collection) -> Value {
    json!({
        "key": config.key,
        "watch": config.watch,
        "touches": touches(config),
        "delay": delay(config),
        "fair_by": config.fair_by,
        "scopes": config.scopes,
        "period": config.period,
        "revision": config.revision,
        "unwatched": config.unwatched,
    })
}

fn touches(config: &config::Collection) -> Value {
    let touch = |t: &config::Touch| {
        let mut touch = json!({ "table": t.table });
        let names = |names: &[String]| if let [one] = names { json!(one) } else { json!(names) };
        let lists = [("column", names(&t.column), t.column.is_empty()), ("row_column", names(&t.row_column), t.row_column.is_empty())];
        let texts = [("value", json!(t.value), t.value.is_none()), ("keys", json!(t.keys), t.keys.is_none())];
        for (key, said, absent) in lists.into_iter().chain(texts).chain([("watch", json!(t.watch), t.watch.is_empty())]) {
            if !absent {
                touch[key] = said;
            }
        }
        touch
    };
    config.touches.iter().map(touch).collect()
}

fn delay(config: &config::Collection) -> i32 {
    config.delay.unwrap_or_default().as_secs().try_into().unwrap_or(3600)
}
