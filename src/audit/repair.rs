//! Schedules what differs. The loop fixes it like anything else: looks, writes what differs, settles by a later look.

use std::collections::BTreeSet;

use super::confirm::{Confirmed, Difference};
use super::{Kind, Run};
use crate::collection::{self, Want};
use crate::elastic::Has;
use crate::{Error, database, job};

/// Rows touched in one transaction: their locks are short.
const TOUCHED: usize = 1_000;

impl Run<'_> {
    /// Jobs and the audit's own row in one transaction: after a kill neither is there without the other.
    pub(super) async fn repair(&mut self, confirmed: &Confirmed) -> Result<(), Error> {
        let repaired: Vec<&Difference> = confirmed.differences.iter().filter(|found| self.ledger.repair && is_repairable(found)).collect();
        let (numbered, plain): (Vec<&Difference>, Vec<&Difference>) = repaired.into_iter().partition(|found| needs_a_number(found));
        self.draw_numbers(&numbered).await?;
        let mut transaction = database::begin(&self.context.pool).await?;
        // one job for a key, however many indices it differs in
        let keys: BTreeSet<&str> = plain.iter().chain(&numbered).map(|found| found.key.as_str()).collect();
        let keys: Vec<&str> = keys.into_iter().collect();
        if !keys.is_empty() {
            let before = self.ledger.scheduled as i64;
            job::schedule_audit(&mut transaction, &self.collection.name, &keys, self.ledger.base, before).await?;
            self.ledger.scheduled += keys.len() as u64;
        }
        self.ledger.note(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// New numbers where the old ones say that nothing differs: equal numbers must mean equal documents. A row that is locked is being
    /// changed, and draws its own.
    async fn draw_numbers(&self, differences: &[&Difference]) -> Result<(), Error> {
        let name = &self.collection.name;
        let seen = differences.iter().filter_map(|found| if let Has::Present(version) = found.has { Some(version) } else { None }).max();
        if let Some(above) = seen {
            collection::raise_revision(&self.context.pool, above).await?;
        }
        let (rows, gone): (Vec<&str>, Vec<&str>) = (of(differences, has_a_row), of(differences, |found| !has_a_row(found)));
        for keys in rows.chunks(TOUCHED) {
            let mut transaction = database::begin(&self.context.pool).await?;
            collection::draw(&mut transaction, name, keys).await?;
            transaction.commit().await?;
        }
        if !gone.is_empty() {
            let mut transaction = database::begin(&self.context.pool).await?;
            collection::record_gone(&mut transaction, name, &gone).await?;
            transaction.commit().await?;
        }
        Ok(())
    }
}

/// A dead letter needs a person, and so does an id that Postgres cannot even keep in a job.
fn is_repairable(found: &Difference) -> bool {
    found.kind != Kind::Dead && !found.key.contains('\0')
}

/// Another document under the right version, or a document under a delete's number.
fn needs_a_number(found: &Difference) -> bool {
    let odd = matches!(found.has, Has::Present(version) if version % 2 != 0);
    found.kind == Kind::Content || odd && matches!(found.kind, Kind::Orphan | Kind::Stray)
}

fn has_a_row(found: &Difference) -> bool {
    matches!(found.want, Some(Want::Present(_) | Want::Hidden(_)))
}

fn of<'d>(differences: &[&'d Difference], is: impl Fn(&Difference) -> bool) -> Vec<&'d str> {
    let keys: BTreeSet<&str> = differences.iter().filter(|found| is(found)).map(|found| found.key.as_str()).collect();
    keys.into_iter().collect()
}
