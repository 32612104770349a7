//! Draws new numbers where the index has what Postgres never committed, or remembers what nobody here did.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::{PgConnection, PgPool};

use super::deadline::Deadline;
use super::group::{Key, Worked};
use crate::Error;
use crate::collection::{self, Collection, Want};
use crate::compare::Verdict;
use crate::context::Context;
use crate::elastic::{Answer, Has};

/// The limit of the second look.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Renumbered<'k> {
    /// How many keys drew a new number.
    pub drawn: u64,
    /// Keys of which an index remembers a delete that was not ours.
    pub remembered: HashSet<&'k str>,
    /// Keys that the index has in a version too high to be true.
    pub hopeless: HashSet<&'k str>,
}

/// Draws new numbers for the keys that need one. After the bulk and directly before the commit, so that the rows' locks are short.
pub(super) async fn renumber<'k>(
    context: &Context,
    collection: &Collection,
    connection: &mut PgConnection,
    worked: &Worked<'k>,
    deadline: Deadline,
) -> Result<Renumbered<'k>, Error> {
    let mut renumbered = Renumbered::default();
    // of any target: one that cannot be asked does not keep the other from being repaired
    let is = |verdict: Verdict| move |(_, seen): &(&&'k str, &Key)| seen.verdicts.contains(&verdict);
    let mut gone: Vec<&str> =
        worked.keys.iter().filter(is(Verdict::Orphan)).filter(|(_, seen)| seen.want == Want::Never).map(|(key, _)| *key).collect();
    let mut rows = Vec::new();
    let mut draw = |key: &'k str, want: Want| match want {
        Want::Present(_) | Want::Hidden(_) => rows.push(key),
        Want::Deleted(_) | Want::Never => gone.push(key),
    };
    for (key, want) in remembered(context, collection, worked, deadline).await {
        renumbered.remembered.insert(key);
        draw(key, want);
    }
    let ahead: Vec<(&'k str, &Key)> = worked.keys.iter().filter(is(Verdict::Ahead)).map(|(key, seen)| (*key, seen)).collect();
    let highest = raise(&context.pool, ahead.iter().map(|(_, seen)| seen.seen).collect()).await?;
    for (key, seen) in &ahead {
        match seen.seen <= highest {
            true => draw(key, seen.want),
            false => _ = renumbered.hopeless.insert(*key),
        }
    }
    if !ahead.is_empty() {
        tracing::error!(collection = collection.name, version = highest, keys = ahead.len(), "the index is ahead of Postgres");
    }
    let mut drawn = gone.len();
    if !rows.is_empty() {
        drawn += collection::draw(connection, &collection.name, &rows).await?.len();
    }
    if !gone.is_empty() {
        collection::record_gone(connection, &collection.name, &gone).await?;
    }
    renumbered.drawn = drawn as u64;
    Ok(renumbered)
}

/// Keys of which an index has nothing, and yet answers that it has this version or a higher one. Either somebody wrote between the
/// look and the bulk, which a second look shows, or somebody deleted the document: Elasticsearch remembers the number of a delete for
/// a minute.
async fn remembered<'k>(context: &Context, collection: &Collection, worked: &Worked<'k>, deadline: Deadline) -> Vec<(&'k str, Want)> {
    let mut remembered = HashMap::new();
    for (n, target) in collection.targets.iter().enumerate() {
        let has_nothing = |seen: &Key| matches!(seen.verdicts.get(n), Some(Verdict::Missing | Verdict::Untold));
        let conflicts = |key: &str| worked.written.answer(n, key) == Some(&Answer::Conflict);
        let suspects = worked.keys.iter().filter(|(key, seen)| has_nothing(seen) && conflicts(key));
        let suspects: Vec<(&str, Want)> = suspects.map(|(key, seen)| (*key, seen.want)).collect();
        let Some(limit) = deadline.within(LOOK_AGAIN).filter(|_| !suspects.is_empty()) else { continue };
        let keys: Vec<&str> = suspects.iter().map(|(key, _)| *key).collect();
        let Ok(ids) = collection.ids(&context.pool, &keys).await else { continue };
        let ids = ids.of_all(&keys);
        let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        let Ok(seen) = context.elastic.look(target, &ids, limit).await else { continue };
        remembered.extend(suspects.into_iter().zip(seen).filter(|(_, has)| *has == Has::Absent).map(|(suspect, _)| suspect));
    }
    remembered.into_iter().collect()
}

/// Lifts the sequence above these versions, as far as they can be true: the highest that is. One that cannot be does not keep the
/// others from being repaired, so the limit is searched for among them.
async fn raise(pool: &PgPool, mut versions: Vec<i64>) -> Result<i64, Error> {
    versions.sort_unstable();
    versions.dedup();
    let (mut believed, mut unknown) = (0, versions.len());
    let mut asked = versions.len();
    while believed < unknown {
        // the highest first: mostly all can be true
        asked = if asked == versions.len() { asked - 1 } else { believed + (unknown - believed) / 2 };
        match collection::raise_revision(pool, versions[asked]).await? {
            true => believed = asked + 1,
            false => unknown = asked,
        }
    }
    Ok(believed.checked_sub(1).map_or(0, |at| versions[at]))
}
