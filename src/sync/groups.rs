//! The groups of a batch: one, as long as all is well.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::Instant;

use super::deadline::Deadline;
use super::group::{self, Limits, Worked};
use super::panicked::UnderWay;
use super::search::{Found, Group, Search};
use super::walk::Look;
use crate::Error;
use crate::collection::Collection;
use crate::context::{Context, index_answers};
use crate::elastic::Answer;
use crate::outcome::Measured;

/// How long a batch may search for whoever gets no answer. What is not found by then is left for the next pass, so that others have
/// their turn in between.
const SEARCH: Duration = Duration::from_secs(10);

/// What working the groups of a batch came to.
pub(super) struct Searched<'k> {
    /// Of all keys that were answered.
    pub worked: Worked<'k>,
    pub found: Found<'k>,
    /// What is wrong with each target.
    pub faults: Vec<Option<Answer>>,
    /// How the pace is to change.
    pub pace: Pace,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Faster,
    Same,
    Slower,
}

/// Works the keys, all that are not suspected at once. Where a request gets no answer and a probe does, something in it is why: it is
/// searched for in halves. Where the probe gets none either, it is an outage, and nobody is suspected.
#[allow(clippy::too_many_arguments, reason = "each is needed once")]
pub(super) async fn work<'k>(
    context: &Context,
    collection: &Collection,
    connection: &mut PgConnection,
    mut search: Search<'k>,
    when: Look,
    deadline: Deadline,
    under_way: &UnderWay,
    measured: &mut Measured,
) -> Result<Searched<'k>, Error> {
    let mut all = Worked::default();
    let mut faults = vec![None; collection.targets.len()];
    let mut pace = Pace::Faster;
    let mut until = None;
    while let Some(group) = search.next() {
        let mut time_is_up = || *until.get_or_insert_with(|| Instant::now() + SEARCH) <= Instant::now();
        let limits = Limits::of(&group);
        if group.suspected && (time_is_up() || deadline.within(limits.look + limits.bulk) != Some(limits.look + limits.bulk)) {
            break;
        }
        under_way.begins(&group);
        let worked = group::work(context, collection, connection, &group, when, deadline, measured).await?;
        let mut silent = HashSet::new();
        // why there was no answer, and which target gave none
        let mut why = None;
        for (n, target) in collection.targets.iter().enumerate() {
            let Some(silence) = worked.silence(n, &group) else {
                faults[n] = faults[n].take().or_else(|| worked.fault(n));
                continue;
            };
            let slow = matches!(silence.why, Answer::Unknown(_)) && !group.suspected;
            pace = if slow { Pace::Slower } else { pace.min_with(Pace::Same) };
            if index_answers(context, target, silence.asked).await {
                silent.extend(silence.keys);
                why = Some((n, silence.why));
            } else {
                faults[n] = Some(silence.why);
            }
        }
        if (0..collection.targets.len()).any(|n| worked.written.any_of(n, |answer| matches!(answer, Answer::Overloaded(_))).is_some()) {
            pace = Pace::Slower;
        }
        let failed = failed(&worked, &group, collection.targets.len());
        if faults.first().is_some_and(Option::is_some) {
            all.absorb(worked, |_| true);
            under_way.ended();
            return Ok(Searched { worked: all, found: Found::default(), faults, pace });
        }
        all.absorb(worked, |key| !silent.contains(key));
        if let Some((_, why)) = why.as_ref().filter(|_| !group.suspected) {
            let (collection, keys) = (&collection.name, silent.len());
            tracing::warn!(collection, keys, "a request got no answer, and a probe did: one of its keys is searched for: {why}");
        }
        let text = why.as_ref().and_then(|(_, why)| why.reason()).unwrap_or_default();
        search.tried(group, &silent, text);
        for (n, key, text) in failed {
            search.failed_alone(key, &text);
            why = Some((n, Answer::Failed(text)));
        }
        if let Some((n, why)) = why.filter(|_| search.is_in_vain()) {
            faults[n] = Some(why);
            break;
        }
    }
    under_way.ended();
    let found = search.end(context.health.blamed.nobody_passes(&collection.name));
    Ok(Searched { worked: all, found, faults, pace })
}

impl Pace {
    /// Whichever is slower.
    fn min_with(self, other: Pace) -> Pace {
        if self == Pace::Faster { other } else { self }
    }
}

/// The keys whose own answer was that the server failed: at which target, and what it said.
fn failed<'k>(worked: &Worked<'k>, group: &Group<'k>, targets: usize) -> Vec<(usize, &'k str, String)> {
    let of = |n: usize| {
        group.keys.iter().filter_map(move |key| match worked.written.answer(n, key) {
            Some(Answer::Failed(text)) => Some((n, *key, text.clone())),
            _ => None,
        })
    };
    (0..targets).flat_map(of).collect()
}
