//! The indices that must agree, as they are now.

use sqlx::PgConnection;

use super::Collection;
use crate::Error;
use crate::elastic::Target;

impl Collection {
    /// The index that readers see. None: there is no index yet.
    pub fn readers_target(&self) -> Option<&Target> {
        self.targets.first()
    }

    /// Are its targets still the ones that were read? A rebuild records a new one before it leaves the first job for it, so whoever
    /// asks *after* a claim, or before reading a document, never takes agreement with the old index for agreement with both.
    pub async fn targets_are_current(&self, connection: &mut PgConnection) -> Result<bool, Error> {
        let now: Option<Vec<String>> = sqlx::query_scalar(include_str!("targets.sql")).bind(&self.name).fetch_optional(connection).await?;
        Ok(now.is_some_and(|now| now.iter().map(String::as_str).eq(self.targets.iter().map(Target::index))))
    }
}
