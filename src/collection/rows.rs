//! One key must not fail its batch: a row for which the view raises an error is found by halving.

use sqlx::postgres::PgRow;
use sqlx::{Connection, PgConnection};

use super::statements::filled;
use crate::Error;

/// A key whose document cannot be built, and what Postgres said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbuildable {
    pub key: String,
    pub error: String,
}

/// Runs a statement over keys. An error that a single row can cause (a cast, a division, a `raise`) halves the keys until that row
/// is alone; every other error is the whole collection's.
pub(super) async fn rows(
    connection: &mut PgConnection,
    sql: &str,
    collection: &str,
    keys: &[&str],
    limits: Option<(i64, i64)>,
) -> Result<(Vec<PgRow>, Vec<Unbuildable>), Error> {
    let (mut found, mut unbuildable) = (Vec::new(), Vec::new());
    let mut pending = vec![keys];
    while let Some(keys) = pending.pop() {
        if keys.is_empty() {
            continue;
        }
        let mut savepoint = connection.begin().await?;
        let mut query = filled(sql).bind(collection).bind(keys);
        if let Some((document, round)) = limits {
            query = query.bind(document).bind(round);
        }
        match query.fetch_all(&mut *savepoint).await {
            Ok(rows) => {
                savepoint.commit().await?;
                found.extend(rows);
            }
            Err(error) if is_a_rows_fault(&error) => {
                savepoint.rollback().await?;
                match keys {
                    [key] => unbuildable.push(Unbuildable {
                        key: (*key).to_owned(),
                        error: sentence(&error),
                    }),
                    _ => pending.extend([&keys[..keys.len() / 2], &keys[keys.len() / 2..]]),
                }
            }
            Err(error) => return Err(view_error(error)),
        }
    }
    Ok((found, unbuildable))
}

/// Data exceptions, integrity violations, and what a function raised by itself.
fn is_a_rows_fault(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code.starts_with("22") || code.starts_with("23") || code == "P0001")
}

/// Missing names and missing rights (class 42, 3F) are the view's; they are no accident of the connection, and repeat until mended.
fn view_error(error: sqlx::Error) -> Error {
    match code(&error) {
        Some(code) if code.starts_with("42") || code.starts_with("3F") || code.starts_with("0A") => Error::View(sentence(&error)),
        _ => Error::Postgres(error),
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(|e| e.code()).map(|code| code.into_owned())
}

fn sentence(error: &sqlx::Error) -> String {
    let text = error
        .as_database_error()
        .map_or_else(|| error.to_string(), |e| e.message().to_owned());
    crate::elastic::redact(&text)
}
