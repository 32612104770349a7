//! What becomes of a job. Pure: the job, what the look found, what Elasticsearch answered; no client, no clock.

use std::collections::HashMap;

use crate::elastic::Answer;
use crate::job::{Due, Job, MAX_ATTEMPTS, Reason};

use crate::compare::Verdict;

/// What a batch found out about a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The key cannot be one of this collection's.
    BadKey(String),
    /// The view raised an error for its row.
    Unbuildable(String),
    /// Both sides were looked at; the answer is that to the write, if there was one. Of several targets: the worst of each.
    Seen { verdict: Verdict, answer: Option<Answer> },
    /// Elasticsearch is ahead by more than can be true.
    Hopeless,
    /// The index has nothing and says that it has a higher version: it remembers a delete that was not ours. A new number was drawn.
    Remembered,
    /// Requests with this key in them get no answer, and this one gets none alone, while others pass; the error.
    Unanswered(String),
    /// It was in a request without an answer, and is tried again with fewer others.
    Suspected,
}

/// What becomes of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Deleted: a look saw both sides agree.
    Settle,
    /// Stays as it is; the next pass looks again. A write is never proof.
    Leave,
    /// Stays, due again in 5 to 30 s; nothing is charged.
    Postpone,
    /// Stays, an attempt is charged.
    PushBack { error: String, due: Due },
    /// Goes to the dead letters.
    Bury { reason: Reason, error: String },
}

/// What a job is told whose document somebody else deleted in the index.
const REMEMBERED: &str = "somebody else deleted this document in the index; the row got a new number";

/// The fate of one job.
pub fn fate(job: &Job, finding: &Finding) -> Fate {
    match finding {
        Finding::BadKey(error) => Fate::Bury { reason: Reason::BadKey, error: error.clone() },
        Finding::Unbuildable(error) => refused(job, Reason::Unbuildable, error),
        Finding::Hopeless => Fate::Bury { reason: Reason::Ahead, error: "the version in the index is impossibly high".into() },
        Finding::Remembered if job.attempts == 0 => Fate::PushBack { error: REMEMBERED.into(), due: Due::AtOnce },
        // a number above the first one did not help; after a minute the index forgets
        Finding::Remembered => refused(job, Reason::Ahead, REMEMBERED),
        Finding::Unanswered(error) => refused(job, Reason::Unanswered, error),
        Finding::Suspected => Fate::Leave,
        Finding::Seen { verdict, .. } if verdict.is_satisfied() => Fate::Settle,
        Finding::Seen { verdict: Verdict::Unknown, .. } => Fate::Postpone,
        Finding::Seen { verdict: Verdict::Ahead, .. } if job.attempts + 1 >= MAX_ATTEMPTS => {
            Fate::Bury { reason: Reason::Ahead, error: "the index stays ahead of the row".into() }
        }
        Finding::Seen { verdict: Verdict::Ahead, .. } => {
            Fate::PushBack { error: "the index was ahead of the row; the row got a new number".into(), due: Due::AtOnce }
        }
        Finding::Seen { answer, .. } => match answer {
            None | Some(Answer::Applied | Answer::Conflict) => Fate::Leave,
            Some(Answer::Refused(error)) => refused(job, Reason::Refused, error),
            Some(Answer::TooLarge(error)) => Fate::Bury { reason: Reason::TooLarge, error: error.clone() },
            Some(
                Answer::Failed(_)
                | Answer::Overloaded(_)
                | Answer::Blocked(_)
                | Answer::Denied(_)
                | Answer::Unavailable(_)
                | Answer::Unreachable(_)
                | Answer::Unknown(_),
            ) => Fate::Postpone,
        },
    }
}

/// A refusal waits and is tried again; the last one is buried. An expired job that was refused before has had its last look.
fn refused(job: &Job, reason: Reason, error: &str) -> Fate {
    let error = error.to_owned();
    if job.expired && job.attempts > 0 {
        Fate::Bury { reason: Reason::Expired, error }
    } else if job.attempts + 1 >= MAX_ATTEMPTS {
        Fate::Bury { reason, error }
    } else {
        Fate::PushBack { error, due: Due::Later }
    }
}

/// Refusals of one error, from which on nobody in the batch is to blame: fewer may be so many bad documents.
const MASS: usize = 50;

