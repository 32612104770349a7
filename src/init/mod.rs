//! From a table to a first view, mapping and `[[collection]]`: facts from Postgres, then choices, then text. It changes nothing in the
//! database and needs no schema of ours. The choices are pure.

mod facts;
mod refuse;

mod draft;

mod field;
mod key;
mod kind;
mod names;
mod related;
mod settings;
mod suspect;

mod mapping;
mod sql;
mod toml;

mod files;

use sqlx::PgConnection;

use crate::Error;
pub use draft::{Draft, LeftOut};
pub use files::{Files, Text, Wrote};

/// What the caller chose. What is left open is chosen here.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// As in SQL: perhaps with its schema, perhaps in quotes.
    pub table: String,
    /// The name of the collection.
    pub name: Option<String>,
    /// The name of the view, as in SQL.
    pub view: Option<String>,
    /// The column for the revision.
    pub revision: Option<String>,
}

/// Reads what Postgres knows of the table and of those around it, and chooses. A table that cannot be attached is refused, as `migrate`
/// would refuse it.
pub async fn init(connection: &mut PgConnection, wanted: &Wanted) -> Result<Draft, Error> {
    refuse::refuse_name(wanted.name.as_deref())?;
    let facts = facts::read(connection, wanted).await?;
    refuse::refuse(&facts)?;
    draft::draft(&facts)
}

#[cfg(test)]
mod tests;
