//! Each shard of an index has a sentinel: a tombstone under a reserved id, which readers do not see. Their version is remembered in
//! Postgres once the index has acknowledged them all. An index in which one is lower, or gone, or that is another index under the old name,
//! has lost acknowledged writes, and perhaps others with it: an audit is asked for. One that is higher than anything that was sent tells
//! that Postgres itself went back: then numbers are given twice, and everything is compared by content.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use super::Upkeep;
use crate::Error;
use crate::collection::SENTINEL;
use crate::elastic::{Answer, Body, Has, Refresh, Target, Write};

/// The limit of one question.
const LIMIT: Duration = Duration::from_secs(5);
/// Ids whose shards are asked for at once: they have to fit into a request's first line.
const ASKED: usize = 100;
/// Sentinels of an index at most: enough for more than a hundred shards.
const MOST: usize = 1_000;

/// Sentinels for each shard of an index that does not tell where they are: one shard in twenty thousand has none of them.
const FOR_A_SHARD: usize = 10;

/// What was remembered of an index before it was looked at, and the number to renew it with.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Remembered {
    collection: String,
    target: String,
    uuid: Option<String>,
    revision: Option<i64>,
    /// How many sentinels were acknowledged under it.
    documents: Option<usize>,
    next: i64,
}

/// What is to be remembered now.
struct Renewed {
    collection: String,
    target: String,
    uuid: String,
    revision: i64,
    documents: usize,
    lost: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Judged {
    /// There was no sentinel yet.
    First,
    Kept,
    Lost(String),
    /// It could not be seen.
    Unknown,
}

impl Upkeep {
    /// Looks at the sentinel of each index, and renews it. One that fails does not keep the others waiting.
    pub(super) async fn renew_sentinels(&mut self, sentinels: Vec<Remembered>) -> Result<(), Error> {
        let (mut renewed, mut first_error) = (Vec::new(), Ok(()));
        for before in sentinels {
            match self.renew(&before).await {
                Ok(now) => renewed.extend(now),
                Err(error) => first_error = first_error.and(Err(error)),
            }
        }
        self.remember(&renewed).await.and(first_error)
    }

    /// None: there is nothing to remember.
    async fn renew(&mut self, before: &Remembered) -> Result<Option<Renewed>, Error> {
        let target = Target::new(&before.target);
        let (uuid, shards) = self.context.elastic.identity(&target).await?;
        let documents = self.sentinels_needed(&target, &uuid, shards).await?;
        let remembered = before.documents.unwrap_or(0);
        let ids: Vec<String> = (0..documents.max(remembered)).map(id).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let elastic = &self.context.elastic;
        let seen = elastic.look(&target, &ids[..remembered.max(1)], LIMIT).await;
        let seen = seen.unwrap_or_else(|answer| vec![Has::Unknown(answer.to_string())]);
        let judged = judge(before.uuid.as_deref().zip(before.revision), &uuid, &seen);
        if judged == Judged::Unknown {
            return Ok(None);
        }
        // also of an index that was made again: what it has beyond our memory is the same proof
        if let Some(version) = self.never_sent(before, &seen).await? {
            let (collection, index) = (&before.collection, &before.target);
            let why = format!("index {index} has a sentinel at version {version}, which this database never sent: the database went back");
            tracing::error!(collection, index, "{why}; the sequence is raised at the next tick, and audits with content are requested");
            let noted = sqlx::query("select catchword.note_doubt($1, $2, $3, $4)").bind(collection).bind(index).bind(version).bind(&why);
            noted.execute(&self.context.pool).await?;
            return Ok(None);
        }
        let writes = ids[..documents].iter().map(|key| Write { key, version: before.next, body: Body::Tombstone });
        let answers = elastic.bulk(&target, &writes.collect::<Vec<_>>(), Refresh::No, LIMIT).await;
        // only what was acknowledged is remembered; who was faster has remembered more
        let acknowledged = answers.len() == documents && answers.iter().all(|answer| *answer == Answer::Applied);
        let renewed = |revision, lost| Renewed {
            collection: before.collection.clone(),
            target: before.target.clone(),
            uuid,
            revision,
            documents,
            lost,
        };
        Ok(match judged {
            Judged::Lost(why) => {
                let (collection, index) = (&before.collection, &before.target);
                tracing::error!(collection, index, "{why}; an audit is requested, which finds what is missing");
                Some(renewed(if acknowledged { before.next } else { 1 }, Some(why)))
            }
            _ if acknowledged => Some(renewed(before.next, None)),
            _ => None,
        })
    }

