//! What people do, one operation after the other; no database.

use std::collections::VecDeque;

use chrono::{DateTime, TimeDelta, Utc};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use uuid::Uuid;

use crate::generate::world;

/// How many of the latest annotations can be edited, deleted or replied to.
///
/// People change what they wrote lately; and a data set of millions stays small in memory.
const RECENT: usize = 10_000;

/// When the data set begins: 2024-01-01T00:00:00Z, in seconds since 1970. A fixed time, so that a
/// seed gives the same times whenever it runs.
const EPOCH: i64 = 1_704_067_200;

/// The longest pause between two operations; on average half of it, about 10,000 operations a day.
const PAUSE_MILLIS: i64 = 17_000;

/// Of a hundred annotations, how many are replies.
const REPLIES_OF_HUNDRED: u32 = 15;

/// An endless sequence of operations, the same for the same seed.
///
/// ```
/// # use annotations::generate::{Generator, Operation};
/// let mut one = Generator::new(7);
/// let mut other = Generator::new(7);
/// assert_eq!(one.next(), other.next());
/// assert!(matches!(one.next(), Some(Operation::Insert(_))));
/// ```
#[derive(Debug, Clone)]
pub struct Generator {
    rng: ChaCha8Rng,
    edits: f64,
    deletes: f64,
    /// edits and deletes that are owed for the inserts so far
    owed_edits: f64,
    owed_deletes: f64,
    now: DateTime<Utc>,
    recent: VecDeque<Recent>,
}

/// What is remembered of an annotation: enough to change it or to reply to it.
#[derive(Debug, Clone)]
struct Recent {
    id: Uuid,
    groupid: String,
    page: Page,
    references: Vec<Uuid>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) uri: String,
    pub(super) title: String,
}

/// One thing that somebody did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Wrote an annotation.
    Insert(Insert),
    /// Changed its text and tags.
    Edit(Edit),
    /// Deleted it, softly.
    Delete(Remove),
}

/// A new annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    /// Its id, from the seed.
    pub id: Uuid,
    /// When it was written.
    pub created: DateTime<Utc>,
    /// Who wrote it.
    pub userid: String,
    /// Whom it is for.
    pub groupid: String,
    /// What it says; may be empty.
    pub text: String,
    /// Its tags; none holds a comma.
    pub tags: Vec<String>,
    /// The page as the writer's browser spelled it.
    pub target_uri: String,
    /// The page's title.
    pub title: String,
    /// What it replies to, the first of the thread first.
    pub references: Vec<Uuid>,
    /// Whether others may see it.
    pub shared: bool,
}

/// A change of an annotation written earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Which one.
    pub id: Uuid,
    /// When.
    pub updated: DateTime<Utc>,
    /// What it says now.
    pub text: String,
    /// Its tags now; none holds a comma.
    pub tags: Vec<String>,
}

/// The soft delete of an annotation written earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remove {
    /// Which one.
    pub id: Uuid,
    /// When.
    pub updated: DateTime<Utc>,
}