/// When at least 50 and over half of a batch are refused with one error, the view or the mapping is at fault, not the documents: the
/// error. Then no attempt is counted; what is not refused goes on. While that is so (`before`), fewer are enough: the postponed jobs come
/// back a few at a time. It ends with a batch of which half passes, or is refused with another error.
pub fn mass_refusal<'a>(findings: impl ExactSizeIterator<Item = &'a Finding>, before: Option<&str>) -> Option<String> {
    let all = findings.len();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for finding in findings {
        if let Finding::Unbuildable(error) | Finding::Unanswered(error) | Finding::Seen { answer: Some(Answer::Refused(error)), .. } =
            finding
        {
            *counts.entry(error).or_default() += 1;
        }
    }
    let (error, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let enough = if before == Some(error) { 1 } else { MASS };
    (count >= enough && count * 2 > all).then(|| error.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;

    fn job(attempts: i32, expired: bool) -> Job {
        let now = Utc::now();
        let (enqueued_at, scheduled_at, claimed_at) = (now, now, now);
        Job {
            id: 1,
            key: "k".into(),
            priority: 1,
            enqueued_at,
            scheduled_at,
            claimed_at,
            attempts,
            unanswered: None,
            tag: "test".into(),
            traceparent: None,
            expired,
            lane: None,
        }
    }

    fn seen(verdict: Verdict, answer: Option<Answer>) -> Finding {
        Finding::Seen { verdict, answer }
    }

    #[test]
    fn a_job_is_settled_by_a_look_and_never_by_a_write() {
        for verdict in Verdict::ALL {
            for answer in [None, Some(Answer::Applied), Some(Answer::Conflict)] {
                let settled = fate(&job(0, false), &seen(verdict, answer)) == Fate::Settle;
                assert_eq!(settled, matches!(verdict, Verdict::Current | Verdict::Gone), "{verdict:?}");
            }
        }
    }

    #[test]
    fn an_outage_charges_nothing() {
        let text = || "x".to_string();
        for answer in [
            Answer::Overloaded(text()),
            Answer::Blocked(text()),
            Answer::Denied(text()),
            Answer::Unavailable(text()),
            Answer::Unreachable(text()),
            Answer::Unknown(text()),
        ] {
            for expired in [false, true] {
                assert_eq!(fate(&job(4, expired), &seen(Verdict::Missing, Some(answer.clone()))), Fate::Postpone, "{answer:?}");
            }
        }
        assert_eq!(fate(&job(4, true), &seen(Verdict::Unknown, None)), Fate::Postpone);
    }

    #[test]
    fn the_fifth_refusal_is_the_last() {
        let refused = seen(Verdict::Missing, Some(Answer::Refused("no".into())));
        assert_eq!(fate(&job(3, false), &refused), Fate::PushBack { error: "no".into(), due: Due::Later });
        assert_eq!(fate(&job(4, false), &refused), Fate::Bury { reason: Reason::Refused, error: "no".into() });
        assert_eq!(
            fate(&job(4, false), &Finding::Unbuildable("no".into())),
            Fate::Bury { reason: Reason::Unbuildable, error: "no".into() }
        );
        assert!(matches!(fate(&job(4, false), &seen(Verdict::Ahead, None)), Fate::Bury { reason: Reason::Ahead, .. }));
        assert!(matches!(fate(&job(0, false), &seen(Verdict::Ahead, None)), Fate::PushBack { due: Due::AtOnce, .. }));
    }

    #[test]
    fn a_document_that_gets_no_answer_alone_is_charged_and_a_suspect_is_not() {
        let unanswered = Finding::Unanswered("no answer in time".into());
        assert!(matches!(fate(&job(0, false), &unanswered), Fate::PushBack { due: Due::Later, .. }));
        assert!(matches!(fate(&job(4, false), &unanswered), Fate::Bury { reason: Reason::Unanswered, .. }));
        assert_eq!(fate(&job(4, true), &Finding::Suspected), Fate::Leave);
    }

    #[test]
    fn after_a_delete_that_was_not_ours_the_first_new_number_is_tried_at_once() {
        assert!(matches!(fate(&job(0, false), &Finding::Remembered), Fate::PushBack { due: Due::AtOnce, .. }));
        assert!(matches!(fate(&job(1, false), &Finding::Remembered), Fate::PushBack { due: Due::Later, .. }));
        assert!(matches!(fate(&job(4, false), &Finding::Remembered), Fate::Bury { reason: Reason::Ahead, .. }));
    }

    #[test]
    fn an_expired_job_gets_its_write_and_is_buried_only_if_it_was_refused_before() {
        let refused = seen(Verdict::Missing, Some(Answer::Refused("no".into())));
        assert!(matches!(fate(&job(1, true), &refused), Fate::Bury { reason: Reason::Expired, .. }));
        assert!(matches!(fate(&job(0, true), &refused), Fate::PushBack { .. }));
        assert_eq!(fate(&job(1, true), &seen(Verdict::Missing, Some(Answer::Applied))), Fate::Leave);
        assert_eq!(fate(&job(1, true), &seen(Verdict::Current, None)), Fate::Settle);
    }

    #[test]
    fn when_everything_is_refused_nobody_is_to_blame() {
        let refused = || seen(Verdict::Missing, Some(Answer::Refused("no such field".into())));
        let fine = || seen(Verdict::Missing, Some(Answer::Applied));
        let batch = |bad: usize, good: usize| -> Vec<Finding> {
            std::iter::repeat_with(refused).take(bad).chain(std::iter::repeat_with(fine).take(good)).collect()
        };
        assert_eq!(mass_refusal(batch(50, 49).iter(), None), Some("no such field".into()));
        assert_eq!(mass_refusal(batch(50, 50).iter(), None), None);
        assert_eq!(mass_refusal(batch(49, 0).iter(), None), None);
        // it lasts until some pass
        assert_eq!(mass_refusal(batch(1, 0).iter(), Some("no such field")), Some("no such field".into()));
        assert_eq!(mass_refusal(batch(1, 1).iter(), Some("no such field")), None);
        assert_eq!(mass_refusal(batch(1, 0).iter(), Some("another")), None);
        let mixed: Vec<Finding> = (0..100).map(|n| seen(Verdict::Missing, Some(Answer::Refused(format!("error {n}"))))).collect();
        assert_eq!(mass_refusal(mixed.iter(), None), None);
    }
}
