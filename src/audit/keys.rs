//! From Postgres to Elasticsearch: every key of the table and of recorded deletes, in every index, in real time.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::{join, join_all};

use super::confirm::{Confirmed, Suspect, suspects};
use super::glance::Seen;
use super::ledger::Stage;
use super::{Example, Run};
use crate::collection::{Keyed, Want};
use crate::{Error, crash};

/// Keys fetched at once: a few milliseconds.
const PAGE: i64 = 10_000;
/// Keys in one look, as in a batch of the loop.
const LOOK: usize = 2_500;
impl Run<'_> {
    /// This stage: page by page looked at, confirmed, scheduled, and noted as done. The next page is fetched meanwhile.
    pub(super) async fn keys(&mut self) -> Result<(), Error> {
        let mut page = self.page_behind(self.ledger.cursor.as_deref()).await?;
        loop {
            self.check_stop()?;
            let picked: Vec<&str> = page.iter().filter(|keyed| keyed.picked && self.is_sampled()).map(|keyed| keyed.key.as_str()).collect();
            self.pacer.turn(picked.len()).await;
            let last = page.last().filter(|_| page.len() as i64 == PAGE).map(|keyed| keyed.key.clone());
            let next = async {
                match &last {
                    Some(last) => self.page_behind(Some(last)).await,
                    None => Ok(Vec::new()),
                }
            };
            let (next, suspected) = join(next, self.glance_at(&picked)).await;
            let confirmed = self.confirm(&self.targets, suspected?).await?;
            self.ledger.looked += picked.len() as u64;
            if last.is_none() {
                self.ledger.next_stage_after(&confirmed);
                return self.note(&confirmed).await;
            }
            self.ledger.cursor = last;
            self.ledger.add(&confirmed);
            self.note(&confirmed).await?;
            page = next?;
        }
    }

    async fn page_behind(&self, cursor: Option<&str>) -> Result<Vec<Keyed>, Error> {
        let Run { collection, ledger, .. } = self;
        let mut connection = self.inner.pool.acquire().await?;
        match ledger.stage {
            Stage::Records => collection.records(&mut connection, cursor, ledger.since, PAGE).await,
            _ => collection.keys(&mut connection, cursor, ledger.since, PAGE).await,
        }
    }

    /// All looks of a page at the same time: while one server works on one, the other works on another.
    async fn glance_at(&self, keys: &[&str]) -> Result<Vec<Suspect>, Error> {
        let mut suspected = Vec::new();
        for look in join_all(keys.chunks(LOOK).map(|keys| self.suspected(keys))).await {
            suspected.extend(look?);
        }
        Ok(suspected)
    }

    async fn suspected(&self, keys: &[&str]) -> Result<Vec<Suspect>, Error> {
        let seen = self.glance(&self.targets, keys).await?;
        let mut suspected = suspects(keys, &seen);
        if self.ledger.content {
            suspected.extend(self.of_other_content(keys, &seen).await?);
        }
        Ok(suspected)
    }

    /// Keys whose versions agree and whose documents do not.
    async fn of_other_content(&self, keys: &[&str], seen: &HashMap<String, Seen>) -> Result<Vec<Suspect>, Error> {
        let shown = |key: &&str| seen.get(*key).is_some_and(|seen| matches!(seen.want, Some(Want::Present(_))) && seen.agrees());
        let shown: Vec<&str> = keys.iter().copied().filter(shown).collect();
        let other: BTreeSet<String> = self.other_content(&self.targets, &shown).await?.into_iter().map(|(key, _)| key).collect();
        Ok(other.into_iter().map(|key| Suspect { want: seen.get(&key).and_then(|seen| seen.want), key, content: true }).collect())
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.ledger.sample.is_none_or(|share| rand::random_bool(share.clamp(0.0, 1.0)))
    }

    /// Schedules what was found and keeps where the audit stands, in one short transaction.
    pub(super) async fn note(&mut self, confirmed: &Confirmed) -> Result<(), Error> {
        self.repair(confirmed).await?;
        crash::point("audit-noted");
        (self.watch)(&self.report());
        Ok(())
    }
}

impl super::Ledger {
    pub(super) fn add(&mut self, confirmed: &Confirmed) {
        for difference in &confirmed.differences {
            let example: Example = difference.example();
            self.count(difference.kind.name(), [example]);
        }
        for (name, count) in [("pending", confirmed.pending), ("unknown", confirmed.unknown)] {
            if count > 0 {
                *self.stage_counts.entry(name.to_owned()).or_default() += count;
            }
        }
    }

    pub(super) fn next_stage_after(&mut self, confirmed: &Confirmed) {
        self.add(confirmed);
        self.next_stage();
    }
}
