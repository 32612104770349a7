//! Moves jobs that cannot be satisfied to the dead letters, where people find them.

use sqlx::PgConnection;

use crate::{Error, crash};

/// Why a job was given up by the loop. By hand it has a reason of its own (`migrations/0011_operator.sql`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Elasticsearch refused the document five times.
    Refused,
    /// The view raised an error for the row five times.
    Unbuildable,
    /// The document is above the byte limit.
    TooLarge,
    /// The key is none of this collection's.
    BadKey,
    /// Refused before, and too old.
    Expired,
    /// Elasticsearch stays ahead of Postgres.
    Ahead,
    /// A request with this document in it fails or gets no answer, five times, alone, while others pass.
    Unanswered,
}

impl Reason {
    /// All.
    pub const ALL: [Reason; 7] =
        [Reason::Refused, Reason::Unbuildable, Reason::TooLarge, Reason::BadKey, Reason::Expired, Reason::Ahead, Reason::Unanswered];

    /// As it stands in the table.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Refused => "refused",
            Reason::Unbuildable => "unbuildable",
            Reason::TooLarge => "too_large",
            Reason::BadKey => "bad_key",
            Reason::Expired => "expired",
            Reason::Ahead => "ahead",
            Reason::Unanswered => "unanswered",
        }
    }
}

/// A job to be buried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burial {
    pub id: i64,
    pub reason: Reason,
    pub error: String,
}

/// Moves these jobs to the dead letters.
pub async fn bury(connection: &mut PgConnection, burials: &[Burial]) -> Result<(), Error> {
    if burials.is_empty() {
        return Ok(());
    }
    sqlx::query(include_str!("bury.sql"))
        .bind(burials.iter().map(|b| b.id).collect::<Vec<_>>())
        .bind(burials.iter().map(|b| b.reason.name()).collect::<Vec<_>>())
        .bind(burials.iter().map(|b| b.error.as_str()).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    crash::point("buried-before-commit");
    Ok(())
}
