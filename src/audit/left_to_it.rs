//! What was left to an audit when a schema was taken in or let go: found as expected, and no drift.

use std::collections::{HashMap, HashSet};

use sqlx::Row;

use super::confirm::Difference;
use super::{Kind, Run};
use crate::Error;
use crate::collection::{Want, schema_in};

/// A schema that came, went, or both, since everything was last compared and repaired.
#[derive(Debug, Default)]
struct Change {
    went: bool,
    /// The number of the rows that were there when it came.
    floor: Option<i64>,
}

impl Run<'_> {
    /// The keys of these differences that nobody was meant to know of yet. A new index is given to readers only if it lacks nothing: there
    /// all of them count.
    pub(super) async fn left_to_it(&self, differences: &[Difference]) -> Result<HashSet<String>, Error> {
        let is_of_one_index = self.targets.len() < self.collection.targets.len();
        if differences.is_empty() || !self.collection.has_schemas() || is_of_one_index {
            return Ok(HashSet::new());
        }
        let rows = sqlx::query(include_str!("left_to_it.sql")).bind(&self.collection.name).fetch_all(&self.context.pool).await?;
        let mut changes = HashMap::new();
        for row in rows {
            let change = Change { went: row.try_get("went")?, floor: row.try_get("floor")? };
            changes.insert(row.try_get::<String, _>("schema")?, change);
        }
        let is_left = |found: &&Difference| changes.get(&schema_in(&found.key)).is_some_and(|change| change.explains(found));
        let (left, other): (Vec<&Difference>, Vec<&Difference>) = differences.iter().partition(is_left);
        // of several indices one may differ for another reason
        let other: HashSet<&str> = other.into_iter().map(|found| found.key.as_str()).collect();
        Ok(left.into_iter().filter(|found| !other.contains(found.key.as_str())).map(|found| found.key.clone()).collect())
    }
}

impl Change {
    /// A row of before has the floor as its number; a document of a schema that went has no row.
    fn explains(&self, found: &Difference) -> bool {
        let came = match found.want {
            Some(Want::Present(version)) => self.floor == Some(version),
            Some(Want::Hidden(version)) => self.floor == Some(version - 1),
            _ => false,
        };
        let gone = self.went && matches!(found.want, Some(Want::Never | Want::Deleted(_)));
        match found.kind {
            Kind::Missing | Kind::Stale | Kind::Untold => came,
            Kind::Orphan => came || gone,
            Kind::Ahead | Kind::Content | Kind::Stray | Kind::Dead => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elastic::Has;

    #[test]
    fn only_rows_of_before_and_documents_of_a_schema_that_went_were_left_to_it() {
        let found = |kind, want| Difference {
            key: "tenant_a/1".into(),
            kind,
            index: "note-000001".into(),
            want: Some(want),
            has: Has::Absent,
            fields: Default::default(),
        };
        let (came, went) = (Change { went: false, floor: Some(40) }, Change { went: true, floor: None });
        for (change, kind, want, left) in [
            (&came, Kind::Missing, Want::Present(40), true),
            (&came, Kind::Stale, Want::Present(40), true),
            (&came, Kind::Untold, Want::Hidden(41), true),
            (&came, Kind::Missing, Want::Present(44), false),
            (&came, Kind::Content, Want::Present(40), false),
            (&came, Kind::Dead, Want::Present(40), false),
            (&came, Kind::Orphan, Want::Never, false),
            (&went, Kind::Orphan, Want::Never, true),
            (&went, Kind::Orphan, Want::Deleted(37), true),
            (&went, Kind::Untold, Want::Deleted(37), false),
            (&went, Kind::Missing, Want::Present(40), false),
        ] {
            assert_eq!(change.explains(&found(kind, want)), left, "{change:?} {kind:?} {want:?}");
        }
    }
}
