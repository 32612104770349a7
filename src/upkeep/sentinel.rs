//! One document of each index is its sentinel: a tombstone under a reserved id, which readers do not see. Its version is remembered in
//! Postgres once the index has acknowledged it. An index that has a lower one, or none, or that is another index under the old name, has
//! lost acknowledged writes, and perhaps others with it: an audit is asked for.
//!
//! It says so of the shard that it is in. What another shard alone has lost, the next audit finds.

use std::time::Duration;

use sqlx::Row;

use super::Upkeep;
use crate::collection::{Collection, SENTINEL};
use crate::elastic::{Answer, Body, Has, Refresh, Target, Write};
use crate::{Error, database};

/// The limit of one question.
const LIMIT: Duration = Duration::from_secs(5);

/// What was remembered of an index.
struct Record {
    uuid: String,
    revision: i64,
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
    /// Looks at the sentinel of each index of a collection, and renews it.
    pub(super) async fn renew_sentinels(&self, collection: &Collection) -> Result<(), Error> {
        let pool = &self.catchword.inner.pool;
        let indices: Vec<&str> = collection.targets.iter().map(Target::index).collect();
        let rows = sqlx::query(include_str!("sentinels.sql")).bind(&collection.name).bind(&indices).fetch_all(pool).await?;
        for row in &rows {
            let (index, next): (String, i64) = (row.try_get("target")?, row.try_get("next")?);
            let (uuid, revision): (Option<String>, Option<i64>) = (row.try_get("index_uuid")?, row.try_get("revision")?);
            let record = uuid.zip(revision).map(|(uuid, revision)| Record { uuid, revision });
            self.renew(collection, &Target::new(index), record, next).await?;
        }
        Ok(())
    }

    async fn renew(&self, collection: &Collection, target: &Target, record: Option<Record>, next: i64) -> Result<(), Error> {
        let elastic = &self.catchword.inner.elastic;
        let uuid = elastic.index_uuid(target).await?;
        let seen = elastic.look(target, &[SENTINEL], LIMIT).await.unwrap_or_else(|answer| vec![Has::Unknown(answer.to_string())]);
        let has = seen.into_iter().next().unwrap_or_else(|| Has::Unknown("no answer".into()));
        let judged = judge(record.as_ref(), &uuid, &has);
        if judged == Judged::Unknown {
            return Ok(());
        }
        let write = Write { key: SENTINEL, version: next, body: Body::Tombstone };
        let answer = elastic.bulk(target, &[write], Refresh::No, LIMIT).await.into_iter().next();
        // only what was acknowledged is remembered; who was faster has remembered more
        let acknowledged = answer == Some(Answer::Applied);
        match judged {
            Judged::Lost(why) => self.note_loss(collection, target, &uuid, if acknowledged { next } else { 1 }, &why).await,
            _ if acknowledged => self.remember(collection, target, &uuid, next, None).await,
            _ => Ok(()),
        }
    }

    /// Said as an error, kept for `status` and the metrics until an audit has come to its end, and the audit is asked for.
    async fn note_loss(&self, collection: &Collection, target: &Target, uuid: &str, next: i64, why: &str) -> Result<(), Error> {
        tracing::error!(collection = collection.name, index = target.index(), "{why}; an audit is asked for, which finds what is missing");
        self.remember(collection, target, uuid, next, Some(why)).await
    }

    async fn remember(&self, collection: &Collection, target: &Target, uuid: &str, next: i64, lost: Option<&str>) -> Result<(), Error> {
        let renewal =
            sqlx::query(include_str!("renew_sentinel.sql")).bind(&collection.name).bind(target.index()).bind(uuid).bind(next).bind(lost);
        let pool = &self.catchword.inner.pool;
        if lost.is_none() {
            renewal.execute(pool).await?;
            return Ok(());
        }
        let mut transaction = database::begin(pool).await?;
        renewal.execute(&mut *transaction).await?;
        let asked = sqlx::query(include_str!("ask_audit.sql")).bind(&collection.name).bind(false).bind("lost writes");
        asked.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Pure: what was remembered before the look, and what the index has.
fn judge(record: Option<&Record>, uuid: &str, has: &Has) -> Judged {
    match (record, has) {
        (_, Has::Unknown(_)) => Judged::Unknown,
        (None, _) => Judged::First,
        (Some(record), _) if record.uuid != uuid => {
            Judged::Lost("it is another index under the old name: made anew, or restored from a snapshot".into())
        }
        (Some(record), Has::Absent) => Judged::Lost(format!("the index lost acknowledged writes: version {} is gone", record.revision)),
        (Some(record), Has::Present(version)) if *version < record.revision => {
            Judged::Lost(format!("the index lost acknowledged writes: it went back from version {} to {version}", record.revision))
        }
        (Some(_), Has::Present(_)) => Judged::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_went_back_or_is_another_has_lost_writes() {
        let record = || Record { uuid: "a".into(), revision: 11 };
        let lost = |record: Option<Record>, uuid, has| matches!(judge(record.as_ref(), uuid, &has), Judged::Lost(_));
        assert!(lost(Some(record()), "a", Has::Absent));
        assert!(lost(Some(record()), "a", Has::Present(9)));
        assert!(lost(Some(record()), "b", Has::Present(11)));
        for has in [Has::Present(11), Has::Present(13)] {
            assert_eq!(judge(Some(&record()), "a", &has), Judged::Kept);
        }
        assert_eq!(judge(None, "a", &Has::Absent), Judged::First);
        assert_eq!(judge(Some(&record()), "a", &Has::Unknown("closed".into())), Judged::Unknown);
    }
}
