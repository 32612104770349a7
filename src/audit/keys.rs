//! From Postgres to Elasticsearch: every key of the table and of recorded deletes, in every index, in real time.

use std::collections::BTreeSet;

use futures_util::future::join;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::confirm::{Confirmed, Suspect, suspects};
use super::ledger::Stage;
use super::{Example, Run};
use crate::collection::{Keys, Want};
use crate::look::Seen;
use crate::{Error, crash};

/// Keys fetched at once: some ten milliseconds, seconds from a cold disk. At its end a page waits for its last look, so it is no small one.
const PAGE: usize = 20_000;
/// Keys in one look, as in a batch of the loop.
const LOOK: usize = 2_500;
/// Looks at the same time: while one server works on one, the other works on another.
const LOOKS: usize = 4;

impl Run<'_> {
    /// This stage: page by page looked at, confirmed, scheduled, and noted as done. The next page is fetched meanwhile.
    pub(super) async fn keys(&mut self) -> Result<(), Error> {
        let mut page = self.page_behind(self.ledger.cursor.as_deref()).await?;
        loop {
            self.check_stop()?;
            let picked: Vec<&str> = page.picked.iter().filter(|_| self.is_sampled()).map(String::as_str).collect();
            self.pacer.turn(picked.len()).await;
            let next = async {
                match &page.last {
                    Some(last) => self.page_behind(Some(last)).await.map(Some),
                    None => Ok(None),
                }
            };
            let (next, suspected) = join(next, self.look_at(&picked)).await;
            let confirmed = self.confirm(&self.targets, suspected?).await?;
            self.ledger.looked += picked.len() as u64;
            let Some(next) = next? else {
                self.ledger.next_stage_after(&confirmed);
                return self.note(&confirmed).await;
            };
            self.ledger.cursor = page.last;
            self.ledger.add(&confirmed);
            self.note(&confirmed).await?;
            page = next;
        }
    }

    async fn page_behind(&self, cursor: Option<&str>) -> Result<Keys, Error> {
        let Run { collection, ledger, .. } = self;
        let size = self.pacer.share_of(PAGE) as i64;
        let mut connection = self.context.pool.acquire().await?;
        match ledger.stage {
            Stage::Records => collection.records(&mut connection, cursor, ledger.since, size).await,
            _ => collection.keys(&mut connection, cursor, ledger.since, size).await,
        }
    }

    async fn look_at(&self, keys: &[&str]) -> Result<Vec<Suspect>, Error> {
        let (mut rest, mut suspected) = (keys.chunks(LOOK), Vec::new());
        let mut looks: FuturesUnordered<_> = rest.by_ref().take(LOOKS).map(|keys| self.suspected(keys)).collect();
        while let Some(look) = looks.next().await {
            suspected.extend(look?);
            looks.extend(rest.next().map(|keys| self.suspected(keys)));
        }
        Ok(suspected)
    }

    async fn suspected(&self, keys: &[&str]) -> Result<Vec<Suspect>, Error> {
        let seen = self.look(&self.targets, keys).await?;
        let mut suspected = suspects(&seen);
        if self.ledger.content || self.ledger.content_share.is_some() {
            suspected.extend(self.of_other_content(&seen).await?);
        }
        Ok(suspected)
    }

    /// Keys whose versions agree and whose documents do not: of all, or of a share of them.
    async fn of_other_content(&self, seen: &Seen<'_>) -> Result<Vec<Suspect>, Error> {
        let share = self.ledger.content_share.filter(|_| !self.ledger.content);
        let is_picked = || share.is_none_or(|share| rand::random_bool(share.clamp(0.0, 1.0)));
        let is_shown = |n: &usize| matches!(seen.wants[*n], Some(Want::Present(_))) && seen.agrees(*n) && is_picked();
        let keys = &seen.keys;
        let shown: Vec<usize> = (0..keys.len()).filter(is_shown).collect();
        let other = self.other_content(&self.targets, &shown.iter().map(|n| keys[*n]).collect::<Vec<_>>()).await?;
        let other: BTreeSet<&str> = other.keys().map(|(key, _)| key.as_str()).collect();
        let differing = shown.into_iter().filter(|n| other.contains(keys[*n]));
        Ok(differing.map(|n| Suspect { want: seen.wants[n], key: keys[n].to_owned(), content: true }).collect())
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
        // with a repair each of these has a job now
        let left = if self.repair { "pending" } else { "left" };
        let of_left = confirmed.left.len() as u64;
        for difference in confirmed.differences.iter().filter(|found| !confirmed.left.contains(&found.key)) {
            let example: Example = difference.example();
            self.count(difference.kind.name(), [example]);
        }
        for (name, count) in [("pending", confirmed.pending), (left, of_left), ("unknown", confirmed.unknown)] {
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
