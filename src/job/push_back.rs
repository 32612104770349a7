//! Charges a refusal to a job and reschedules it.

use sqlx::PgConnection;

use crate::Error;

/// Refusals until a job is buried: with the waiting in between, about a quarter of an hour in which a mapping can be fixed.
pub const MAX_ATTEMPTS: i32 = 5;

/// A refusal to be charged to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    pub id: i64,
    pub error: String,
    pub due: Due,
}

/// When the job is due again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It was fixed: the next look may see it agree.
    AtOnce,
    /// Exponentially later.
    Later,
}

/// Charges an attempt to each of these jobs.
pub async fn push_back(connection: &mut PgConnection, charges: &[Charge]) -> Result<(), Error> {
    if charges.is_empty() {
        return Ok(());
    }
    sqlx::query(include_str!("push_back.sql"))
        .bind(charges.iter().map(|c| c.id).collect::<Vec<_>>())
        .bind(charges.iter().map(|c| c.error.as_str()).collect::<Vec<_>>())
        .bind(charges.iter().map(|c| c.due == Due::AtOnce).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}
