//! From Elasticsearch to Postgres: everything that an index shows to readers, from a point in time.

use futures_util::future::join;

use super::confirm::{Confirmed, Difference, Suspect};
use super::kind::Kind;
use super::{Fields, Run};
use crate::Error;
use crate::collection::Want;
use crate::elastic::{Has, PAGE, Page};

/// Keys that Postgres is asked for at once: some ten milliseconds, a second from a cold disk.
const ASKED: usize = 10_000;

impl Run<'_> {
    /// What this index shows, page by page. The next page is fetched while this one is looked for in Postgres.
    pub(super) async fn documents(&mut self, n: usize) -> Result<(), Error> {
        let open = match &self.ledger.point_in_time {
            Some(open) => open.clone(),
            None => self.context.elastic.open_point_in_time(&self.targets[n]).await?,
        };
        let size = self.pacer.share_of(PAGE);
        let mut page = self.context.elastic.page(&self.targets[n], &open, self.ledger.cursor.as_deref(), size).await?;
        loop {
            self.check_stop()?;
            let Some(Page { documents, after, point_in_time }) = page else {
                // it ran out while this audit was cut short, or its node was started again: this index from its beginning, in a new one
                tracing::info!(index = self.targets[n].index(), "the point in time is gone; this index is read again from the start");
                (self.ledger.cursor, self.ledger.point_in_time) = (None, None);
                self.ledger.stage_counts.clear();
                return Ok(());
            };
            let sampled: Vec<&(String, i64)> = documents.iter().filter(|_| self.is_sampled()).collect();
            self.pacer.turn(sampled.len()).await;
            if documents.is_empty() {
                self.context.elastic.close_point_in_time(&point_in_time).await;
                self.ledger.next_stage();
                return self.note(&Confirmed::default()).await;
            }
            let next = self.context.elastic.page(&self.targets[n], &point_in_time, Some(&after), size);
            let (next, confirmed) = join(next, self.unwanted(n, &sampled)).await;
            let confirmed = confirmed?;
            self.ledger.looked += sampled.len() as u64;
            (self.ledger.cursor, self.ledger.point_in_time) = (Some(after), Some(point_in_time));
            self.ledger.add(&confirmed);
            self.note(&confirmed).await?;
            page = next?;
        }
    }

    /// Of these documents, those that no row or record speaks for.
    async fn unwanted(&self, n: usize, documents: &[&(String, i64)]) -> Result<Confirmed, Error> {
        let ids: Vec<&str> = documents.iter().map(|(id, _)| id.as_str()).collect();
        let found = self.collection.keys_of(&self.context.pool, &ids).await?;
        let (keys, strays): (Vec<&str>, Vec<&str>) =
            found.iter().map(AsRef::as_ref).partition(|key| self.collection.key_type.fault(key).is_none());
        let mut confirmed = self.orphans(n, &keys).await?;
        confirmed.add(self.strays(n, &strays).await?);
        let odd = documents.iter().zip(&found).filter(|((_, version), _)| version % 2 != 0).map(|(_, key)| key.as_ref());
        let odd: Vec<&str> = odd.collect();
        confirmed.add(self.shown_deletes(n, &odd).await?);
        Ok(confirmed)
    }

    /// Documents with neither row nor record. Those that have one were looked at from Postgres' side.
    async fn orphans(&self, n: usize, keys: &[&str]) -> Result<Confirmed, Error> {
        let mut connection = self.context.pool.acquire().await?;
        let mut unrecorded = Vec::new();
        for keys in keys.chunks(ASKED) {
            unrecorded.extend(self.collection.unrecorded(&mut connection, keys).await?);
        }
        drop(connection);
        let suspects = unrecorded.into_iter().map(|key| Suspect::of(key, Some(Want::Never))).collect();
        self.confirm(&self.targets[n..=n], suspects).await
    }

    /// Documents whose ids cannot be keys: no row can ever want them.
    async fn strays(&self, n: usize, ids: &[&str]) -> Result<Confirmed, Error> {
        let (ids, unspeakable): (Vec<&str>, Vec<&str>) = ids.iter().partition(|id| !id.contains('\0'));
        let suspects = ids.into_iter().map(|id| Suspect::of(id.to_owned(), Some(Want::Never))).collect();
        let mut confirmed = self.confirm(&self.targets[n..=n], suspects).await?;
        for difference in confirmed.differences.iter_mut().filter(|difference| difference.kind == Kind::Orphan) {
            difference.kind = Kind::Stray;
        }
        // Postgres cannot hold such an id, not even in a job: it is told, and a person must see to it
        let index = self.targets[n].index();
        let told = |id: &str| Difference {
            key: id.to_owned(),
            kind: Kind::Stray,
            index: index.to_owned(),
            want: Some(Want::Never),
            has: Has::Present(0),
            fields: Fields::default(),
        };
        confirmed.differences.extend(unspeakable.into_iter().map(told));
        Ok(confirmed)
    }
}
