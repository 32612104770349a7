//! All keys of a collection, page by page: of its rows, and of recorded deletes.

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::Collection;
use super::statements::{filled, with_keys};
use crate::Error;

/// A page of keys, in the order of the key's own type.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Those of the period that was asked for.
    pub picked: Vec<String>,
    /// Behind which the next page begins; none: this is the last one.
    pub last: Option<String>,
}

impl Collection {
    /// The keys of the rows behind `after`, also of rows that the view does not return. Keyset pages hold no snapshot and can be
    /// resumed.
    pub async fn keys(
        &self,
        connection: &mut PgConnection,
        after: Option<&str>,
        since: Option<DateTime<Utc>>,
        limit: i64,
    ) -> Result<Keys, Error> {
        let Some((at, after)) = self.at_cursor(after) else { return Ok(Keys { picked: Vec::new(), last: None }) };
        let statements = &self.members[at].statements;
        let page = match (after, since, &statements.first_keys_since, &statements.keys_since) {
            (None, Some(since), Some(first), _) => filled(first).bind(limit).bind(since),
            (Some(after), Some(since), _, Some(next)) => filled(next).bind(after).bind(limit).bind(since),
            (_, Some(_), ..) => {
                let name = &self.name;
                let remedy = "name its column in the configuration, period = \"updated\", then run: catchword migrate";
                return Err(Error::refused_with(format!("collection {name} has no period"), remedy));
            }
            (None, None, ..) => filled(&statements.first_keys).bind(limit),
            (Some(after), None, ..) => filled(&statements.keys).bind(after).bind(limit),
        };
        Ok(self.behind(at, Keys::of(&page.fetch_one(connection).await?)?))
    }

    /// The keys of recorded deletes behind `after`.
    pub async fn records(
        &self,
        connection: &mut PgConnection,
        after: Option<&str>,
        since: Option<DateTime<Utc>>,
        limit: i64,
    ) -> Result<Keys, Error> {
        let page = sqlx::query(include_str!("records.sql")).bind(&self.name).bind(after.unwrap_or("")).bind(since).bind(limit);
        Keys::of(&page.fetch_one(connection).await?)
    }

    /// Of these keys, those that have neither a row nor the record of a delete.
    pub async fn unrecorded(&self, connection: &mut PgConnection, keys: &[&str]) -> Result<Vec<String>, Error> {
        // nearly always all of them
        let mut unrecorded = Vec::new();
        for (member, keys) in self.by_member(keys) {
            let counted = with_keys(filled(&member.statements.count_rows), &self.key_type, &keys).fetch_one(&mut *connection).await?;
            let there: i64 = counted.try_get(0)?;
            if there == keys.len() as i64 {
                continue;
            }
            for row in filled(&member.statements.unrecorded).bind(&self.name).bind(keys).fetch_all(&mut *connection).await? {
                unrecorded.push(row.try_get("k")?);
            }
        }
        Ok(unrecorded)
    }

    /// About how many rows and recorded deletes there are, for an estimate of the end.
    pub async fn estimate(&self, connection: &mut PgConnection) -> Result<(Option<u64>, u64), Error> {
        let row = sqlx::query(include_str!("estimate.sql")).bind(&self.name).fetch_one(connection).await?;
        let (rows, records): (Option<i64>, i64) = (row.try_get("rows")?, row.try_get("records")?);
        Ok((rows.and_then(|rows| rows.try_into().ok()), records.try_into().unwrap_or(0)))
    }
}

impl Keys {
    fn of(row: &PgRow) -> Result<Keys, Error> {
        Ok(Keys { picked: row.try_get("keys")?, last: row.try_get("last")? })
    }
}
