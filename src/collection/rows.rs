//! One key must not fail its batch: a row for which the view raises an error is found by halving.

use sqlx::postgres::PgRow;
use sqlx::{Connection, PgConnection};

use super::Collection;
use super::statements::{Statements, filled, with_keys};
use crate::Error;

/// A key whose document cannot be built, and what Postgres said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbuildable {
    pub key: String,
    pub error: String,
}

/// The limit of a look at a whole batch, in milliseconds.
const LOOK: i32 = 10_000;
/// The limit of a part of one, when the whole was too slow: a dozen halvings find the row within the batch's deadline.
const PART: i32 = 1_500;
/// The limit of the row that is then found: it may only be large, and to know how large, Postgres has to build it. For one row of a
/// batch: for more there is no time.
const ALONE: i32 = 10_000;

/// What `limit.sql` says when the transaction has been open for too long.
const NO_TIME: &str = "1ms";

/// What a statement said of keys.
#[derive(Default)]
pub(super) struct Rows {
    pub found: Vec<PgRow>,
    pub unbuildable: Vec<Unbuildable>,
    /// Keys that there was no time for: nothing is known of them, and above all not that they have no row.
    pub unread: Vec<String>,
}

impl Collection {
    /// Runs a statement over keys, member by member.
    pub(super) async fn rows(
        &self,
        connection: &mut PgConnection,
        statement: impl Fn(&Statements) -> &str,
        keys: &[&str],
    ) -> Result<Rows, Error> {
        let mut all = Rows { unread: self.of_unserved(keys), ..Rows::default() };
        for (member, keys) in self.by_member(keys) {
            all.extend(rows(connection, statement(&member.statements), self, &keys, None).await?);
        }
        Ok(all)
    }
}

impl Rows {
    pub fn extend(&mut self, more: Rows) {
        self.found.extend(more.found);
        self.unbuildable.extend(more.unbuildable);
        self.unread.extend(more.unread);
    }
}

/// Runs a statement over keys of one member. An error that a single row can cause (a cast, a division, a `raise`, no end) halves the keys
/// until that row is alone; every other error is the whole collection's. When too many are slow there is no time for the rest: their jobs
/// are left for the next pass, and the slow ones that were found are charged.
pub(super) async fn rows(
    connection: &mut PgConnection,
    sql: &str,
    collection: &Collection,
    keys: &[&str],
    limits: Option<(i64, i64)>,
) -> Result<Rows, Error> {
    let mut rows = Rows::default();
    let mut pending = vec![keys];
    let (mut slow, mut alone) = (false, Some(ALONE));
    while let Some(keys) = pending.pop() {
        if keys.is_empty() {
            continue;
        }
        let limit = match (slow, keys) {
            (false, _) => LOOK,
            (true, [_]) => alone.take().unwrap_or(PART),
            (true, _) => PART,
        };
        let mut savepoint = connection.begin().await?;
        let limit: String = sqlx::query_scalar(include_str!("limit.sql")).bind(limit).fetch_one(&mut *savepoint).await?;
        if limit == NO_TIME {
            savepoint.rollback().await?;
            rows.unread.extend(keys.iter().map(|key| (*key).to_owned()));
            continue;
        }
        let mut query = with_keys(filled(sql).bind(&collection.name), &collection.key_type, keys);
        if let Some((document, round)) = limits {
            query = query.bind(document).bind(round);
        }
        match query.fetch_all(&mut *savepoint).await {
            Ok(found) => {
                // undone, because the path and the limit are for this statement alone
                savepoint.rollback().await?;
                rows.found.extend(found);
            }
            Err(error) if is_a_rows_fault(&error) || is_slow(&error) => {
                savepoint.rollback().await?;
                slow |= is_slow(&error);
                match keys {
                    [key] => rows.unbuildable.push(Unbuildable { key: (*key).to_owned(), error: sentence(&error) }),
                    _ => pending.extend([&keys[..keys.len() / 2], &keys[keys.len() / 2..]]),
                }
            }
            Err(error) => return Err(view_error(error)),
        }
    }
    Ok(rows)
}

fn is_slow(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code == Error::QUERY_CANCELED)
}

/// What a single row can cause: a subselect with two rows, data exceptions, integrity violations, what functions raise, and a document
/// beyond the server's own limits.
const ROW_FAULTS: [&str; 8] = ["21", "22", "23", "2F", "38", "39", "54", "P0"];
/// How Postgres says that a value would take over 1 GB, where it has no code for it but "internal error".
const OVER_A_GIGABYTE: &str = "invalid memory alloc request size";
/// What is neither the row's nor the view's: connections, rollbacks, resources, locks, operators, the system itself.
const ACCIDENTS: [&str; 8] = ["08", "25", "40", "53", "55", "57", "58", "XX"];

fn is_a_rows_fault(error: &sqlx::Error) -> bool {
    let over_a_gigabyte = error.as_database_error().is_some_and(|e| e.message().starts_with(OVER_A_GIGABYTE));
    over_a_gigabyte || code(error).is_some_and(|code| is_of(&code, &ROW_FAULTS))
}

/// Any other error, such as missing names and missing rights, is the view's: it repeats until somebody fixes it.
fn view_error(error: sqlx::Error) -> Error {
    match code(&error) {
        Some(code) if !is_of(&code, &ACCIDENTS) => Error::View(sentence(&error)),
        _ => Error::Postgres(error),
    }
}

fn is_of(code: &str, classes: &[&str]) -> bool {
    classes.iter().any(|class| code.starts_with(class))
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(|e| e.code()).map(|code| code.into_owned())
}

fn sentence(error: &sqlx::Error) -> String {
    let text = error.as_database_error().map_or_else(|| error.to_string(), |e| e.message().to_owned());
    crate::elastic::redact(&text)
}
