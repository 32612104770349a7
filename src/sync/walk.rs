//! The walks of a pass: collections in turn, one batch per turn, and behind it a step of the collection's touches.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Postgres, Transaction};
use tokio::time::Instant;
use tracing::{Instrument, Span, debug_span};

use crate::collection::Collection;
use crate::context::Context;
use crate::job::{self, Cursor, Fairly, Job, Lanes};
use crate::traceparent::Links;
use crate::{Error, database};

/// A blocked collection is tried with this many: enough to see whether its index takes writes again, too few to hurt.
const TRIAL: u32 = 50;
/// While a walk is among live jobs, each so many batches one is a bulk's: live jobs that outrun the loop would otherwise hold up a reindex
/// or a rebuild for ever. So few that it is not noticed, so many that a pass of slow batches has one. While it is among quick jobs, each so
/// many one is of live jobs that waited, for the same reason: a job that was put off must come up again.
const TURN: u32 = 4;

/// So long a pass walks bulks, whatever else is due. Then it ends as soon as a live job is: somebody waits for that.
const BULKS: Duration = Duration::from_secs(1);

/// The walks that have not come to their end.
pub(super) struct Walks {
    walks: VecDeque<Walk>,
    links: Links,
    began: Instant,
    /// The collections whose live jobs the pass would take first.
    served: Vec<String>,
    /// Where every walk ends that has no end of its own.
    end: Cursor,
    /// How far the walks came, and how the next batch of each would begin.
    reached: HashMap<String, Reached>,
}

/// How far a walk came, and how its next batch would begin.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub cursor: Cursor,
    /// Of quick jobs.
    pub lanes: Lanes,
    pub look: Look,
}

impl Default for Reached {
    fn default() -> Reached {
        Reached { cursor: Cursor::TOP, lanes: Lanes::default(), look: Look::Later }
    }
}

struct Walk {
    collection: Arc<Collection>,
    cursor: Cursor,
    /// Where it ends; none: where all do.
    until: Option<Cursor>,
    /// How far it has come in the lanes of quick jobs, and of those that waited: where the collection is fair.
    quick_lanes: Lanes,
    live_lanes: Lanes,
    /// How far the turns of live jobs that waited have come, and the bulks' own.
    waited: Cursor,
    bulk: Cursor,
    turn: u32,
    touches: Touches,
    /// All that was due has been claimed.
    at_end: bool,
    on_trial: bool,
    looks: Looks,
}

/// When touches have their turn. Live jobs come first: they are somebody's who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touches {
    AfterABatch,
    Now,
    /// None is due, or they cannot be worked on.
    Over,
}

/// Whose turn a batch may be while others are not through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aside {
    Waited,
    Bulk,
}

/// What is next: a batch, or a step of a collection's touches.
pub(super) enum Turn {
    Batch(Claimed),
    Touches(String),
}

/// How the next live batch begins, and how a bulk's: what the one had to write says nothing of the other.
#[derive(Clone, Copy)]
struct Looks {
    live: Look,
    bulk: Look,
}

/// Whether a batch looks before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    First,
    /// Nearly everything in the batch before had to be written: this one is written unseen, and settles nothing. A conflict is left for
    /// the next pass, which looks first.
    Later,
}

impl Look {
    /// For the batch after one that wrote so many for so many jobs. Of several targets one mostly has what another lacks.
    pub fn after(written: u64, claimed: u64, targets: usize) -> Look {
        if targets == 1 && written * 10 >= claimed * 9 { Look::Later } else { Look::First }
    }
}

/// A batch, locked by its transaction.
pub(super) struct Claimed {
    pub collection: Arc<Collection>,
    pub transaction: Transaction<'static, Postgres>,
    /// At least one, not seen before in this pass.
    pub jobs: Vec<Job>,
    pub look: Look,
    /// How long the claim took.
    pub took: Duration,
}

impl Walks {
    /// Begins at the top of each queue. The flag says that a collection is blocked and on trial.
    pub fn new(collections: Vec<(Arc<Collection>, bool)>) -> Walks {
        let served = collections.iter().filter(|(_, on_trial)| !on_trial).map(|(collection, _)| collection.name.clone()).collect();
        let walks = collections.into_iter().map(|(collection, on_trial)| Walk::of(collection, on_trial)).collect();
        Walks { walks, links: Links::default(), began: Instant::now(), served, end: Cursor::END, reached: HashMap::new() }
    }

    /// The same over quick jobs alone, up to a cursor if there is one.
    pub fn quick(collections: Vec<(Arc<Collection>, Option<Cursor>)>) -> Walks {
        let served = collections.iter().map(|(collection, _)| collection.name.clone()).collect();
        let walk = |(collection, until)| Walk { until, ..Walk::of(collection, false) };
        Walks { walks: collections.into_iter().map(walk).collect(), served, end: Cursor::BEHIND_QUICK, ..Walks::new(Vec::new()) }
    }

