//! Looks again later, at nobody's cost: what is unknown is no refusal.

use sqlx::PgConnection;

use crate::Error;

/// Seconds until an unknown is looked at again, drawn between these: so that no other worker repeats it at once.
const LATER: (f64, f64) = (5.0, 30.0);

/// Makes these jobs due again in 5 to 30 s. Charges nothing.
pub async fn postpone(connection: &mut PgConnection, ids: &[i64]) -> Result<(), Error> {
    if !ids.is_empty() {
        sqlx::query(include_str!("postpone.sql")).bind(ids).bind(LATER.0).bind(LATER.1).execute(connection).await?;
    }
    Ok(())
}
