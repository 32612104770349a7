//! A difference at first sight is a suspicion. It counts if it is still there when it is looked at again, nothing was written to its key
//! in between, and no job was open for the key meanwhile.
//!
//! Why that is enough: what Postgres wants (1), the open jobs (2), the index (3), what Postgres wants (4), in this order. If (1) and (4) are
//! the same, nothing was committed to the key from (1) to (4), since every commit has a number of its own. No job at (2) then means that
//! the last one was settled, by a look that saw both sides agree on what is still wanted, and nothing was written since: (3) must agree.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::{Example, Fields, Kind, Run};
use crate::collection::Want;
use crate::compare::{Verdict, compare};
use crate::elastic::{Has, Target};
use crate::look::{Seen, SeenKey};
use crate::{Error, job};

/// How often a key that is being written to is looked at again before it is left alone: its own jobs will look.
const ROUNDS: usize = 5;
/// How long to wait before an index that could not say is asked again.
const WAIT: Duration = Duration::from_millis(500);

/// A key that differed at first sight, and what Postgres wanted then.
#[derive(Clone, Debug)]
pub(super) struct Suspect {
    pub key: String,
    pub want: Option<Want>,
    /// The versions agreed, and the documents did not.
    pub content: bool,
}

impl Suspect {
    /// The numbers differ.
    pub fn of(key: String, want: Option<Want>) -> Suspect {
        Suspect { key, want, content: false }
    }
}

/// What became of the suspicions.
#[derive(Debug, Default)]
pub(super) struct Confirmed {
    /// True differences, one for each index that has it.
    pub differences: Vec<Difference>,
    /// Keys that differ and have an open job, or are being written to.
    pub pending: u64,
    /// Keys of which it could not be told.
    pub unknown: u64,
    /// Keys among the differences that were left to an audit: no drift.
    pub left: HashSet<String>,
}

impl Confirmed {
    pub fn add(&mut self, other: Confirmed) {
        self.differences.extend(other.differences);
        self.pending += other.pending;
        self.unknown += other.unknown;
        self.left.extend(other.left);
    }
}

/// A true difference.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub key: String,
    pub kind: Kind,
    pub index: String,
    pub want: Option<Want>,
    pub has: Has,
    /// The fields that differ, if the versions agree.
    pub fields: Fields,
}

/// Indices in which a document differs under the same version, and in which fields.
type Others = BTreeMap<usize, Fields>;