impl Generator {
    /// The data set of this seed; inserts only.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            edits: 0.0,
            deletes: 0.0,
            owed_edits: 0.0,
            owed_deletes: 0.0,
            now: DateTime::UNIX_EPOCH + TimeDelta::seconds(EPOCH),
            recent: VecDeque::new(),
        }
    }

    /// So many edits for each insert: 0.2 is one for five.
    #[must_use]
    pub fn edits(mut self, per_insert: f64) -> Self {
        self.edits = per_insert.max(0.0);
        self
    }

    /// So many deletes for each insert, at most one: 0.05 is one for twenty.
    #[must_use]
    pub fn deletes(mut self, per_insert: f64) -> Self {
        self.deletes = per_insert.clamp(0.0, 1.0);
        self
    }

    /// Whether the next operation is an insert: nothing is owed for the ones so far.
    pub(super) fn is_even(&self) -> bool {
        self.owed_edits < 1.0 && self.owed_deletes < 1.0
    }

    fn insert(&mut self) -> Insert {
        let parent = match self.recent.len() {
            0 => None,
            len if self.rng.random_ratio(REPLIES_OF_HUNDRED, 100) => self.recent.get(self.rng.random_range(0..len)),
            _ => None,
        };
        let (page, groupid, references) = match parent {
            Some(parent) => {
                let mut references = parent.references.clone();
                references.push(parent.id);
                (parent.page.clone(), parent.groupid.clone(), references)
            }
            None => (world::page(&mut self.rng), world::groupid(&mut self.rng), Vec::new()),
        };
        let insert = Insert {
            id: uuid::Builder::from_random_bytes(self.rng.random()).into_uuid(),
            created: self.now,
            userid: world::userid(&mut self.rng),
            groupid: groupid.clone(),
            text: world::text(&mut self.rng),
            tags: world::tags(&mut self.rng),
            target_uri: world::respell(&mut self.rng, &page.uri),
            title: page.title.clone(),
            references: references.clone(),
            shared: self.rng.random_ratio(4, 5),
        };
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent { id: insert.id, groupid, page, references });
        insert
    }

    fn edit(&mut self) -> Option<Edit> {
        let which = self.any_recent()?;
        Some(Edit { id: self.recent[which].id, updated: self.now, text: world::text(&mut self.rng), tags: world::tags(&mut self.rng) })
    }

    fn delete(&mut self) -> Option<Remove> {
        let which = self.any_recent()?;
        let gone = self.recent.remove(which)?;
        Some(Remove { id: gone.id, updated: self.now })
    }

    fn any_recent(&mut self) -> Option<usize> {
        (!self.recent.is_empty()).then(|| self.rng.random_range(0..self.recent.len()))
    }
}

impl Iterator for Generator {
    type Item = Operation;

