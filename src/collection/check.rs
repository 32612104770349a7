//! What the view must be. Each refusal says what to write instead.

use std::collections::HashSet;

use serde_json::Value;
use sqlx::{Connection, PgConnection, Row};

use super::statements::{filled, read_view, with_keys};
use super::{Collection, plan, repair};
use crate::Error;
use crate::config;

/// Whether the plan of the look-up could be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    ByPlan,
    /// The table has so few rows that its plan says nothing.
    TooSmall,
}

/// A standby lags and cannot be written: what it shows is not what was committed.
pub async fn refuse_standby(connection: &mut PgConnection) -> Result<(), Error> {
    if sqlx::query_scalar(include_str!("is_standby.sql")).fetch_one(connection).await? {
        return Err(standby());
    }
    Ok(())
}

/// The refusal of a standby.
pub fn standby() -> Error {
    Error::refused_with("this Postgres is a standby", "set DATABASE_URL to the primary")
}

/// Checks columns, types, the plan of the look-up, and that the view's revision is the row's. What it touches is undone. The table is
/// locked meanwhile, so nothing here takes longer for a larger table.
pub(super) async fn check_view(connection: &mut PgConnection, config: &config::Collection, collection: &Collection) -> Result<(), Error> {
    let mut savepoint = connection.begin().await?;
    check_columns(&mut savepoint, config, collection).await?;
    let keys = sample(&mut savepoint, collection).await?;
    check_plan(&mut savepoint, config, collection, &keys).await?;
    check_revision(&mut savepoint, config, collection, &keys).await?;
    savepoint.rollback().await?;
    Ok(())
}

/// The part of it that touches nothing, for a look from outside.
pub(super) async fn check_reading(
    connection: &mut PgConnection,
    config: &config::Collection,
    collection: &Collection,
) -> Result<Judged, Error> {
    check_columns(connection, config, collection).await?;
    let keys = sample(connection, collection).await?;
    check_plan(connection, config, collection, &keys).await
}

async fn check_columns(connection: &mut PgConnection, config: &config::Collection, collection: &Collection) -> Result<(), Error> {
    let named: Vec<&str> = config.scopes.values().chain(&config.period).map(String::as_str).collect();
    let missing: Vec<String> =
        sqlx::query_scalar(include_str!("columns.sql")).bind(&config.table).bind(&named).fetch_all(&mut *connection).await?;
    if let Some(column) = missing.first() {
        return Err(Error::refused_with(
            format!("collection {}: {} has no column {column}", config.name, config.table),
            "correct scopes or period",
        ));
    }
    let rows = sqlx::query(include_str!("view_columns.sql")).bind(&config.view).fetch_all(connection).await?;
    let names = if let [_] = &config.key[..] { vec!["key"] } else { config.key.iter().map(String::as_str).collect() };
    let keys = names.iter().zip(collection.key_type.names()).map(|(name, kind)| (*name, vec![kind.as_str()]));
    for (column, types) in keys.chain([("revision", vec!["bigint"]), ("body", vec!["json", "jsonb"])]) {
        let row = rows.iter().find(|row| row.try_get::<String, _>("name").is_ok_and(|name| name == column));
        let found: Option<String> = row.map(|row| row.try_get("type")).transpose()?;
        let as_key: Option<String> = row.map(|row| row.try_get("key_type")).transpose()?.flatten();
        let wanted = types.join(" or ");
        match found {
            Some(found) if types.contains(&found.as_str()) => {}
            Some(_) if as_key.is_some_and(|found| types.contains(&found.as_str())) => {}
            Some(found) => {
                return Err(Error::refused_with(
                    format!("collection {}: the view {} has {column} of type {found}, not {wanted}", config.name, config.view),
                    "correct the view",
                ));
            }
            None => {
                return Err(Error::refused_with(
                    format!("collection {}: the view {} has no column {column} ({wanted})", config.name, config.view),
                    format!("a view returns ({}, revision, body)", names.join(", ")),
                ));
            }
        }
    }
    Ok(())
}

