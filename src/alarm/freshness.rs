//! How fresh search was, counted in Postgres by those who settled.

use sqlx::{FromRow, PgConnection};

use super::thresholds::{BURN_FAST_LONG_SECONDS, BURN_FAST_SHORT_SECONDS, BURN_SLOW_LONG_SECONDS, BURN_SLOW_SHORT_SECONDS};
use crate::Error;

const WINDOWS: [i64; 4] = [BURN_FAST_SHORT_SECONDS, BURN_FAST_LONG_SECONDS, BURN_SLOW_SHORT_SECONDS, BURN_SLOW_LONG_SECONDS];

/// The changes of a collection that looks have seen in Elasticsearch within a window that ends now.
///
/// Each counts once, when its job is settled, whoever wrote the document: the direct path's answer is no look. A collection of which
/// nothing is settled has no counts; that it stands still is for other judgements to say.
#[derive(Clone, Debug, FromRow)]
pub struct Seen {
    pub collection: String,
    /// The window.
    pub seconds: i64,
    pub changes: i64,
    /// Those that were seen later than the objective says.
    pub slow: i64,
}

pub(super) async fn seen(connection: &mut PgConnection) -> Result<Vec<Seen>, Error> {
    Ok(sqlx::query_as(include_str!("freshness.sql")).bind(WINDOWS).fetch_all(connection).await?)
}
