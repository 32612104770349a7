//! A look at both sides of some keys. Elasticsearch first: what it has came from a committed row, so a row that is read later can only be
//! equal or newer. The other way round, a row that is written between the two would look as if the index were ahead of it. The types hold
//! the order: only a look that has been at Elasticsearch goes on to Postgres.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};

use crate::Error;
use crate::collection::{Collection, Ids, Unbuildable, Want, no_id};
use crate::compare::{Verdict, compare};
use crate::elastic::{Answer, Elastic, Has, Target};

/// What one target may take to say what it has. Whatever is slower is better asked for less.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// What the targets have of some keys.
pub(crate) struct AtElasticsearch<'k> {
    keys: Vec<&'k str>,
    ids: Ids,
    /// For each target what it has, in the order of the keys; or why it could say nothing.
    has: Vec<Result<Vec<Has>, Answer>>,
}

impl<'k> AtElasticsearch<'k> {
    /// Of these keys, at no target yet.
    pub async fn of(collection: &Collection, pool: &PgPool, keys: &[&'k str]) -> Result<AtElasticsearch<'k>, Error> {
        Ok(AtElasticsearch { keys: keys.to_vec(), ids: collection.ids(pool, keys).await?, has: Vec::new() })
    }

    /// Asks the next target. A key that Elasticsearch cannot hold is absent there, without a question.
    pub async fn ask(&mut self, elastic: &Elastic, target: &Target, limit: Duration) -> Result<(), Answer> {
        let has_id = |key: &&&str| no_id(key).is_none();
        let asked: Vec<_> = self.keys.iter().filter(has_id).map(|key| self.ids.of(key)).collect();
        let asked: Vec<&str> = asked.iter().map(AsRef::as_ref).collect();
        let answered = elastic.look(target, &asked, limit).await.map(|has| {
            let mut has = has.into_iter();
            let mut next = || has.next().unwrap_or_else(|| Has::Unknown("no answer".into()));
            self.keys.iter().map(|key| if no_id(key).is_none() { next() } else { Has::Absent }).collect()
        });
        let said = answered.as_ref().map(|_| ()).map_err(Answer::clone);
        self.has.push(answered);
        said
    }

    /// The next target is not asked, and why.
    pub fn skip(&mut self, why: Answer) {
        self.has.push(Err(why));
    }

    /// Forgets what the last target answered: it is asked again.
    pub fn ask_again(&mut self) {
        self.has.pop();
    }

    /// Reads what Postgres wants of the keys.
    pub async fn then_postgres(self, collection: &Collection, connection: &mut PgConnection) -> Result<Seen<'k>, Error> {
        let good: Vec<&str> = self.keys.iter().copied().filter(|key| no_id(key).is_none()).collect();
        let (wants, unbuildable) = collection.wants(connection, &good).await?;
        // whatever its row is: it is missing in the index
        let want = |key: &&str| if no_id(key).is_none() { wants.get(*key).copied() } else { Some(Want::Present(0)) };
        Ok(Seen { wants: self.keys.iter().map(want).collect(), keys: self.keys, has: self.has, unbuildable })
    }
}

/// What both sides have of some keys.
pub(crate) struct Seen<'k> {
    pub keys: Vec<&'k str>,
    /// None: the view fails for its row, or it could not be read.
    pub wants: Vec<Option<Want>>,
    /// For each target what it has, in the order of the keys; or why it could say nothing.
    pub has: Vec<Result<Vec<Has>, Answer>>,
    pub unbuildable: Vec<Unbuildable>,
}

impl Seen<'_> {
    /// What was seen of the nth key.
    pub fn key(&self, n: usize) -> SeenKey {
        let of = |target: &Result<Vec<Has>, Answer>| match target {
            Ok(all) => all.get(n).cloned().unwrap_or_else(|| Has::Unknown("no answer".into())),
            Err(answer) => Has::Unknown(answer.to_string()),
        };
        SeenKey { want: self.wants[n], has: self.has.iter().map(of).collect() }
    }

    /// Did every target agree with Postgres on the nth key? Of no target at all nothing is known.
    pub fn agrees(&self, n: usize) -> bool {
        let agrees = |target: &Result<Vec<Has>, Answer>| match target {
            Ok(all) => all.get(n).is_some_and(|has| verdict(self.wants[n], has).is_satisfied()),
            Err(_) => false,
        };
        !self.has.is_empty() && self.has.iter().all(agrees)
    }
}

/// What both sides have of one key.
#[derive(Clone, Debug)]
pub(crate) struct SeenKey {
    /// None: the view fails for its row, or it could not be read.
    pub want: Option<Want>,
    /// One for each target, in their order.
    pub has: Vec<Has>,
}

impl SeenKey {
    /// What it comes to, target by target.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.has.iter().map(|has| verdict(self.want, has))
    }

    /// Did every target agree with Postgres?
    pub fn agrees(&self) -> bool {
        !self.has.is_empty() && self.verdicts().all(Verdict::is_satisfied)
    }
}

fn verdict(want: Option<Want>, has: &Has) -> Verdict {
    want.map_or(Verdict::Unknown, |want| compare(want, has))
}
