//! Documents that readers see under a delete's number. By their numbers they are tombstones, so the loop takes them for gone; somebody
//! wrote them without a version, or with one that is not ours. Only their content tells.

use std::collections::HashMap;

use super::confirm::{Confirmed, Difference};
use super::kind::Kind;
use super::{Fields, Run};
use crate::collection::Want;
use crate::compare::compare;
use crate::elastic::Has;
use crate::{Error, database, job};

impl Run<'_> {
    /// Of these ids, which a point in time showed under odd versions, those that are shown now and that Postgres wants gone. Where Postgres
    /// has a row that the view returns, the numbers differ, and the other stages found it.
    pub(super) async fn shown_deletes(&self, n: usize, ids: &[&str]) -> Result<Confirmed, Error> {
        let mut confirmed = Confirmed::default();
        let ids: Vec<&str> = ids.iter().copied().filter(|id| !id.contains('\0')).collect();
        if ids.is_empty() {
            return Ok(confirmed);
        }
        let target = &self.targets[n];
        let before = self.wants(&ids).await?;
        let open = self.open_among(&ids).await?;
        let mut connection = self.context.pool.acquire().await?;
        let dead = job::dead_among(&mut connection, &self.collection.name, &ids).await?;
        drop(connection);
        // their documents are small in number: nobody should write to an index in this way
        let mut shown = HashMap::new();
        for ids in ids.chunks(100) {
            for (id, stored) in ids.iter().zip(self.sources(target, ids).await?) {
                shown.extend(stored.filter(|stored| stored.is_shown()).map(|stored| (*id, stored.version)));
            }
        }
        let now = self.wants(&ids).await?;
        for id in ids {
            let (Some(version), Some(want)) = (shown.get(id), now.get(id)) else { continue };
            let has = Has::Present(*version);
            if before.get(id) != Some(want) || !compare(*want, &has).is_satisfied() {
                continue;
            }
            if open.contains(id) {
                confirmed.pending += 1;
                continue;
            }
            let kind = if dead.contains(id) { Kind::Dead } else { Kind::Orphan };
            confirmed.differences.push(Difference {
                key: id.to_owned(),
                kind,
                index: target.index().to_owned(),
                want: Some(*want),
                has,
                fields: Fields::default(),
            });
        }
        Ok(confirmed)
    }

    async fn wants(&self, keys: &[&str]) -> Result<HashMap<String, Want>, Error> {
        let mut transaction = database::begin(&self.context.pool).await?;
        let (wants, _) = self.collection.wants(&mut transaction, keys).await?;
        transaction.commit().await?;
        Ok(wants)
    }
}