    /// The version of a sentinel that came from nowhere. What was sent by another worker since the round began is asked for, too.
    async fn never_sent(&self, before: &Remembered, seen: &[Has]) -> Result<Option<i64>, Error> {
        let version = |has: &Has| if let Has::Present(version) = has { Some(*version) } else { None };
        let above: Vec<i64> =
            seen.iter().filter_map(version).filter(|version| before.revision.is_some_and(|known| known > 1 && *version > known)).collect();
        if above.is_empty() {
            return Ok(None);
        }
        let asked = sqlx::query_scalar(include_str!("tried.sql")).bind(&before.collection).bind(&before.target).bind(above);
        Ok(asked.fetch_one(&self.context.pool).await?)
    }

    /// So many, that each shard has one. Which shard an id is in, only the index can say: once, since it never changes.
    async fn sentinels_needed(&mut self, target: &Target, uuid: &str, shards: usize) -> Result<usize, Error> {
        if shards == 1 {
            return Ok(1);
        }
        if let Some(needed) = self.sentinels_needed.get(uuid) {
            return Ok(*needed);
        }
        let (mut needed, mut reached) = (0, BTreeSet::new());
        while reached.len() < shards && needed < MOST {
            let more: Vec<String> = (needed..needed + shards.min(ASKED)).map(id).collect();
            match self.context.elastic.shards_of(target, &more).await {
                Ok(shards) => reached.extend(shards),
                Err(error) if error.is_not_offered() => {
                    tracing::info!(
                        index = target.index(),
                        "which shard a sentinel is in is not told, so there are {FOR_A_SHARD} for each: {error}"
                    );
                    needed = (shards * FOR_A_SHARD).min(MOST);
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            needed += more.len();
        }
        self.sentinels_needed.insert(uuid.to_owned(), needed);
        Ok(needed)
    }

    /// A loss is kept for `status` and the metrics until an audit has come to its end, and the audit is asked for.
    async fn remember(&self, renewed: &[Renewed]) -> Result<(), Error> {
        if renewed.is_empty() {
            return Ok(());
        }
        let texts = |pick: fn(&Renewed) -> &String| renewed.iter().map(pick).cloned().collect::<Vec<_>>();
        let question = || {
            sqlx::query(include_str!("renew_sentinels.sql"))
                .bind(texts(|now| &now.collection))
                .bind(texts(|now| &now.target))
                .bind(texts(|now| &now.uuid))
                .bind(renewed.iter().map(|now| now.revision).collect::<Vec<_>>())
                .bind(renewed.iter().map(|now| now.lost.clone()).collect::<Vec<_>>())
                .bind(renewed.iter().map(|now| now.documents as i32).collect::<Vec<_>>())
        };
        self.kept.ask(&self.context.pool, question).await?;
        Ok(())
    }
}

/// The id of the nth sentinel.
fn id(n: usize) -> String {
    if n == 0 { SENTINEL.to_owned() } else { format!("{SENTINEL}-{n}") }
}

/// Pure: what was remembered before the look, and what the index has of each sentinel.
fn judge(remembered: Option<(&str, i64)>, uuid: &str, seen: &[Has]) -> Judged {
    if seen.is_empty() || seen.iter().any(|has| matches!(has, Has::Unknown(_))) {
        return Judged::Unknown;
    }
    let Some((before, revision)) = remembered else { return Judged::First };
    if before != uuid {
        return Judged::Lost("it is another index under the old name: created again, or restored from a snapshot".into());
    }
    // the lowest of them
    match seen.iter().map(|has| if let Has::Present(version) = has { *version } else { 0 }).min() {
        Some(0) => Judged::Lost(format!("the index lost acknowledged writes: version {revision} is gone")),
        Some(version) if version < revision => {
            Judged::Lost(format!("the index lost acknowledged writes: it went back from version {revision} to {version}"))
        }
        _ => Judged::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_went_back_or_is_another_has_lost_writes() {
        let before = Some(("a", 11));
        let lost = |uuid, has| matches!(judge(before, uuid, &[Has::Present(11), has]), Judged::Lost(_));
        assert!(lost("a", Has::Absent));
        assert!(lost("a", Has::Present(9)));
        assert!(lost("b", Has::Present(11)));
        for has in [Has::Present(11), Has::Present(13)] {
            assert_eq!(judge(before, "a", &[has, Has::Present(11)]), Judged::Kept);
        }
        assert_eq!(judge(None, "a", &[Has::Absent]), Judged::First);
        assert_eq!(judge(before, "a", &[Has::Absent, Has::Unknown("closed".into())]), Judged::Unknown);
        assert_eq!(judge(before, "a", &[]), Judged::Unknown);
    }
}