    /// The same over those quick jobs that lie behind a cursor: they are written without a look, and no touches have their turn.
    pub fn unseen(collections: Vec<(Arc<Collection>, Reached)>) -> Walks {
        let looks = Looks { live: Look::Later, bulk: Look::First };
        let walk = |(collection, Reached { cursor, lanes, .. })| Walk {
            cursor,
            quick_lanes: lanes,
            looks,
            touches: Touches::Over,
            ..Walk::of(collection, false)
        };
        Walks { walks: collections.into_iter().map(walk).collect(), ..Walks::quick(Vec::new()) }
    }

    /// How far each walk came that claimed something, and how its next batch would begin.
    pub fn reached(self) -> impl Iterator<Item = (String, Reached)> {
        self.reached.into_iter()
    }

    /// Claims the next batch, if it is not the turn of touches. None: every walk is at its end.
    pub async fn next(&mut self, context: &Context) -> Result<Option<Turn>, Error> {
        while let Some(mut walk) = self.walks.pop_front() {
            if walk.touches == Touches::Now {
                let name = walk.collection.name.clone();
                // at the end of the queue one step is enough: the next pass begins with the jobs that it leaves
                walk.touches = if walk.at_end { Touches::Over } else { Touches::AfterABatch };
                self.walks.push_back(walk);
                return Ok(Some(Turn::Touches(name)));
            }
            if walk.at_end {
                continue;
            }
            if walk.cursor >= Cursor::BEHIND_LIVE && self.began.elapsed() > BULKS && job::live_is_due(&context.pool, &self.served).await? {
                self.walks.clear();
                break;
            }
            let size = context.health.batches.of(&walk.collection.name).size();
            let limit = if walk.on_trial { TRIAL.min(size) } else { size };
            let started = Instant::now();
            let aside = if self.end == Cursor::END { walk.aside() } else { None };
            let (from, end) = match aside {
                Some(Aside::Waited) => (walk.waited, Cursor::BEHIND_LIVE),
                Some(Aside::Bulk) => (walk.bulk, Cursor::END),
                None => (walk.cursor, walk.until.unwrap_or(self.end)),
            };
            let span = debug_span!("claim", collection = walk.collection.name);
            let (transaction, jobs, last) = walk.claim(context, aside, from, end, limit).instrument(span).await?;
            // this is the pass' span: it points back at the requests that wrote
            self.links.add(&Span::current(), jobs.iter().filter_map(|job| job.traceparent.as_deref()));
            let (collection, look) = (walk.collection.clone(), walk.looks.of(&jobs));
            if let Some(job) = jobs.last() {
                // of a fair one its last job stands anywhere: beside the lanes it came as far as it goes on from
                let cursor = if collection.fair.is_some() { last.unwrap_or(from) } else { Cursor::behind(job) };
                let lanes = walk.quick_lanes.clone();
                self.reached.insert(collection.name.clone(), Reached { cursor, lanes, look });
            }
            match (aside, last) {
                (Some(Aside::Waited), last) => walk.waited = last.unwrap_or(end),
                (Some(Aside::Bulk), last) => walk.bulk = last.unwrap_or(end),
                (None, Some(last)) if !walk.on_trial => walk.go_on_behind(last),
                (None, _) => walk.at_end = true,
            }
            if walk.touches == Touches::AfterABatch {
                walk.touches = Touches::Now;
            }
            self.walks.push_back(walk);
            if jobs.is_empty() {
                transaction.rollback().await?;
                continue;
            }
            return Ok(Some(Turn::Batch(Claimed { collection, transaction, jobs, look, took: started.elapsed() })));
        }
        Ok(None)
    }

    /// Begins the walk of a collection again from the top of its queue, as the collection is now; none: it cannot be walked.
    pub fn begin_again(&mut self, name: &str, collection: Option<Arc<Collection>>) {
        self.end(name);
        self.walks.extend(collection.map(|collection| Walk::of(collection, false)));
    }

    /// How the next batch of a collection begins that is live or a bulk's as these jobs are.
    pub fn look(&mut self, name: &str, jobs: &[Job], look: Look) {
        self.walks.iter_mut().filter(|walk| walk.collection.name == name).for_each(|walk| *walk.looks.of_mut(jobs) = look);
        if let Some(reached) = self.reached.get_mut(name) {
            reached.look = look;
        }
    }

    /// Nothing is left to touch in this pass, or nothing can be.
    pub fn end_touches(&mut self, collection: &str) {
        self.walks.iter_mut().filter(|walk| walk.collection.name == collection).for_each(|walk| walk.touches = Touches::Over);
    }