    /// Never `None`. Edits and deletes come as soon as their share is owed, so that their number
    /// after n inserts is exact and not a matter of luck.
    fn next(&mut self) -> Option<Operation> {
        self.now += TimeDelta::milliseconds(self.rng.random_range(0..=PAUSE_MILLIS));
        if self.owed_edits >= 1.0 {
            self.owed_edits -= 1.0;
            if let Some(edit) = self.edit() {
                return Some(Operation::Edit(edit));
            }
        }
        if self.owed_deletes >= 1.0 {
            self.owed_deletes -= 1.0;
            if let Some(delete) = self.delete() {
                return Some(Operation::Delete(delete));
            }
        }
        self.owed_edits += self.edits;
        self.owed_deletes += self.deletes;
        Some(Operation::Insert(self.insert()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn inserts(seed: u64, n: usize) -> Vec<Insert> {
        Generator::new(seed)
            .filter_map(|operation| match operation {
                Operation::Insert(insert) => Some(insert),
                _ => None,
            })
            .take(n)
            .collect()
    }

    #[test]
    fn a_seed_names_a_data_set() {
        let busy = |seed| Generator::new(seed).edits(0.2).deletes(0.05).take(3_000).collect::<Vec<_>>();
        assert_eq!(busy(1), busy(1));
        assert_ne!(busy(1), busy(2));
    }

    /// Benchmarks of different versions are compared on the same data: this fails if it ever moves.
    #[test]
    fn a_seed_keeps_its_data_set_between_versions() {
        let first = &inserts(1, 1)[0];
        assert_eq!(first.id.to_string(), "42dce553-5836-47e0-8e42-131b08b071b2");
        assert_eq!(first.created.to_rfc3339(), "2024-01-01T00:00:06.842+00:00");
        assert_eq!(first.userid, "acct:piotr135@example.org");
    }

    #[test]
    fn ids_are_unique_version_four_uuids_also_across_seeds() {
        let ids: HashSet<Uuid> = (0..4).flat_map(|seed| inserts(seed, 1_000)).map(|insert| insert.id).collect();
        assert_eq!(ids.len(), 4_000);
        assert!(ids.iter().all(|id| id.get_version_num() == 4));
    }

    #[test]
    fn time_never_goes_back() {
        let times: Vec<_> = inserts(3, 1_000).into_iter().map(|insert| insert.created).collect();
        assert!(times.is_sorted());
        assert!(times[0] >= DateTime::UNIX_EPOCH + TimeDelta::seconds(EPOCH));
    }

    #[test]
    fn texts_are_about_half_a_kilobyte() {
        let inserts = inserts(4, 2_000);
        let mean = inserts.iter().map(|insert| insert.text.len()).sum::<usize>() / inserts.len();
        assert!((400..600).contains(&mean), "mean {mean}");
        assert!(inserts.iter().any(|insert| insert.text.is_empty()));
        assert!(inserts.iter().any(|insert| insert.text.contains('\n')));
        assert!(inserts.iter().any(|insert| insert.text.len() > 2_000));
    }

    #[test]
    fn a_few_have_most_of_it_and_many_have_little() {
        let of_user = inserts(5, 5_000).into_iter().fold(HashMap::new(), |mut of_user, insert| {
            *of_user.entry(insert.userid).or_insert(0_usize) += 1;
            of_user
        });
        let most = of_user.values().max().copied().unwrap_or(0);
        let with_few = of_user.values().filter(|n| **n <= 5).count();
        assert!(most > 250, "the busiest user wrote {most}");
        assert!(with_few * 2 > of_user.len(), "{with_few} of {} users wrote little", of_user.len());
    }

    #[test]
    fn spellings_of_a_page_meet_in_its_normal_form() {
        let inserts = inserts(6, 2_000);
        let normal: HashSet<_> = inserts.iter().map(|insert| crate::uri::normalize(&insert.target_uri).unwrap()).collect();
        let titles: HashSet<_> = inserts.iter().map(|insert| &insert.title).collect();
        let spelled: HashSet<_> = inserts.iter().map(|insert| &insert.target_uri).collect();
        assert_eq!(normal.len(), titles.len());
        assert!(spelled.len() > normal.len());
    }

    #[test]
    fn edits_and_deletes_come_in_the_share_asked_for_and_only_of_what_is_there() {
        let (mut live, mut inserts, mut edits, mut deletes) = (HashSet::new(), 0, 0, 0);
        for operation in Generator::new(8).edits(0.2).deletes(0.05).take(12_500) {
            match operation {
                Operation::Insert(insert) => {
                    inserts += 1;
                    assert!(live.insert(insert.id));
                }
                Operation::Edit(edit) => {
                    edits += 1;
                    assert!(live.contains(&edit.id));
                }
                Operation::Delete(delete) => {
                    deletes += 1;
                    assert!(live.remove(&delete.id));
                }
            }
        }
        assert_eq!((inserts, edits, deletes), (10_000, 2_000, 500));
    }

    #[test]
    fn more_edits_than_inserts_are_possible() {
        let edits = Generator::new(8).edits(3.0).take(4_000).filter(|operation| matches!(operation, Operation::Edit(_))).count();
        assert!((2_990..=3_000).contains(&edits), "{edits}");
    }

    #[test]
    fn replies_stay_on_their_page_and_in_their_group() {
        let inserts = inserts(9, 3_000);
        let by_id: HashMap<_, _> = inserts.iter().map(|insert| (insert.id, insert)).collect();
        let replies: Vec<_> = inserts.iter().filter(|insert| !insert.references.is_empty()).collect();
        assert!(replies.len() > 300);
        for reply in replies {
            let parent = by_id[reply.references.last().unwrap()];
            assert_eq!((&reply.title, &reply.groupid), (&parent.title, &parent.groupid));
            assert_eq!(reply.references[..reply.references.len() - 1], parent.references);
        }
    }
}
