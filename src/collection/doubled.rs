//! Whether the view returns each key once.

use sqlx::{PgConnection, Row};

use super::Collection;
use super::statements::{filled, read_view};
use crate::Error;

/// Keys of one page: some tens of milliseconds.
const PAGE: i64 = 10_000;

impl Collection {
    /// A key that the view returns more than once. Reads every key, a page at a time.
    pub async fn doubled_key(&self, connection: &mut PgConnection) -> Result<Option<String>, Error> {
        for member in &self.members {
            let mut last: Option<String> = None;
            loop {
                let rows = read_view(connection, filled(&member.statements.doubled).bind(&last).bind(PAGE)).await?;
                let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
                let doubled: Option<String> = row.try_get("doubled")?;
                last = row.try_get("last")?;
                if doubled.is_some() {
                    return Ok(doubled);
                } else if last.is_none() {
                    break;
                }
            }
        }
        Ok(None)
    }
}
