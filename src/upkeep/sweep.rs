//! Removes tombstones that are old enough, in small bulks, in quiet minutes; then their records.
//!
//! A tombstone refuses late writes of its key's life. After a week (or what the configuration says, an hour at least) none can be on its way:
//! a request is given 30 s. Each is deleted under the version that was seen, so a key that came back is not touched. Its record goes when a
//! later look has seen that it is gone from every index, and only if it is still the same delete. Without record and document the key never
//! was: a document that turns up all the same, from a restored index say, is an orphan, and the next audit finds it.
//!
//! A record that lies above its key's row stays, however old it is: the row's version comes from it. Others that nothing needs any more
//! just go.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use tokio_util::sync::CancellationToken;

use super::Upkeep;
use crate::collection::Collection;
use crate::elastic::{Answer, Has, Target};
use crate::{Error, elastic, metrics};

/// Tombstones in one bulk.
const BULK: i32 = 500;
/// Bulks in one round: some seven million tombstones in a day without traffic.
const BULKS: usize = 10;
/// The limit of one request.
const LIMIT: Duration = Duration::from_secs(10);

/// How far a sweep has come. At the end it starts from scratch, a few rounds later.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    at: DateTime<Utc>,
    key: String,
    rest: u8,
}

/// Rounds to rest when there is nothing left to sweep: to ask costs a query.
const REST: u8 = 5;

impl Default for Cursor {
    fn default() -> Cursor {
        Cursor { at: DateTime::UNIX_EPOCH, key: String::new(), rest: 0 }
    }
}

/// A record that is old enough.
#[derive(FromRow)]
struct Old {
    key: String,
    revision: i64,
    recorded_at: DateTime<Utc>,
    /// What becomes of it: sweep, forget, keep.
    fate: String,
}

impl Upkeep {
    /// Sweeps a little, if nothing is due.
    pub(super) async fn sweep(&mut self, collection: &Collection, stop: &CancellationToken) -> Result<(), Error> {
        let mut cursor = self.cursors.remove(&collection.name).unwrap_or_default();
        if cursor.rest > 0 {
            cursor.rest -= 1;
            self.cursors.insert(collection.name.clone(), cursor);
            return Ok(());
        }
        for _ in 0..BULKS {
            if stop.is_cancelled() {
                break;
            }
            let old = self.old(collection, &mut cursor).await?;
            if old.is_empty() {
                cursor = Cursor { rest: REST, ..Cursor::default() };
                break;
            }
            self.sweep_these(collection, &old).await?;
        }
        self.cursors.insert(collection.name.clone(), cursor);
        Ok(())
    }

    async fn old(&self, collection: &Collection, cursor: &mut Cursor) -> Result<Vec<Old>, Error> {
        let old: Vec<Old> = sqlx::query_as(include_str!("old_records.sql"))
            .bind(&collection.name)
            .bind(self.context.config.worker.sweep_after.as_secs_f64())
            .bind(cursor.at)
            .bind(&cursor.key)
            .bind(BULK)
            .fetch_all(&self.context.pool)
            .await?;
        if let Some(last) = old.last() {
            (cursor.at, cursor.key) = (last.recorded_at, last.key.clone());
        }
        Ok(old)
    }

    async fn sweep_these(&self, collection: &Collection, old: &[Old]) -> Result<(), Error> {
        let with = |fate: &'static str| old.iter().filter(move |old| old.fate == fate);
        let gone: Vec<&Old> = with("sweep").collect();
        let keys: Vec<&str> = gone.iter().map(|old| old.key.as_str()).collect();
        let ids = collection.ids(&self.context.pool, &keys).await?;
        let ids = ids.of_all(&keys);
        let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        let mut swept = 0;
        for target in &collection.targets {
            let seen = self.seen(target, &ids).await?;
            let tombstones = gone.iter().zip(&ids).zip(&seen).filter_map(|((old, id), has)| Some((*id, tombstone(old.revision, has)?)));
            let tombstones: Vec<(&str, i64)> = tombstones.collect();
            let applied = self.context.elastic.sweep(target, &tombstones, LIMIT).await;
            swept += applied.map_err(|answer| failed("sweep tombstones of", target, answer))?;
        }
        metrics::record_swept(&collection.name, swept);
        // a later look, at every index: a delete is no proof either
        let mut absent = vec![true; gone.len()];
        for target in &collection.targets {
            let seen = self.seen(target, &ids).await?;
            absent.iter_mut().zip(&seen).for_each(|(absent, has)| *absent &= *has == Has::Absent);
        }
        let done = gone.iter().zip(&absent).filter(|(_, absent)| **absent).map(|(old, _)| *old);
        let (forget, keep) = ("select catchword.forget_records($1, $2, $3)", "select catchword.keep_records($1, $2, $3)");
        for (sql, records) in [(forget, done.chain(with("forget")).collect()), (keep, with("keep").collect::<Vec<&Old>>())] {
            sqlx::query(sql)
                .bind(&collection.name)
                .bind(records.iter().map(|old| old.key.as_str()).collect::<Vec<_>>())
                .bind(records.iter().map(|old| old.revision).collect::<Vec<_>>())
                .execute(&self.context.pool)
                .await?;
        }
        Ok(())
    }

    async fn seen(&self, target: &Target, ids: &[&str]) -> Result<Vec<Has>, Error> {
        let looked = self.context.elastic.look(target, ids, LIMIT).await;
        Ok(looked.map_err(|answer| failed("look at", target, answer))?)
    }
}

/// The version of the tombstone that may go: that of the recorded delete. A later one is of a later delete, which is not old; a document,
/// or an older version, is the loop's business.
pub fn tombstone(recorded: i64, has: &Has) -> Option<i64> {
    match has {
        Has::Present(version) if *version == recorded => Some(*version),
        _ => None,
    }
}

fn failed(doing: &str, target: &Target, answer: Answer) -> elastic::Error {
    elastic::Error::Request { doing: format!("{doing} {target}"), answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tombstone_of_this_delete_goes() {
        assert_eq!(tombstone(11, &Has::Present(11)), Some(11));
        for has in [Has::Present(9), Has::Present(10), Has::Present(12), Has::Present(13), Has::Absent, Has::Unknown("closed".into())] {
            assert_eq!(tombstone(11, &has), None, "{has:?}");
        }
    }
}
