//! Schedules what differs. The loop heals it like anything else: looks, writes what differs, settles by a later look.

use std::collections::BTreeSet;

use super::confirm::Confirmed;
use super::{Kind, Run};
use crate::{Error, database, job};

impl Run<'_> {
    /// Jobs and the audit's own row in one transaction: after a kill neither is there without the other.
    pub(super) async fn repair(&mut self, confirmed: &Confirmed) -> Result<(), Error> {
        let mut transaction = database::begin(&self.inner.pool).await?;
        if self.ledger.repair {
            // one job for a key, however many indices it differs in
            let mended = confirmed.differences.iter().filter(|found| found.kind != Kind::Dead && !found.key.contains('\0'));
            let keys: BTreeSet<&str> = mended.map(|difference| difference.key.as_str()).collect();
            let keys: Vec<&str> = keys.into_iter().collect();
            if !keys.is_empty() {
                let before = self.ledger.scheduled as i64;
                job::schedule_audit(&mut transaction, &self.collection.name, &keys, self.ledger.base, before).await?;
                self.ledger.scheduled += keys.len() as u64;
            }
        }
        self.ledger.note(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}
