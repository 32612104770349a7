//! Writes what differs: documents as the view builds them, tombstones under the number that Postgres recorded.

use std::collections::{BTreeMap, HashMap};

use sqlx::PgConnection;
use tokio::time::Instant;

use super::deadline::Deadline;
use super::group::{Key, Limits};
use crate::collection::{Collection, Document, Want};
use crate::compare::Verdict;
use crate::context::Context;
use crate::elastic::{Answer, Body, Refresh, Write};
use crate::outcome::Bulk;
use crate::{Error, collection, crash};

/// What came of writing: for each target the worst answer per key, the keys whose documents could not be built, and how many were sent.
#[derive(Default)]
pub(super) struct Written {
    answers: Vec<HashMap<String, Answer>>,
    pub unbuildable: Vec<collection::Unbuildable>,
    pub applied: u64,
    pub conflicts: u64,
    /// All answers by name, one per item and target.
    pub counts: BTreeMap<&'static str, u64>,
    pub bulks: Vec<Bulk>,
}

/// Writes the keys that need it to each target that needs it, a round of bytes at a time.
pub(super) async fn write(
    context: &Context,
    collection: &Collection,
    connection: &mut PgConnection,
    keys: &HashMap<&str, Key>,
    limits: Limits,
    deadline: Deadline,
) -> Result<Written, Error> {
    let mut written = Written { answers: vec![HashMap::new(); collection.targets.len()], ..Written::default() };
    let tombstones = keys.iter().filter_map(|(key, seen)| Some((*key, tombstone(seen)?)));
    let mut round: Vec<Write<'_>> = tombstones.map(|(key, version)| Write { key, version, body: Body::Tombstone }).collect();
    let mut pending: Vec<Vec<&str>> = vec![keys.iter().filter(|(_, seen)| needs_document(seen)).map(|(key, _)| *key).collect()];
    if round.is_empty() && pending[0].is_empty() {
        return Ok(written);
    }
    while let Some(wanted) = pending.pop() {
        let (built, unbuildable) = collection.bodies(connection, &wanted).await?;
        written.unbuildable.extend(unbuildable);
        let mut later = Vec::new();
        for built in built {
            // the key as the batch holds it, so that it outlives this round
            let Some((key, _)) = keys.get_key_value(built.key.as_str()) else {
                continue;
            };
            match built.document {
                Document::Body(bytes) => round.push(Write { key, version: built.version, body: Body::Document(bytes) }),
                Document::TooLarge(octets) => {
                    let text = format!("the document has {octets} bytes, the limit is {}", crate::elastic::MAX_DOCUMENT_BYTES);
                    written.note(0, key, Answer::TooLarge(text));
                }
                Document::Later(octets) => later.push((*key, octets)),
            }
        }
        pending.extend(rounds(later));
        // written down before anything is sent under them
        let ids = collection.ids(&context.pool, &round.iter().map(|write| write.key).collect::<Vec<_>>()).await?;
        round.retain(|write| match (&write.body, ids.fault(write.key)) {
            (Body::Document(_), Some(error)) => {
                written.unbuildable.push(collection::Unbuildable { key: write.key.to_owned(), error });
                false
            }
            _ => true,
        });
        // the readers' last: what they see, the others have, so that no reader misses anything when the alias moves
        for (n, target) in collection.targets.iter().enumerate().rev() {
            let writes: Vec<Write<'_>> = round.iter().filter(|write| needs(&keys[write.key], n)).cloned().collect();
            if writes.is_empty() {
                continue;
            }
            let Some(limit) = deadline.within(if n == 0 { limits.bulk } else { limits.beside }) else { return Ok(written) };
            let sent = Instant::now();
            let named: Vec<_> = writes.iter().map(|write| ids.of(write.key)).collect();
            let sent_as: Vec<Write<'_>> = writes.iter().zip(&named).map(|(write, id)| write.under(id)).collect();
            let answers = context.elastic.bulk(target, &sent_as, Refresh::No, limit).await;
            written.bulks.push(Bulk { bytes: writes.iter().map(Write::weight).sum(), took: sent.elapsed() });
            crash::point("bulk-answered");
            for (write, answer) in writes.iter().zip(answers) {
                written.applied += u64::from(answer == Answer::Applied);
                written.conflicts += u64::from(answer == Answer::Conflict);
                *written.counts.entry(answer.name()).or_default() += 1;
                written.note(n, write.key, answer);
            }
        }
        round.clear();
        let hopeless = |answer: &Answer| severity(answer) > severity(&Answer::TooLarge(String::new()));
        let mut answers = written.answers.iter().flat_map(HashMap::values).peekable();
        if answers.peek().is_some() && answers.all(hopeless) {
            break;
        }
    }
    Ok(written)
}

