//! What a pass did. The log line, the metrics and the command's last line are all made from it.

mod measured;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::compare::Verdict;

pub(crate) use measured::{Bulk, Measured, OBJECTIVE_SECONDS};

/// What a pass did, counted in jobs where no other unit is named.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Locked and looked at.
    pub claimed: u64,
    /// Deleted, because a look saw both sides agree.
    pub settled: u64,
    /// Left for a later look.
    pub left: u64,
    /// Due again in some seconds, because Elasticsearch could not say.
    pub postponed: u64,
    /// Refused, to be tried again.
    pub pushed_back: u64,
    /// Moved to the dead letters.
    pub buried: u64,
    /// A request with them in it got no answer: they are tried again with fewer others, or were alone to blame and are pushed back.
    pub suspected: u64,
    /// Older than their `expires_at`.
    pub expired: u64,
    /// Keys that drew a new revision: because a related row changed, or because the index had what Postgres never committed.
    pub touched: u64,
    /// Steps of touches that were done: each left jobs, or came nearer to its end.
    #[serde(skip)]
    pub steps: u64,
    /// Documents and tombstones that Elasticsearch applied.
    pub written: u64,
    /// Writes that met the same or a newer version.
    pub conflicts: u64,
    /// Keys by verdict.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// Collections that could not be worked on, and why.
    pub blocked: BTreeMap<String, String>,
    /// Collections of which over half of a batch was refused with one error, and the error: the view or the mapping is at fault, so
    /// nobody is charged. What is not refused goes on.
    pub refusing: BTreeMap<String, String>,
    /// Collections of which jobs were due and none moved, and why. Only [`sync`](crate::Catchword::sync) and
    /// [`drain`](crate::Catchword::drain) say so: a worker judges by more than one pass.
    pub stood: BTreeMap<String, String>,
    /// Why nothing is sent to Elasticsearch at the moment, if so.
    pub breaker: Option<String>,
    /// Why jobs did not move: what Elasticsearch failed of, or an error with which one was refused.
    #[serde(skip)]
    pub hindered: Option<String>,
    /// Of those claimed, the canary's: they are no news as long as all is well.
    #[serde(skip)]
    pub canary: u64,
    /// Batches that were committed.
    pub batches: u64,
    /// How long the claims took, of all batches together.
    #[serde(rename = "claim_seconds", serialize_with = "seconds")]
    pub claiming: Duration,
    /// How long it took.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub took: Duration,
}

impl Outcome {
    /// Did anything move? A tick ends with the first pass in which nothing did. A touch counts: it left jobs. A suspect counts: it is
    /// tried with fewer others, which ends when it is alone and pushed back.
    pub fn moved(&self) -> bool {
        self.written + self.settled + self.touched + self.steps + self.buried + self.suspected > 0
    }

    /// Was there anything to say? A quiet pass is not logged; a block and an open breaker are logged when they begin and end.
    pub fn is_quiet(&self) -> bool {
        let unusual = self.touched + self.postponed + self.pushed_back + self.buried + self.suspected;
        self.claimed == self.canary && unusual == 0
    }

    /// Can everything be worked on, and did what is due move?
    pub fn is_well(&self) -> bool {
        self.blocked.is_empty() && self.refusing.is_empty() && self.breaker.is_none() && self.stood.is_empty()
    }

    /// Its counts alone. What is at fault is logged when it begins and when it ends, and not with each pass.
    pub(crate) fn in_numbers(&self) -> InNumbers<'_> {
        InNumbers(self)
    }

    /// Counts a key's verdict.
    pub(crate) fn count(&mut self, verdict: Verdict) {
        *self.verdicts.entry(verdict.name()).or_default() += 1;
    }

    /// Adds another's counts.
    pub(crate) fn add(&mut self, other: Outcome) {
        self.claimed += other.claimed;
        self.canary += other.canary;
        self.settled += other.settled;
        self.left += other.left;
        self.postponed += other.postponed;
        self.pushed_back += other.pushed_back;
        self.buried += other.buried;
        self.suspected += other.suspected;
        self.expired += other.expired;
        self.touched += other.touched;
        self.steps += other.steps;
        self.written += other.written;
        self.conflicts += other.conflicts;
        self.batches += other.batches;
        self.took += other.took;
        self.claiming += other.claiming;
        for (verdict, count) in other.verdicts {
            *self.verdicts.entry(verdict).or_default() += count;
        }
        self.blocked.extend(other.blocked);
        self.refusing.extend(other.refusing);
        self.stood.extend(other.stood);
        self.breaker = other.breaker.or(self.breaker.take());
        self.hindered = other.hindered.or(self.hindered.take());
    }
}

/// The counts of an outcome; what is zero is not said.
pub(crate) struct InNumbers<'o>(&'o Outcome);

impl fmt::Display for InNumbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(outcome) = self;
        write!(f, "{} claimed, {} written, {} settled", outcome.claimed, outcome.written, outcome.settled)?;
        for (count, word) in [
            (outcome.left, "left for the next look"),
            (outcome.postponed, "postponed"),
            (outcome.pushed_back, "pushed back"),
            (outcome.buried, "buried"),
            (outcome.suspected, "suspected"),
            (outcome.expired, "expired"),
            (outcome.touched, "touched"),
            (outcome.conflicts, "conflicts"),
        ] {
            if count > 0 {
                write!(f, ", {count} {word}")?;
            }
        }
        write!(f, " in {:.2} s", outcome.took.as_secs_f64())
    }
}

/// One line that reads alone.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.in_numbers())?;
        for (collection, why) in &self.blocked {
            write!(f, "; {collection} is blocked: {why}")?;
        }
        for (collection, error) in &self.refusing {
            write!(
                f,
                "; more than half of the last batch of {collection} was refused with the same error; no attempt was counted: {error}"
            )?;
        }
        for (collection, why) in &self.stood {
            write!(f, "; jobs of {collection} are due and none moved: {why}")?;
        }
        if let Some(why) = &self.breaker {
            write!(f, "; nothing is sent to Elasticsearch (circuit breaker open): {why}")?;
        }
        Ok(())
    }
}

fn seconds<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_secs_f64())
}
