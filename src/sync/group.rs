//! Keys that are worked together: both sides looked at, compared, and what differs written.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::Instant;
use tracing::{Instrument, debug_span};

use super::deadline::Deadline;
use super::search::Group;
use super::walk::Look;
use super::write::{Written, write};
use crate::collection::{Collection, Unbuildable, Want};
use crate::compare::{Verdict, compare};
use crate::context::{Asked, Context};
use crate::elastic::{Answer, Has};
use crate::look::{self, AtElasticsearch, Seen};
use crate::outcome::Measured;
use crate::{Error, crash};

/// How long is waited for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// To a look.
    pub look: Duration,
    /// To a bulk.
    pub bulk: Duration,
    /// To a bulk to an index that nobody reads: the readers' must still have its turn.
    pub beside: Duration,
}

impl Limits {
    /// Seconds for a batch that takes less than one: whatever is slower than this is better sent in smaller parts.
    const CALM: Limits = Limits { look: look::LIMIT, bulk: Duration::from_secs(15), beside: Duration::from_secs(12) };
    /// Suspects wait less, because each wrong guess costs this.
    const SUSPECTS: Limits = Limits::all(Duration::from_secs(2));
    /// One alone waits longer than a group, because it is charged if it fails.
    const ALONE: Limits = Limits::all(Duration::from_secs(5));

    pub fn of(group: &Group<'_>) -> Limits {
        match (group.suspected, group.keys.len()) {
            (false, _) => Limits::CALM,
            (true, 1) => Limits::ALONE,
            (true, _) => Limits::SUSPECTS,
        }
    }

    const fn all(limit: Duration) -> Limits {
        Limits { look: limit, bulk: limit, beside: limit }
    }
}

/// What is known of a key after both looks: one verdict per target.
pub(super) struct Key {
    pub want: Want,
    pub verdicts: Vec<Verdict>,
    /// The highest version that a target has.
    pub seen: i64,
}

impl Key {
    pub fn verdict(&self) -> Verdict {
        combined(&self.verdicts)
    }
}

/// What came of a group.
#[derive(Default)]
pub(super) struct Worked<'k> {
    /// What each target has, in the order of the keys.
    documents: Vec<Result<Vec<Has>, Answer>>,
    pub keys: HashMap<&'k str, Key>,
    pub unbuildable: Vec<Unbuildable>,
    pub written: Written,
}

/// What a target gave no answer to.
pub(super) struct Silence<'k> {
    pub asked: Asked,
    pub why: Answer,
    pub keys: HashSet<&'k str>,
}

/// Looks at both sides of these keys and writes what differs.
pub(super) async fn work<'k>(
    context: &Context,
    collection: &Collection,
    connection: &mut PgConnection,
    group: &Group<'k>,
    when: Look,
    deadline: Deadline,
    measured: &mut Measured,
) -> Result<Worked<'k>, Error> {
    let limits = Limits::of(group);
    let mut worked = match when {
        Look::First => look_at_both(context, collection, connection, &group.keys, limits, deadline, measured).await?,
        Look::Later => Worked::supposed_missing(collection, &group.keys),
    };
    crash::key(&group.keys);
    let write = write(context, collection, connection, &worked.keys, limits, deadline);
    worked.written = write.instrument(debug_span!("write")).await?;
    for (answer, count) in &worked.written.counts {
        *measured.answers.entry(answer).or_default() += count;
    }
    measured.bulks.append(&mut worked.written.bulks);
    Ok(worked)
}

/// Looks at both sides and compares.
async fn look_at_both<'k>(
    context: &Context,
    collection: &Collection,
    connection: &mut PgConnection,
    keys: &[&'k str],
    limits: Limits,
    deadline: Deadline,
    measured: &mut Measured,
) -> Result<Worked<'k>, Error> {
    let started = Instant::now();
    let look = look(context, collection, keys, limits, deadline).instrument(debug_span!("look", side = "elasticsearch")).await?;
    let at_elasticsearch = started.elapsed();
    let seen = look.then_postgres(collection, connection).instrument(debug_span!("look", side = "postgres")).await?;
    measured.looked(at_elasticsearch, started.elapsed() - at_elasticsearch);
    crash::point("after-look");
    let keys = debug_span!("compare", keys = keys.len()).in_scope(|| judge(&seen));
    Ok(Worked { documents: seen.has, keys, unbuildable: seen.unbuildable, written: Written::default() })
}

