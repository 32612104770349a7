//! What keeps vacuum from removing dead rows.

use serde::Serialize;
use sqlx::{FromRow, PgConnection};

use crate::Error;

/// Somebody who may still want to see old rows, so that vacuum keeps them.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct HeldBack {
    /// `session`, `prepared`, `slot` or `standby`.
    pub by: String,
    pub who: String,
    /// For how long; none: it has no clock.
    pub seconds: Option<f64>,
    /// How many transactions were begun since.
    pub transactions: i64,
}

pub(super) async fn held_back(connection: &mut PgConnection) -> Result<Vec<HeldBack>, Error> {
    Ok(sqlx::query_as(include_str!("held_back.sql")).fetch_all(connection).await?)
}