    /// Ends the walk of a collection.
    pub fn end(&mut self, collection: &str) {
        self.walks.retain(|walk| walk.collection.name != collection);
    }
}

impl Walk {
    fn of(collection: Arc<Collection>, on_trial: bool) -> Walk {
        let looks = Looks { live: Look::First, bulk: Look::First };
        // a blocked collection has enough to do
        let touches = if on_trial { Touches::Over } else { Touches::AfterABatch };
        let (cursor, waited, bulk) = (Cursor::TOP, Cursor::BEHIND_QUICK, Cursor::BEHIND_LIVE);
        let (quick_lanes, live_lanes) = (Lanes::default(), Lanes::default());
        Walk { collection, cursor, until: None, quick_lanes, live_lanes, waited, bulk, turn: 0, touches, at_end: false, on_trial, looks }
    }

    /// The next batch, and where the walk goes on behind it; none: all up to the end has been claimed.
    async fn claim(
        &mut self,
        context: &Context,
        aside: Option<Aside>,
        from: Cursor,
        end: Cursor,
        limit: u32,
    ) -> Result<(Transaction<'static, Postgres>, Vec<Job>, Option<Cursor>), Error> {
        let mut transaction = database::begin(&context.pool).await?;
        let name = &self.collection.name;
        if let Some(share) = self.collection.fair.filter(|_| from < Cursor::BEHIND_LIVE) {
            let quick = from < Cursor::BEHIND_QUICK;
            let (lanes, behind) =
                if quick { (&mut self.quick_lanes, Cursor::BEHIND_QUICK) } else { (&mut self.live_lanes, Cursor::BEHIND_LIVE) };
            let Fairly { jobs, next } = job::claim_fairly(&mut transaction, name, from, lanes, limit, share).await?;
            // one priority after the other
            return Ok((transaction, jobs, next.or((behind < end).then_some(behind))));
        }
        let mut jobs = job::claim_until(&mut transaction, name, from, end, limit).await?;
        // fewer than asked for: the end of the queue
        let last = jobs.last().filter(|_| jobs.len() as u32 == limit).map(Cursor::behind);
        if aside.is_none() {
            self.leave_out_seen(&mut jobs);
        }
        Ok((transaction, jobs, last))
    }

    /// Whose turn the next batch is, if it is not simply the next one's.
    fn aside(&mut self) -> Option<Aside> {
        self.turn += 1;
        let among_quick = !self.on_trial && self.cursor < Cursor::BEHIND_QUICK && self.waited < Cursor::BEHIND_LIVE;
        let among_live = !self.on_trial && self.cursor < Cursor::BEHIND_LIVE && self.bulk < Cursor::END;
        match self.turn % TURN {
            0 if among_live => Some(Aside::Bulk),
            2 if among_quick => Some(Aside::Waited),
            _ => None,
        }
    }

    /// Past the quick jobs it goes on where the turns of those that waited ended, and past these where the bulks' turns did: one walk, as
    /// without them.
    fn go_on_behind(&mut self, last: Cursor) {
        let past_quick = if last < Cursor::BEHIND_QUICK { last } else { last.max(self.waited) };
        self.cursor = if past_quick < Cursor::BEHIND_LIVE { past_quick } else { past_quick.max(self.bulk) };
    }

    /// A batch that comes from the quick jobs to the others meets those that had their turn already.
    fn leave_out_seen(&self, jobs: &mut Vec<Job>) {
        jobs.retain(|job| match Cursor::behind(job) {
            quick if quick < Cursor::BEHIND_QUICK => true,
            waited if waited < Cursor::BEHIND_LIVE => waited > self.waited,
            bulk => bulk > self.bulk,
        });
    }
}

impl Looks {
    /// A batch with live jobs is live.
    fn of(mut self, jobs: &[Job]) -> Look {
        *self.of_mut(jobs)
    }

    fn of_mut(&mut self, jobs: &[Job]) -> &mut Look {
        if jobs.first().is_some_and(is_live) { &mut self.live } else { &mut self.bulk }
    }
}

fn is_live(job: &Job) -> bool {
    Cursor::behind(job) < Cursor::BEHIND_LIVE
}

#[cfg(test)]
mod tests {
    use super::Look;

    #[test]
    fn a_batch_is_written_unseen_only_where_nearly_all_of_the_last_had_to_be() {
        assert_eq!(Look::after(2_500, 2_500, 1), Look::Later);
        assert_eq!(Look::after(2_250, 2_500, 1), Look::Later);
        assert_eq!(Look::after(2_249, 2_500, 1), Look::First);
        assert_eq!(Look::after(5_000, 2_500, 2), Look::First);
    }
}
