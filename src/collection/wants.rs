//! What Postgres wants of a key.

use std::collections::HashMap;

use sqlx::{PgConnection, Row};

use super::rows::Rows;
use super::{Collection, Unbuildable};
use crate::Error;

/// What Postgres wants of a key, and the number that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The view returns it: the row's version.
    Present(i64),
    /// There is a row, and the view does not return it: gone, at the row's version plus one.
    Hidden(i64),
    /// There is no row but the record of a delete: gone, at the recorded number.
    Deleted(i64),
    /// Neither row nor record.
    Never,
}

impl Collection {
    /// What Postgres wants of each of these keys, each read in one statement: in the view, or else wherever it may be. A key that could not
    /// be read is not in it. What cannot be a key of this collection has no row; the record of its delete may be there, if its document was
    /// found in the index.
    pub async fn wants(&self, connection: &mut PgConnection, keys: &[&str]) -> Result<(HashMap<String, Want>, Vec<Unbuildable>), Error> {
        let (fit, unfit): (Vec<&str>, Vec<&str>) = keys.iter().partition(|key| self.key_type.fault(key).is_none());
        let Rows { found, mut unbuildable, mut unread } = self.rows(connection, |statements| &statements.versions, &fit).await?;
        let mut wants: HashMap<String, Want> = HashMap::with_capacity(keys.len());
        for row in found {
            let (keys, versions): (Vec<String>, Vec<i64>) = (row.try_get("keys")?, row.try_get("versions")?);
            wants.extend(keys.into_iter().zip(versions.into_iter().map(Want::Present)));
        }
        // of what the view did not return, the second statement alone decides: a row that comes and goes between the two is as it is there
        let failed = |key: &str| unbuildable.iter().any(|fault| fault.key == key) || unread.iter().any(|unread| unread == key);
        let rest: Vec<&str> = fit.into_iter().filter(|key| !wants.contains_key(*key) && !failed(key)).collect();
        let absent = self.rows(connection, |statements| &statements.wants, &rest).await?;
        wants.extend(rest.iter().chain(&unfit).map(|key| ((*key).to_owned(), Want::Never)));
        unbuildable.extend(absent.unbuildable);
        unread.extend(absent.unread);
        // of these nothing is known: taken for "never", they would be settled
        for key in unbuildable.iter().map(|fault| &fault.key).chain(&unread) {
            wants.remove(key);
        }
        for row in absent.found {
            let (state, key, version): (&str, String, i64) = (row.try_get("state")?, row.try_get("key")?, row.try_get("version")?);
            let seen = match state {
                "present" => Want::Present(version),
                "row" => Want::Hidden(version),
                _ => Want::Deleted(version),
            };
            if let Some(want) = wants.get_mut(&key) {
                *want = stronger(*want, seen);
            }
        }
        if !unfit.is_empty() {
            let recorded = sqlx::query(include_str!("recorded.sql")).bind(&self.name).bind(&unfit).fetch_all(connection).await?;
            for row in recorded {
                wants.insert(row.try_get("key")?, Want::Deleted(row.try_get("version")?));
            }
        }
        Ok((wants, unbuildable))
    }
}

/// A row in the view is present whatever else is recorded of its key; a row outweighs the record of an earlier delete.
fn stronger(a: Want, b: Want) -> Want {
    let rank = |want: &Want| match want {
        Want::Present(_) => 3,
        Want::Hidden(_) => 2,
        Want::Deleted(_) => 1,
        Want::Never => 0,
    };
    if rank(&b) > rank(&a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_outweighs_the_record_of_an_earlier_delete() {
        assert_eq!(stronger(Want::Deleted(11), Want::Hidden(21)), Want::Hidden(21));
        assert_eq!(stronger(Want::Present(20), Want::Hidden(21)), Want::Present(20));
        assert_eq!(stronger(Want::Hidden(21), Want::Present(20)), Want::Present(20));
        assert_eq!(stronger(Want::Never, Want::Deleted(11)), Want::Deleted(11));
        assert_eq!(stronger(Want::Present(20), Want::Deleted(31)), Want::Present(20));
    }
}
