//! Who keeps vacuum from removing dead rows.

use sqlx::{FromRow, PgConnection};

use crate::Error;

/// Somebody who may still want to see old rows, so that vacuum keeps them.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct Holder {
    /// `session`, `prepared`, `slot` or `standby`.
    pub by: String,
    /// In words, for people.
    pub who: String,
    /// For how long; none: it has no clock.
    pub seconds: Option<f64>,
    /// How many transactions were begun since.
    pub transactions: i64,
    /// What tells it from others of its kind.
    pub name: String,
    /// The oldest transaction that it needs.
    pub xmin: Option<String>,
}

/// All of them, the oldest first.
pub(super) async fn holders(connection: &mut PgConnection) -> Result<Vec<Holder>, Error> {
    Ok(sqlx::query_as(include_str!("vacuum.sql")).fetch_all(connection).await?)
}