/// Keys to plan with: the table's own, or one that could be.
async fn sample(connection: &mut PgConnection, collection: &Collection) -> Result<Vec<String>, Error> {
    let rows = filled(&collection.statements.sample).fetch_all(connection).await?;
    let mut keys = rows.iter().map(|row| row.try_get("key")).collect::<Result<Vec<String>, _>>()?;
    if keys.is_empty() {
        keys.push(collection.key_type.example());
    }
    Ok(keys)
}

/// A view that cannot be read. Somebody's lock says nothing of the view.
fn unreadable(config: &config::Collection, error: sqlx::Error) -> Error {
    let why = format!("{} of collection {}: {error}", config.view, config.name);
    match Error::from(error) {
        locked if locked.is_too_slow() => locked,
        _ => Error::View(why),
    }
}

/// With sequential scans discouraged, one that is still in the plan has no other way: it would be taken once per batch. Only large tables
/// are judged: in one of a few rows every index costs the same, and a right view would be refused by chance.
async fn check_plan(
    connection: &mut PgConnection,
    config: &config::Collection,
    collection: &Collection,
    keys: &[String],
) -> Result<Judged, Error> {
    let large: HashSet<String> =
        sqlx::query_scalar(include_str!("large_tables.sql")).fetch_all(&mut *connection).await?.into_iter().collect();
    let own = config.table.rsplit('.').next().unwrap_or(&config.table).trim_matches('"');
    let judged = if large.contains(own) { Judged::ByPlan } else { Judged::TooSmall };
    sqlx::query("set local enable_seqscan = off").execute(&mut *connection).await?;
    let explain = with_keys(filled(&collection.statements.explain).bind(&config.name), &collection.key_type, keys);
    let read = read_view(connection, explain.bind(i64::MAX).bind(i64::MAX)).await;
    let rows = read.map_err(|error| unreadable(config, error))?;
    let explained: Value = rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?;
    match plan::reads_whole(&explained, &large) {
        None => Ok(judged),
        Some(table) => Err(Error::refused_with(
            format!("collection {}: the view {} reads the whole of {table} for each batch", config.name, config.view),
            "take the key as the bare column, and related rows by scalar subselect or lateral with an index, not by a grouped subquery, a CTE used twice, a window or a limit",
        )),
    }
}

/// The view must read the revision's column, and show what is in it. What a worker does to a row is tried on one.
async fn check_revision(
    connection: &mut PgConnection,
    config: &config::Collection,
    collection: &Collection,
    keys: &[String],
) -> Result<(), Error> {
    let another = Error::refused_with(
        format!(
            "collection {}: revision in the view {} is not the column {} of {}",
            config.name, config.view, config.revision, config.table
        ),
        "the view must select that column as revision",
    );
    let reads_it: bool = sqlx::query_scalar(include_str!("view_reads.sql"))
        .bind(&config.view)
        .bind(&config.table)
        .bind(&config.revision)
        .fetch_one(&mut *connection)
        .await?;
    if !reads_it {
        return Err(another);
    }
    let shown = read_view(connection, with_keys(filled(&collection.statements.shown), &collection.key_type, keys)).await?;
    let Some(shown) = shown.first() else { return Ok(()) };
    let key: String = shown.try_get("key")?;
    // as a worker will: it must not fail on this table
    repair::draw(connection, &config.name, &[&key]).await?;
    let (mut in_view, mut in_row) = revisions(connection, collection, &key).await?;
    if in_row.is_none() {
        // two that are empty say nothing. The table's own triggers are off, so that none of them sees what is not meant for it
        filled(&collection.statements.silence).execute(&mut *connection).await?;
        filled(&collection.statements.number).bind(&key).execute(&mut *connection).await?;
        (in_view, in_row) = revisions(connection, collection, &key).await?;
    }
    if in_view == in_row { Ok(()) } else { Err(another) }
}

/// The revision in the view, and in the row.
async fn revisions(connection: &mut PgConnection, collection: &Collection, key: &str) -> Result<(Option<i64>, Option<i64>), Error> {
    let rows = read_view(connection, filled(&collection.statements.revisions).bind(key.to_owned())).await?;
    rows.first().map_or(Ok((None, None)), |row| Ok((row.try_get("in_view")?, row.try_get("in_row")?)))
}