impl Run<'_> {
    /// Looks again at what was suspected.
    pub(super) async fn confirm(&self, targets: &[Target], suspects: Vec<Suspect>) -> Result<Confirmed, Error> {
        let mut confirmed = Confirmed::default();
        let mut suspects = suspects;
        for round in 1..=ROUNDS {
            if suspects.is_empty() {
                break;
            }
            let keys: Vec<&str> = suspects.iter().map(|suspect| suspect.key.as_str()).collect();
            let doubted: Vec<&str> = suspects.iter().filter(|suspect| suspect.content).map(|suspect| suspect.key.as_str()).collect();
            let open = self.open_among(&keys).await?;
            let seen = self.look(targets, &keys).await?;
            let seen: Vec<SeenKey> = (0..keys.len()).map(|n| seen.key(n)).collect();
            let other = self.other_content(targets, &doubted).await?;
            let mut again = Vec::new();
            let mut wait = false;
            for (suspect, now) in suspects.into_iter().zip(&seen) {
                let others: Others = (0..targets.len()).filter_map(|n| Some((n, other.get(&(suspect.key.clone(), n))?.clone()))).collect();
                match judge(&suspect, now, &others, open.contains(&suspect.key)) {
                    Judged::Agrees => {}
                    Judged::Differs => confirmed.differences.extend(differences(targets, &suspect, now, &others)),
                    Judged::Pending => confirmed.pending += 1,
                    Judged::Written if round == ROUNDS => confirmed.pending += 1,
                    Judged::Unknown if round == ROUNDS && now.want.is_none() => {
                        confirmed.differences.extend(unbuildable(targets, &suspect))
                    }
                    Judged::Unknown if round == ROUNDS => confirmed.unknown += 1,
                    Judged::Written | Judged::Unknown => {
                        wait |= is_unknown(now);
                        again.push(Suspect { want: now.want, ..suspect });
                    }
                }
            }
            if wait {
                tokio::time::sleep(WAIT).await;
            }
            suspects = again;
        }
        self.leave_out_half_swept(&mut confirmed.differences).await?;
        self.name_the_dead(&mut confirmed.differences).await?;
        confirmed.left = self.left_to_it(&confirmed.differences).await?;
        Ok(confirmed)
    }

    /// Which of these keys a job will look at.
    pub(super) async fn open_among(&self, keys: &[&str]) -> Result<HashSet<String>, Error> {
        let fit: Vec<&str> = keys.iter().copied().filter(|key| self.collection.key_type.fault(key).is_none()).collect();
        job::open_among(&mut *self.context.pool.acquire().await?, &self.collection.name, keys, &fit).await
    }

    /// The sweep takes the tombstone first and its record after it; if it dies in between, the next one goes on.
    async fn leave_out_half_swept(&self, differences: &mut Vec<Difference>) -> Result<(), Error> {
        let untold: Vec<&str> = differences.iter().filter(|found| found.kind == Kind::Untold).map(|found| found.key.as_str()).collect();
        if untold.is_empty() {
            return Ok(());
        }
        let half_swept: HashSet<String> = sqlx::query_scalar(include_str!("half_swept.sql"))
            .bind(&self.collection.name)
            .bind(&untold)
            .bind(self.context.config.worker.sweep_after.as_secs_f64())
            .fetch_all(&self.context.pool)
            .await?
            .into_iter()
            .collect();
        differences.retain(|found| found.kind != Kind::Untold || !half_swept.contains(&found.key));
        Ok(())
    }

    /// What a dead letter tells of is known, and scheduling it again would only make another dead letter.
    async fn name_the_dead(&self, differences: &mut [Difference]) -> Result<(), Error> {
        if differences.is_empty() {
            return Ok(());
        }
        let keys: Vec<&str> = differences.iter().map(|difference| difference.key.as_str()).collect();
        let mut connection = self.context.pool.acquire().await?;
        let dead = job::dead_among(&mut connection, &self.collection.name, &keys).await?;
        for difference in differences.iter_mut().filter(|difference| dead.contains(&difference.key)) {
            difference.kind = Kind::Dead;
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Agrees,
    Differs,
    /// A job will look at it.
    Pending,
    /// Something was committed to it in between.
    Written,
    Unknown,
}

/// Pure: what was wanted before, what both sides have now, in which indices the content is another, and whether a job was open in between.
fn judge(suspect: &Suspect, now: &SeenKey, others: &Others, open: bool) -> Judged {
    if now.agrees() && others.is_empty() {
        Judged::Agrees
    } else if open {
        Judged::Pending
    } else if is_unknown(now) {
        Judged::Unknown
    } else if suspect.want != now.want {
        Judged::Written
    } else {
        Judged::Differs
    }
}

fn is_unknown(seen: &SeenKey) -> bool {
    seen.verdicts().any(|verdict| verdict == Verdict::Unknown)
}

fn differences(targets: &[Target], suspect: &Suspect, now: &SeenKey, others: &Others) -> Vec<Difference> {
    let each = targets.iter().zip(&now.has).enumerate().filter_map(|(n, (target, has))| {
        let kind = Kind::of(compare(now.want?, has)).or_else(|| others.contains_key(&n).then_some(Kind::Content))?;
        let (key, index) = (suspect.key.clone(), target.index().to_owned());
        let fields = others.get(&n).cloned().unwrap_or_default();
        Some(Difference { key, kind, index, want: now.want, has: has.clone(), fields })
    });
    each.collect()
}

/// The view fails for its row, so no index can have its document: a dead letter says so, or will.
fn unbuildable(targets: &[Target], suspect: &Suspect) -> Vec<Difference> {
    let index = targets.iter().map(|target| target.index().to_owned()).next().unwrap_or_default();
    vec![Difference { key: suspect.key.clone(), kind: Kind::Missing, index, want: None, has: Has::Absent, fields: Fields::default() }]
}

impl Difference {
    /// For people.
    pub fn example(&self) -> Example {
        let postgres = match self.want {
            Some(Want::Present(0)) => "has a row whose key the index cannot hold".into(),
            Some(Want::Present(version)) => format!("has {version}"),
            Some(Want::Hidden(version) | Want::Deleted(version)) => format!("wants it gone at {version}"),
            Some(Want::Never) => "never had it".into(),
            None => "cannot build it".into(),
        };
        let elasticsearch = match &self.has {
            Has::Present(version) if self.kind == Kind::Content => format!("has another document at {version}"),
            Has::Present(version) if version % 2 == 0 => format!("has {version}"),
            Has::Present(version) if self.kind != Kind::Ahead => format!("shows a document at {version}"),
            Has::Present(version) => format!("has a tombstone at {version}"),
            Has::Absent => "has nothing".into(),
            Has::Unknown(why) => format!("could not say: {why}"),
        };
        // an id may hold a zero byte, which Postgres cannot keep
        Example {
            key: self.key.replace('\0', "\\0"),
            kind: self.kind,
            index: self.index.clone(),
            postgres,
            elasticsearch,
            fields: self.fields.clone(),
        }
    }
}

/// Suspects of a look, in the order of the keys.
pub(super) fn suspects(seen: &Seen<'_>) -> Vec<Suspect> {
    let differing = seen.keys.iter().enumerate().filter(|(n, _)| !seen.agrees(*n));
    differing.map(|(n, key)| Suspect::of((*key).to_owned(), seen.wants[n])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_only_if_nothing_was_written_and_no_job_is_open() {
        let suspect = |want| Suspect::of("k".into(), Some(want));
        let seen = |want, has| SeenKey { want: Some(want), has: vec![has] };
        let unknown = || Has::Unknown("closed".into());
        for (before, now, open, judged) in [
            (Want::Present(4), seen(Want::Present(4), Has::Absent), false, Judged::Differs),
            (Want::Present(4), seen(Want::Present(4), Has::Absent), true, Judged::Pending),
            (Want::Present(4), seen(Want::Present(4), Has::Present(4)), false, Judged::Agrees),
            (Want::Present(4), seen(Want::Present(6), Has::Present(4)), false, Judged::Written),
            (Want::Present(4), seen(Want::Deleted(7), Has::Present(4)), true, Judged::Pending),
            (Want::Never, seen(Want::Never, Has::Present(4)), false, Judged::Differs),
            (Want::Never, seen(Want::Present(8), Has::Present(4)), false, Judged::Written),
            (Want::Present(4), seen(Want::Present(4), unknown()), false, Judged::Unknown),
            (Want::Present(4), seen(Want::Present(4), unknown()), true, Judged::Pending),
        ] {
            assert_eq!(judge(&suspect(before), &now, &Others::new(), open), judged, "{before:?} {now:?} {open}");
        }
        let agreeing = seen(Want::Present(4), Has::Present(4));
        let others = Others::from([(0, Fields::default())]);
        assert_eq!(judge(&suspect(Want::Present(4)), &agreeing, &others, false), Judged::Differs);
        assert_eq!(judge(&suspect(Want::Present(4)), &agreeing, &others, true), Judged::Pending);
        assert_eq!(judge(&suspect(Want::Present(2)), &agreeing, &others, false), Judged::Written);
    }

    #[test]
    fn every_index_must_agree() {
        let seen = SeenKey { want: Some(Want::Present(4)), has: vec![Has::Present(4), Has::Absent] };
        assert!(!seen.agrees());
        let targets = [Target::new("a-000001"), Target::new("a-000002")];
        let found = differences(&targets, &Suspect::of("k".into(), Some(Want::Present(4))), &seen, &Others::new());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].kind, found[0].index.as_str()), (Kind::Missing, "a-000002"));
    }
}
