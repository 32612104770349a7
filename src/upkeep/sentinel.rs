//! One document of each index is its sentinel: a tombstone under a reserved id, which readers do not see. Its version is remembered in
//! Postgres once the index has acknowledged it. An index that has a lower one, or none, or that is another index under the old name, has
//! lost acknowledged writes, and perhaps others with it: an audit is asked for.
//!
//! It says so of the shard that it is in. What another shard alone has lost, the next audit finds.

use std::time::Duration;

use serde::Deserialize;

use super::Upkeep;
use crate::Error;
use crate::collection::SENTINEL;
use crate::elastic::{Answer, Body, Has, Refresh, Target, Write};

/// The limit of one question.
const LIMIT: Duration = Duration::from_secs(5);

/// What was remembered of an index before it was looked at, and the number to renew it with.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Remembered {
    collection: String,
    target: String,
    uuid: Option<String>,
    revision: Option<i64>,
    next: i64,
}

/// What is to be remembered now.
struct Renewed {
    collection: String,
    target: String,
    uuid: String,
    revision: i64,
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
    pub(super) async fn renew_sentinels(&self, sentinels: Vec<Remembered>) -> Result<(), Error> {
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
    async fn renew(&self, before: &Remembered) -> Result<Option<Renewed>, Error> {
        let (elastic, target) = (&self.catchword.inner.elastic, Target::new(&before.target));
        let uuid = elastic.index_uuid(&target).await?;
        let seen = elastic.look(&target, &[SENTINEL], LIMIT).await.unwrap_or_else(|answer| vec![Has::Unknown(answer.to_string())]);
        let has = seen.into_iter().next().unwrap_or_else(|| Has::Unknown("no answer".into()));
        let judged = judge(before.uuid.as_deref().zip(before.revision), &uuid, &has);
        if judged == Judged::Unknown {
            return Ok(None);
        }
        let write = Write { key: SENTINEL, version: before.next, body: Body::Tombstone };
        let answer = elastic.bulk(&target, &[write], Refresh::No, LIMIT).await.into_iter().next();
        // only what was acknowledged is remembered; who was faster has remembered more
        let acknowledged = answer == Some(Answer::Applied);
        let renewed =
            |revision, lost| Renewed { collection: before.collection.clone(), target: before.target.clone(), uuid, revision, lost };
        Ok(match judged {
            Judged::Lost(why) => {
                let (collection, index) = (&before.collection, &before.target);
                tracing::error!(collection, index, "{why}; an audit is asked for, which finds what is missing");
                Some(renewed(if acknowledged { before.next } else { 1 }, Some(why)))
            }
            _ if acknowledged => Some(renewed(before.next, None)),
            _ => None,
        })
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
        };
        self.kept.ask(&self.catchword.inner.pool, question).await?;
        Ok(())
    }
}

/// Pure: what was remembered before the look, and what the index has.
fn judge(remembered: Option<(&str, i64)>, uuid: &str, has: &Has) -> Judged {
    match (remembered, has) {
        (_, Has::Unknown(_)) => Judged::Unknown,
        (None, _) => Judged::First,
        (Some((before, _)), _) if before != uuid => {
            Judged::Lost("it is another index under the old name: made anew, or restored from a snapshot".into())
        }
        (Some((_, revision)), Has::Absent) => Judged::Lost(format!("the index lost acknowledged writes: version {revision} is gone")),
        (Some((_, revision)), Has::Present(version)) if *version < revision => {
            Judged::Lost(format!("the index lost acknowledged writes: it went back from version {revision} to {version}"))
        }
        (Some(_), Has::Present(_)) => Judged::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_went_back_or_is_another_has_lost_writes() {
        let before = Some(("a", 11));
        let lost = |uuid, has| matches!(judge(before, uuid, &has), Judged::Lost(_));
        assert!(lost("a", Has::Absent));
        assert!(lost("a", Has::Present(9)));
        assert!(lost("b", Has::Present(11)));
        for has in [Has::Present(11), Has::Present(13)] {
            assert_eq!(judge(before, "a", &has), Judged::Kept);
        }
        assert_eq!(judge(None, "a", &Has::Absent), Judged::First);
        assert_eq!(judge(before, "a", &Has::Unknown("closed".into())), Judged::Unknown);
    }
}
