//! The indices that must agree, as they are now.

use sqlx::{PgConnection, Row};

use super::Collection;
use crate::Error;
use crate::elastic::Target;

impl Collection {
    /// The index that readers see. None: there is no index yet.
    pub fn readers_target(&self) -> Option<&Target> {
        self.targets.first()
    }

    /// Are its targets still the ones that were read? A rebuild records a new one before it leaves the first job for it, so whoever
    /// asks *after* a claim, or before reading a document, never takes agreement with the old index for agreement with both. The same
    /// holds for its schemas: a row of one that was taken in since would look as if it were not there.
    pub async fn targets_are_current(&self, connection: &mut PgConnection) -> Result<bool, Error> {
        let Some(now) = sqlx::query(include_str!("targets.sql")).bind(&self.name).fetch_optional(connection).await? else {
            return Ok(false);
        };
        let (targets, schemas): (Vec<String>, Vec<String>) = (now.try_get("targets")?, now.try_get("schemas")?);
        let same_targets = targets.iter().map(String::as_str).eq(self.targets.iter().map(Target::index));
        Ok(same_targets && schemas.iter().map(String::as_str).eq(self.schemas()))
    }
}