/// What each target has of each key. A sick index that nobody reads is left alone for a while: its keys are unknown, and those of the
/// readers' go on.
async fn look<'k>(
    context: &Context,
    collection: &Collection,
    keys: &[&'k str],
    limits: Limits,
    deadline: Deadline,
) -> Result<AtElasticsearch<'k>, Error> {
    let mut look = AtElasticsearch::of(collection, &context.pool, keys).await?;
    for (n, target) in collection.targets.iter().enumerate() {
        match if n == 0 { Ok(()) } else { context.admits_hidden_index(target) } {
            Ok(()) => {
                let limit = deadline.within(limits.look).unwrap_or(Duration::from_millis(1));
                _ = look.ask(&context.elastic, target, limit).await;
            }
            Err(why) => look.skip(Answer::Unavailable(why)),
        }
    }
    Ok(look)
}

fn judge<'k>(seen: &Seen<'k>) -> HashMap<&'k str, Key> {
    let judged = seen.keys.iter().enumerate().filter_map(|(n, key)| {
        let (want, has) = (seen.wants[n]?, seen.key(n).has);
        let highest = has.iter().map(|has| if let Has::Present(version) = has { *version } else { 0 }).max().unwrap_or(0);
        Some((*key, Key { want, verdicts: has.iter().map(|has| compare(want, has)).collect(), seen: highest }))
    });
    judged.collect()
}

/// Of several targets: unknown before ahead before anything to write before agreement. No target at all is unknown.
fn combined(verdicts: &[Verdict]) -> Verdict {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Unknown => 3,
        Verdict::Ahead => 2,
        Verdict::Missing | Verdict::Stale | Verdict::Orphan | Verdict::Untold => 1,
        Verdict::Current | Verdict::Gone => 0,
    };
    verdicts.iter().copied().max_by_key(rank).unwrap_or(Verdict::Unknown)
}

impl<'k> Worked<'k> {
    /// Nothing was looked at, so nothing can agree: whatever the view returns is written, and every job is left.
    fn supposed_missing(collection: &Collection, keys: &[&'k str]) -> Worked<'k> {
        let missing = || Key { want: Want::Present(0), verdicts: vec![Verdict::Missing; collection.targets.len()], seen: 0 };
        let fit = keys.iter().filter(|key| collection.key_type.fault(key).is_none());
        Worked { keys: fit.map(|key| (*key, missing())).collect(), ..Worked::default() }
    }

    /// The keys of the group that this target gave no answer to: to their look, or to their write.
    pub fn silence(&self, target: usize, group: &Group<'k>) -> Option<Silence<'k>> {
        if let Some(Err(why)) = self.documents.get(target)
            && is_silence(why)
        {
            return Some(Silence { asked: Asked::Look, why: why.clone(), keys: group.keys.iter().copied().collect() });
        }
        let why = self.written.any_of(target, is_silence)?;
        let unanswered = |key: &&str| self.written.answer(target, key).is_some_and(is_silence);
        Some(Silence { asked: Asked::Bulk, why, keys: group.keys.iter().copied().filter(unanswered).collect() })
    }

    /// What is wrong with a target, by what it answered, silence aside.
    pub fn fault(&self, target: usize) -> Option<Answer> {
        let at_fault = |answer: &Answer| matches!(answer, Answer::Denied(_) | Answer::Unavailable(_) | Answer::Blocked(_));
        let looked = self.documents.get(target).and_then(failed_look);
        looked.or_else(|| self.written.any_of(target, at_fault))
    }

    /// Takes in what came of these keys of another group.
    pub fn absorb(&mut self, other: Worked<'k>, of: impl Fn(&str) -> bool) {
        self.keys.extend(other.keys.into_iter().filter(|(key, _)| of(key)));
        self.unbuildable
            .extend(other.unbuildable.into_iter().chain(other.written.unbuildable.iter().cloned()).filter(|fault| of(&fault.key)));
        self.written.absorb(other.written, of);
    }
}

/// No answer came, or none that says anything: one document in the request may be why.
pub(super) fn is_silence(answer: &Answer) -> bool {
    matches!(answer, Answer::Unknown(_) | Answer::Unreachable(_))
}

/// What is wrong with an index that could say nothing of any key.
fn failed_look(seen: &Result<Vec<Has>, Answer>) -> Option<Answer> {
    match seen {
        Err(answer) => Some(answer.clone()),
        Ok(all) if all.iter().all(|has| matches!(has, Has::Unknown(_))) => match all.first() {
            Some(Has::Unknown(why)) => Some(Answer::Unknown(why.clone())),
            _ => None,
        },
        Ok(_) => None,
    }
}
