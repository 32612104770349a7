//! How fresh search was, counted in Postgres by those who settled.

use sqlx::{FromRow, PgConnection};

use crate::Error;

/// The windows that are counted, each of which ends now. A long one says how bad it was, a short one whether it goes on: an outage that is
/// over is no reason to get up.
pub(crate) const BURN_FAST_LONG_SECONDS: i64 = 3_600;
pub(crate) const BURN_FAST_SHORT_SECONDS: i64 = 300;
pub(crate) const BURN_SLOW_LONG_SECONDS: i64 = 6 * 3_600;
pub(crate) const BURN_SLOW_SHORT_SECONDS: i64 = 1_800;

const WINDOWS: [i64; 4] = [BURN_FAST_SHORT_SECONDS, BURN_FAST_LONG_SECONDS, BURN_SLOW_SHORT_SECONDS, BURN_SLOW_LONG_SECONDS];

/// The changes of a collection that looks have seen in Elasticsearch within a window that ends now.
///
/// Each counts once, when its job is settled, whoever wrote the document: the direct path's answer is no look. A collection of which
/// nothing is settled has no counts; other judgements tell that it stands still.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct Seen {
    pub collection: String,
    /// The window.
    pub seconds: i64,
    pub changes: i64,
    /// Those that were seen later than the objective says.
    pub slow: i64,
}

/// Of all collections, in each window.
pub(super) async fn seen(connection: &mut PgConnection) -> Result<Vec<Seen>, Error> {
    Ok(sqlx::query_as(include_str!("freshness.sql")).bind(WINDOWS).fetch_all(connection).await?)
}
