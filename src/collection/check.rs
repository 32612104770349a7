//! What the view must be. Each refusal says what to write instead.

use std::collections::HashSet;

use serde_json::Value;
use sqlx::{Connection, PgConnection, Row};

use super::member::Member;
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
pub(super) async fn check_view(
    connection: &mut PgConnection,
    config: &config::Collection,
    collection: &Collection,
    schema: Option<&str>,
) -> Result<(), Error> {
    let look = Look { config, collection, member: collection.member(schema)? };
    let mut savepoint = connection.begin().await?;
    look.check_columns(&mut savepoint).await?;
    let keys = look.sample(&mut savepoint).await?;
    look.check_plan(&mut savepoint, &keys).await?;
    look.check_revision(&mut savepoint, &keys).await?;
    savepoint.rollback().await?;
    Ok(())
}

/// The part of it that touches nothing, for a look from outside.
pub(super) async fn check_reading(
    connection: &mut PgConnection,
    config: &config::Collection,
    collection: &Collection,
) -> Result<Judged, Error> {
    let mut judged = Judged::TooSmall;
    for member in &collection.members {
        let look = Look { config, collection, member };
        let mut savepoint = connection.begin().await?;
        look.check_columns(&mut savepoint).await?;
        let keys = look.sample(&mut savepoint).await?;
        if look.check_plan(&mut savepoint, &keys).await? == Judged::ByPlan {
            judged = Judged::ByPlan;
        }
        savepoint.rollback().await?;
    }
    Ok(judged)
}

/// One table and its view, as they are looked at.
#[derive(Clone, Copy)]
struct Look<'l> {
    config: &'l config::Collection,
    collection: &'l Collection,
    member: &'l Member,
}

impl Look<'_> {
    async fn check_columns(self, connection: &mut PgConnection) -> Result<(), Error> {
        let Look { config, collection, member } = self;
        let (table, view) = member.said(config);
        let named: Vec<&str> = config.scopes.values().chain(&config.period).map(String::as_str).collect();
        let missing: Vec<String> =
            sqlx::query_scalar(include_str!("columns.sql")).bind(table).bind(&named).fetch_all(&mut *connection).await?;
        if let Some(column) = missing.first() {
            return Err(Error::refused_with(
                format!("collection {}: {table} has no column {column}", config.name),
                "correct scopes or period",
            ));
        }
        let rows = sqlx::query(include_str!("view_columns.sql")).bind(view).fetch_all(connection).await?;
        let names = if let [_] = &config.key[..] { vec!["key"] } else { config.key.iter().map(String::as_str).collect() };
        // the schema is no column
        let types = collection.key_type.names().iter().skip(usize::from(member.schema.is_some()));
        let keys = names.iter().zip(types).map(|(name, kind)| (*name, vec![kind.as_str()]));
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
                        format!("collection {}: the view {view} has {column} of type {found}, not {wanted}", config.name),
                        "correct the view",
                    ));
                }
                None => {
                    return Err(Error::refused_with(
                        format!("collection {}: the view {view} has no column {column} ({wanted})", config.name),
                        format!("a view returns ({}, revision, body)", names.join(", ")),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Keys to plan with: the table's own, or one that could be.
    async fn sample(self, connection: &mut PgConnection) -> Result<Vec<String>, Error> {
        let Look { collection, member, .. } = self;
        let rows = filled(&member.statements.sample).fetch_all(connection).await?;
        let mut keys = rows.iter().map(|row| row.try_get("key")).collect::<Result<Vec<String>, _>>()?;
        if keys.is_empty() {
            keys.push(collection.key_type.example());
        }
        Ok(keys)
    }

    /// A view that cannot be read. Somebody's lock says nothing of the view.
    fn unreadable(self, error: sqlx::Error) -> Error {
        let why = format!("{} of collection {}: {error}", self.member.said(self.config).1, self.config.name);
        match Error::from(error) {
            locked if locked.is_too_slow() => locked,
            _ => Error::View(why),
        }
    }

    /// With sequential scans discouraged, one that is still in the plan has no other way: it would be taken once per batch. Only large tables
    /// are judged: in one of a few rows every index costs the same, and a right view would be refused by chance.
    async fn check_plan(self, connection: &mut PgConnection, keys: &[String]) -> Result<Judged, Error> {
        let Look { config, collection, member } = self;
        let (table, view) = member.said(config);
        let large: HashSet<String> =
            sqlx::query_scalar(include_str!("large_tables.sql")).fetch_all(&mut *connection).await?.into_iter().collect();
        let own = table.rsplit('.').next().unwrap_or(table).trim_matches('"');
        let judged = if large.contains(own) { Judged::ByPlan } else { Judged::TooSmall };
        sqlx::query("set local enable_seqscan = off").execute(&mut *connection).await?;
        let explain = with_keys(filled(&member.statements.explain).bind(&config.name), &collection.key_type, keys);
        let read = read_view(connection, explain.bind(i64::MAX).bind(i64::MAX)).await;
        let rows = read.map_err(|error| self.unreadable(error))?;
        let explained: Value = rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?;
        match plan::reads_whole(&explained, &large) {
            None => Ok(judged),
            Some(table) => Err(Error::refused_with(
                format!("collection {}: the view {view} reads the whole of {table} for each batch", config.name),
                "take the key as the bare column, and related rows by scalar subselect or lateral with an index, not by a grouped subquery, a CTE used twice, a window or a limit",
            )),
        }
    }

    /// The view must read the revision's column, and show what is in it. What a worker does to a row is tried on one.
    async fn check_revision(self, connection: &mut PgConnection, keys: &[String]) -> Result<(), Error> {
        let Look { config, collection, member } = self;
        let (table, view) = member.said(config);
        let another = Error::refused_with(
            format!("collection {}: revision in the view {view} is not the column {} of {table}", config.name, config.revision),
            "the view must select that column as revision",
        );
        let reads_it: bool = sqlx::query_scalar(include_str!("view_reads.sql"))
            .bind(view)
            .bind(table)
            .bind(&config.revision)
            .fetch_one(&mut *connection)
            .await?;
        if !reads_it {
            return Err(another);
        }
        let shown = read_view(connection, with_keys(filled(&member.statements.shown), &collection.key_type, keys)).await?;
        let Some(shown) = shown.first() else { return Ok(()) };
        let key: String = shown.try_get("key")?;
        // as a worker will: it must not fail on this table
        repair::draw(connection, &config.name, &[&key]).await?;
        let (mut in_view, mut in_row) = self.revisions(connection, &key).await?;
        if in_row.is_none() {
            // two that are empty say nothing. The table's own triggers are off, so that none of them sees what is not meant for it
            filled(&member.statements.silence).execute(&mut *connection).await?;
            filled(&member.statements.number).bind(&key).execute(&mut *connection).await?;
            (in_view, in_row) = self.revisions(connection, &key).await?;
        }
        if in_view == in_row { Ok(()) } else { Err(another) }
    }

    /// The revision in the view, and in the row.
    async fn revisions(self, connection: &mut PgConnection, key: &str) -> Result<(Option<i64>, Option<i64>), Error> {
        let rows = read_view(connection, filled(&self.member.statements.revisions).bind(key.to_owned())).await?;
        rows.first().map_or(Ok((None, None)), |row| Ok((row.try_get("in_view")?, row.try_get("in_row")?)))
    }
}