impl Written {
    /// Of all targets, the answer that the key's jobs must heed.
    pub fn worst(&self, key: &str) -> Option<&Answer> {
        self.answers.iter().filter_map(|target| target.get(key)).max_by_key(|answer| severity(answer))
    }

    /// An answer of this target that is so, if there is one.
    pub fn any_of(&self, target: usize, wanted: impl Fn(&Answer) -> bool) -> Option<Answer> {
        self.answers.get(target)?.values().find(|answer| wanted(answer)).cloned()
    }

    /// What this target answered to the write of a key, if it was sent there.
    pub fn answer(&self, target: usize, key: &str) -> Option<&Answer> {
        self.answers.get(target)?.get(key)
    }

    /// Takes in what came of these keys of another group.
    pub fn absorb(&mut self, other: Written, of: impl Fn(&str) -> bool) {
        self.applied += other.applied;
        self.conflicts += other.conflicts;
        self.answers.resize_with(self.answers.len().max(other.answers.len()), HashMap::new);
        for (ours, theirs) in self.answers.iter_mut().zip(other.answers) {
            ours.extend(theirs.into_iter().filter(|(key, _)| of(key)));
        }
    }

    fn note(&mut self, target: usize, key: &str, answer: Answer) {
        let Some(answers) = self.answers.get_mut(target) else { return };
        match answers.get_mut(key) {
            Some(before) if severity(before) >= severity(&answer) => {}
            Some(before) => *before = answer,
            None => _ = answers.insert(key.to_owned(), answer),
        }
    }
}

/// The tombstone's version, where one is to be written. A key that never was has no number yet: it is recorded first.
fn tombstone(seen: &Key) -> Option<i64> {
    match seen.want {
        Want::Hidden(n) | Want::Deleted(n) if seen.verdicts.iter().any(|v| matches!(v, Verdict::Orphan | Verdict::Untold)) => Some(n),
        _ => None,
    }
}

fn needs_document(seen: &Key) -> bool {
    seen.verdicts.iter().any(|v| matches!(v, Verdict::Missing | Verdict::Stale))
}

fn needs(seen: &Key, target: usize) -> bool {
    matches!(seen.verdicts.get(target), Some(Verdict::Missing | Verdict::Stale | Verdict::Orphan | Verdict::Untold))
}

/// What is left for later, in rounds of about a bulk's bytes.
fn rounds(later: Vec<(&str, i64)>) -> Vec<Vec<&str>> {
    let mut rounds: Vec<Vec<&str>> = Vec::new();
    let mut room = 0;
    for (key, octets) in later {
        if room < octets || rounds.is_empty() {
            rounds.push(Vec::new());
            room = collection::ROUND_BYTES;
        }
        room -= octets;
        if let Some(round) = rounds.last_mut() {
            round.push(key);
        }
    }
    rounds
}

/// Of several targets, the answer that a job must heed.
fn severity(answer: &Answer) -> u8 {
    match answer {
        Answer::Applied => 0,
        Answer::Conflict => 1,
        Answer::Refused(_) => 2,
        Answer::Failed(_) => 3,
        Answer::TooLarge(_) => 4,
        Answer::Overloaded(_) => 5,
        Answer::Unavailable(_) => 6,
        Answer::Unknown(_) => 7,
        Answer::Unreachable(_) => 8,
        Answer::Blocked(_) => 9,
        Answer::Denied(_) => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_hold_about_a_bulk_and_everything_once() {
        let part = collection::ROUND_BYTES / 8;
        let rounds = rounds(vec![("a", 5 * part), ("b", 5 * part), ("c", part), ("d", 7 * part), ("e", part)]);
        assert_eq!(rounds, [vec!["a"], vec!["b", "c"], vec!["d", "e"]]);
    }

    #[test]
    fn the_worst_answer_of_several_targets_counts() {
        let mut written = Written { answers: vec![HashMap::new(); 2], ..Written::default() };
        written.note(0, "a", Answer::Unknown("x".into()));
        written.note(0, "a", Answer::Applied);
        written.note(1, "a", Answer::Applied);
        assert_eq!(written.worst("a"), Some(&Answer::Unknown("x".into())));
        written.note(1, "a", Answer::Blocked("y".into()));
        assert_eq!(written.worst("a"), Some(&Answer::Blocked("y".into())));
        let blocked = |answer: &Answer| matches!(answer, Answer::Blocked(_));
        assert_eq!(written.any_of(0, blocked), None, "the readers' index is not");
        assert!(written.any_of(1, blocked).is_some());
    }
}
