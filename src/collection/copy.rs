//! A copy of a database has the original's id, and so its indices. Whose they are is decided by a person.

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::Error;

/// What becomes of a database that is a copy of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfACopy {
    /// Nothing: nobody has said anything.
    Refused,
    /// It gets indices of its own.
    NewInstallation,
    /// It takes the original's indices, and the original is refused from then on.
    TakesOver,
}

impl OfACopy {
    /// Carries it out. What is no copy, on this server or from another, has nothing to say.
    pub async fn settle(self, connection: &mut PgConnection) -> Result<(), Error> {
        let row = sqlx::query(include_str!("copy.sql")).fetch_one(&mut *connection).await?;
        let (original, elsewhere): (Option<String>, bool) = (row.try_get("original")?, row.try_get("elsewhere")?);
        let statement = match (self, original) {
            (OfACopy::Refused, None) => return Ok(()),
            (OfACopy::Refused, Some(original)) => return Err(copy(&original)),
            (_, None) if !elsewhere => {
                return Err(Error::refused_with(
                    "this database is not a copy of another one",
                    "leave --new-installation and --take-over out",
                ));
            }
            (OfACopy::NewInstallation, _) => "select catchword.new_installation()",
            (OfACopy::TakesOver, _) => "select catchword.take_over()",
        };
        sqlx::query(statement).execute(connection).await?;
        Ok(())
    }
}

/// The refusal of a copy, with both ways out.
pub(super) fn copy(original: &str) -> Error {
    Error::refused_with(
        format!("this database is a copy of the database {original} on the same server, and the indices belong to {original}"),
        format!(
            "for indices of its own set another CATCHWORD_INDEX_PREFIX, then: catchword migrate --new-installation; \
             if this database takes the place of {original}: catchword migrate --take-over, or drop {original}"
        ),
    )
}

/// Whose indices are being taken over, until all of them are.
pub async fn previous_installation(connection: &mut PgConnection) -> Result<Option<Uuid>, Error> {
    Ok(sqlx::query_scalar(include_str!("previous_installation.sql")).fetch_one(connection).await?)
}

/// All of them are.
pub async fn taken_over(connection: &mut PgConnection) -> Result<(), Error> {
    sqlx::query(include_str!("taken_over.sql")).execute(connection).await?;
    Ok(())
}
