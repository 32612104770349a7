//! A look at both sides of many keys: Elasticsearch first, as in the loop, then Postgres.

use std::time::Duration;

use super::Run;
use crate::collection::{Want, no_id};
use crate::compare::{Verdict, compare};
use crate::elastic::{Answer, Has, Target};
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
        self.has.iter().map(|has| verdict(self.want, has))
    }

    /// Did every look see both sides agree?
    pub fn agrees(&self) -> bool {
        self.verdicts().all(Verdict::is_satisfied)
    }
}

/// What both sides have of many keys.
pub(super) struct Glance {
    wants: Vec<Option<Want>>,
    /// For each target what it has, in the order of the keys.
    has: Vec<Vec<Has>>,
}

impl Glance {
    /// Did every look see both sides agree on the nth key?
    pub fn agrees(&self, n: usize) -> bool {
        self.has.iter().all(|has| verdict(self.wants[n], &has[n]).is_satisfied())
    }

    /// What Postgres wants of the nth key; none: the view fails for its row.
    pub fn want(&self, n: usize) -> Option<Want> {
        self.wants[n]
    }

    /// All that was seen of the nth key.
    pub fn seen(&self, n: usize) -> Seen {
        Seen { want: self.wants[n], has: self.has.iter().map(|has| has[n].clone()).collect() }
    }
}

fn verdict(want: Option<Want>, has: &Has) -> Verdict {
    want.map_or(Verdict::Unknown, |want| compare(want, has))
}

impl Run<'_> {
    /// Looks at both sides of these keys. A row whose key Elasticsearch cannot hold is missing there, without a question.
    pub(super) async fn glance(&self, targets: &[Target], keys: &[&str]) -> Result<Glance, Error> {
        let good: Vec<&str> = keys.iter().copied().filter(|key| no_id(key).is_none()).collect();
        let mut has = Vec::new();
        for target in targets {
            let mut seen = self.look(target, &good).await?.into_iter();
            let unsaid = || Has::Unknown("no answer".into());
            has.push(keys.iter().map(|key| if no_id(key).is_none() { seen.next().unwrap_or_else(unsaid) } else { Has::Absent }).collect());
        }
        let mut transaction = database::begin(&self.context.pool).await?;
        let (wants, _) = self.collection.wants(&mut transaction, &good).await?;
        transaction.commit().await?;
        let want = |key: &&str| if no_id(key).is_none() { wants.get(*key).copied() } else { Some(Want::Present(0)) };
        Ok(Glance { wants: keys.iter().map(want).collect(), has })
    }

    /// Looks patiently: an index that does not answer for a moment does not end an audit of hours.
    pub(super) async fn look(&self, target: &Target, keys: &[&str]) -> Result<Vec<Has>, Error> {
        let mut waits = WAITS.iter();
        loop {
            match (self.context.elastic.look(target, keys, LOOK).await, waits.next()) {
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
