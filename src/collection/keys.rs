//! All keys of a collection, page by page: of its rows, and of recorded deletes.

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::Collection;
use super::statements::filled;
use crate::Error;

/// A key, and whether it is of the period that was asked for.
#[derive(Clone, Debug)]
pub struct Keyed {
    pub key: String,
    pub picked: bool,
}

impl Collection {
    /// The keys of the rows behind `after`, also of rows that the view does not return. Keyset pages hold no snapshot and can be
    /// resumed; fewer than `limit`: it was the last page.
    pub async fn keys(
        &self,
        connection: &mut PgConnection,
        after: Option<&str>,
        since: Option<DateTime<Utc>>,
        limit: i64,
    ) -> Result<Vec<Keyed>, Error> {
        let statements = &self.statements;
        let rows = match (after, since, &statements.first_keys_since, &statements.keys_since) {
            (None, Some(since), Some(first), _) => filled(first).bind(limit).bind(since).fetch_all(connection).await?,
            (Some(after), Some(since), _, Some(next)) => filled(next).bind(after).bind(limit).bind(since).fetch_all(connection).await?,
            (_, Some(_), ..) => {
                let name = &self.name;
                let remedy = "name its column in the configuration, period = \"updated\", then run: catchword migrate";
                return Err(Error::Refused(format!("collection {name} has no period; {remedy}")));
            }
            (None, None, ..) => filled(&statements.first_keys).bind(limit).fetch_all(connection).await?,
            (Some(after), None, ..) => filled(&statements.keys).bind(after).bind(limit).fetch_all(connection).await?,
        };
        rows.iter().map(keyed).collect()
    }

    /// The keys of recorded deletes behind `after`.
    pub async fn records(
        &self,
        connection: &mut PgConnection,
        after: Option<&str>,
        since: Option<DateTime<Utc>>,
        limit: i64,
    ) -> Result<Vec<Keyed>, Error> {
        let found = sqlx::query(include_str!("records.sql")).bind(&self.name).bind(after.unwrap_or("")).bind(since).bind(limit);
        found.fetch_all(connection).await?.iter().map(keyed).collect()
    }

    /// Of these keys, those that have neither a row nor the record of a delete.
    pub async fn unrecorded(&self, connection: &mut PgConnection, keys: &[&str]) -> Result<Vec<String>, Error> {
        // nearly always all of them
        let there: i64 = filled(&self.statements.count_rows).bind(keys).fetch_one(&mut *connection).await?.try_get(0)?;
        if there == keys.len() as i64 {
            return Ok(Vec::new());
        }
        let rows = filled(&self.statements.unrecorded).bind(&self.name).bind(keys).fetch_all(connection).await?;
        Ok(rows.iter().map(|row| row.try_get("k")).collect::<Result<_, _>>()?)
    }

    /// About how many rows and recorded deletes there are, for an estimate of the end.
    pub async fn estimate(&self, connection: &mut PgConnection) -> Result<(Option<u64>, u64), Error> {
        let row = sqlx::query(include_str!("estimate.sql")).bind(&self.statements.table).bind(&self.name).fetch_one(connection).await?;
        let (rows, records): (Option<i64>, i64) = (row.try_get("rows")?, row.try_get("records")?);
        Ok((rows.and_then(|rows| rows.try_into().ok()), records.try_into().unwrap_or(0)))
    }
}

fn keyed(row: &PgRow) -> Result<Keyed, Error> {
    Ok(Keyed { key: row.try_get("key")?, picked: row.try_get("picked")? })
}
