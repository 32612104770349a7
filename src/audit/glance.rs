//! A look at both sides of many keys: Elasticsearch first, as in the loop, then Postgres.

use std::collections::HashMap;
use std::time::Duration;

use super::Run;
use crate::collection::{Want, no_id};
use crate::elastic::{Answer, Has, Target};
use crate::sync::{Verdict, compare};
use crate::{Error, database, elastic};

/// The limit of one look at Elasticsearch.
const LOOK: Duration = Duration::from_secs(10);
/// How long to wait before an index that did not answer is asked again: about a minute in all, then the audit gives up and can be resumed.
const WAITS: [u64; 6] = [1, 2, 4, 8, 16, 30];

/// What both sides have of a key.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// None: the view fails for its row.
    pub want: Option<Want>,
    /// One for each target that was looked at, in their order.
    pub has: Vec<Has>,
}

impl Seen {
    /// What it comes to, target by target.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.has.iter().map(|has| self.want.map_or(Verdict::Unknown, |want| compare(want, has)))
    }

    /// Did every look see both sides agree?
    pub fn agrees(&self) -> bool {
        self.verdicts().all(Verdict::is_satisfied)
    }
}

impl Run<'_> {
    /// Looks at both sides of these keys. A row whose key Elasticsearch cannot hold is missing there, without a question.
    pub(super) async fn glance(&self, targets: &[Target], keys: &[&str]) -> Result<HashMap<String, Seen>, Error> {
        let (good, bad): (Vec<&str>, Vec<&str>) = keys.iter().partition(|key| no_id(key).is_none());
        let mut documents = Vec::new();
        for target in targets {
            documents.push(self.look(target, &good).await?);
        }
        let mut transaction = database::begin(&self.inner.pool).await?;
        let (wants, _) = self.collection.wants(&mut transaction, &good).await?;
        transaction.commit().await?;
        let seen = good.iter().enumerate().map(|(n, key)| {
            let has = documents.iter().map(|all| all.get(n).cloned().unwrap_or_else(|| Has::Unknown("no answer".into())));
            ((*key).to_owned(), Seen { want: wants.get(*key).copied(), has: has.collect() })
        });
        let unheld =
            bad.iter().map(|key| ((*key).to_owned(), Seen { want: Some(Want::Present(0)), has: vec![Has::Absent; targets.len()] }));
        Ok(seen.chain(unheld).collect())
    }

    /// Looks patiently: an index that does not answer for a moment does not end an audit of hours.
    pub(super) async fn look(&self, target: &Target, keys: &[&str]) -> Result<Vec<Has>, Error> {
        let mut waits = WAITS.iter();
        loop {
            match (self.inner.elastic.look(target, keys, LOOK).await, waits.next()) {
                (Ok(seen), _) => return Ok(seen),
                (Err(Answer::Unknown(_) | Answer::Unreachable(_) | Answer::Unavailable(_) | Answer::Overloaded(_)), Some(wait)) => {
                    self.check_stop()?;
                    tokio::time::sleep(Duration::from_secs(*wait)).await;
                }
                (Err(answer), _) => return Err(elastic::Error::Request { doing: format!("look at index {target}"), answer }.into()),
            }
        }
    }
}
