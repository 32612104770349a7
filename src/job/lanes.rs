//! A claim that takes from the lanes of tenants in turn, so that nobody's flood stands before everybody else's single writes.
//!
//! Lanes are an order and nothing else. Beside them a part of each batch is claimed in the order of time, over all jobs: whatever is in no
//! lane, or in one that nobody knows, is met there as without lanes.
//!
//! Where all lanes have about as much work, the order of time is as fair, and cheaper: so after such a batch the next one is claimed by time
//! alone, until one is not like that.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::claim::{Cursor, Job, QUICK};
use crate::Error;

/// The trigger makes so many: `catchword.lane`.
const LANES: usize = 64;
/// One in so many jobs of a batch is the next in the order of time, whatever lane it is in.
const BY_TIME: u32 = 8;
/// A batch asks the lanes so often at most: what is left then goes by time.
const ROUNDS: u32 = 4;

/// How far a walk has come in each lane of a priority.
#[derive(Clone, Debug)]
pub struct Lanes {
    marks: Vec<(DateTime<Utc>, i64)>,
    /// Who begins, where a batch has no room for all of them.
    first: usize,
    /// The last batch was of all lanes alike.
    even: bool,
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes { marks: vec![(DateTime::UNIX_EPOCH, 0); LANES], first: 0, even: false }
    }
}

impl Lanes {
    fn pass(&mut self, job: &Job) {
        if let Some(mark) = job.lane.and_then(|lane| self.marks.get_mut(usize::try_from(lane).ok()?)) {
            *mark = (*mark).max((job.enqueued_at, job.id));
        }
    }

    fn times(&self) -> Vec<DateTime<Utc>> {
        self.marks.iter().map(|(time, _)| *time).collect()
    }

    fn ids(&self) -> Vec<i64> {
        self.marks.iter().map(|(_, id)| *id).collect()
    }
}

/// A batch of one priority.
#[derive(Debug)]
pub struct Fairly {
    pub jobs: Vec<Job>,
    /// How far the part came that goes by time. None: nothing else of this priority is due.
    pub next: Option<Cursor>,
}

/// Claims up to `limit` due jobs of the priority that `from` stands in: from its lanes in turn, and a part in the order of time. While
/// several lanes have work, at most `share` of the batch is of one of them.
pub async fn claim_fairly(
    connection: &mut PgConnection,
    collection: &str,
    from: Cursor,
    lanes: &mut Lanes,
    limit: u32,
    share: f64,
) -> Result<Fairly, Error> {
    sqlx::query(include_str!("keep_the_plan.sql")).execute(&mut *connection).await?;
    // a share that is promised is kept in each batch, so it is not left to the order of time
    let mut turns = if lanes.even && share >= 1.0 { Turns::by_time_alone(limit) } else { Turns::new(limit, share, lanes.first) };
    lanes.first = (lanes.first + LANES.min(turns.room as usize)) % LANES;
    let mut jobs: Vec<Job> = Vec::new();
    for _ in 0..ROUNDS {
        let round = turns.next();
        if round.is_empty() {
            break;
        }
        let claimed = claim_round(&mut *connection, collection, from.stage(), lanes, &round).await?;
        claimed.iter().for_each(|job| lanes.pass(job));
        turns.note(&round, &claimed);
        jobs.extend(claimed);
    }
    let room = turns.by_time();
    let by_time: Vec<Job> = sqlx::query_as(include_str!("claim_beside_lanes.sql"))
        .bind(collection)
        .bind(from.priority)
        .bind(from.enqueued_at)
        .bind(from.id)
        .bind(i64::from(room))
        .bind(from.stage() + 1)
        .bind(lanes.times())
        .bind(lanes.ids())
        .fetch_all(&mut *connection)
        .await?;
    sqlx::query(include_str!("plan_freely.sql")).execute(connection).await?;
    by_time.iter().for_each(|job| lanes.pass(job));
    // fewer than asked for: nothing is left, in no lane
    let next = by_time.last().filter(|_| by_time.len() as u32 == room).map(Cursor::behind);
    jobs.extend(by_time);
    lanes.even = is_even(&jobs);
    Ok(Fairly { jobs, next })
}

async fn claim_round(
    connection: &mut PgConnection,
    collection: &str,
    priority: i32,
    lanes: &Lanes,
    round: &[(usize, u32)],
) -> Result<Vec<Job>, Error> {
    let marks = || round.iter().map(|(lane, _)| lanes.marks[*lane]);
    Ok(sqlx::query_as(include_str!("claim_lanes.sql"))
        .bind(collection)
        .bind(priority)
        .bind(round.iter().map(|(lane, _)| *lane as i16).collect::<Vec<_>>())
        .bind(marks().map(|(time, _)| time).collect::<Vec<_>>())
        .bind(marks().map(|(_, id)| id).collect::<Vec<_>>())
        .bind(round.iter().map(|(_, most)| i64::from(*most)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?)
}

/// Has each lane between half and twice as many of these jobs as the others on average? Then none floods the others, and none is short of
/// work, so that somebody new in it would have to wait for the others. Pure.
fn is_even(jobs: &[Job]) -> bool {
    let mut given = [0; LANES];
    for lane in jobs.iter().filter_map(|job| usize::try_from(job.lane?).ok()) {
        given.get_mut(lane).into_iter().for_each(|count| *count += 1);
    }
    let all: usize = given.iter().sum();
    given.iter().all(|count| count * LANES * 2 >= all && count * LANES <= all * 2) && all > 0
}

impl Cursor {
    /// The priority that is claimed from here: quick jobs, then live ones.
    fn stage(self) -> i32 {
        self.priority.max(QUICK)
    }
}

/// How a batch is shared out. Pure.
#[derive(Debug)]
struct Turns {
    room: u32,
    /// What is left over for the order of time.
    kept: u32,
    /// So many of one lane, while others have work too.
    most: u32,
    /// Lanes that may have more, in their order, and how many each gave.
    open: Vec<usize>,
    given: Vec<u32>,
    asked: bool,
}

impl Turns {
    fn new(limit: u32, share: f64, first: usize) -> Turns {
        let share = (f64::from(limit) * share).ceil() as u32;
        let kept = (limit / BY_TIME).min(share / 2).max(1).min(limit);
        let open = (0..LANES).map(|lane| (first + lane) % LANES).collect();
        Turns { room: limit - kept, kept, most: share.saturating_sub(kept).max(1), open, given: vec![0; LANES], asked: false }
    }

    fn by_time_alone(limit: u32) -> Turns {
        Turns { room: 0, kept: limit, most: 0, open: Vec::new(), given: vec![0; LANES], asked: false }
    }

    /// How many each lane may give next. Empty: there is no room for all of them, or none has more.
    fn next(&mut self) -> Vec<(usize, u32)> {
        let alone = self.asked && self.given.iter().filter(|given| **given > 0).count() <= 1;
        let may = |given: u32| if alone { u32::MAX } else { self.most.saturating_sub(given) };
        let waiting: Vec<(usize, u32)> = self.open.iter().map(|&lane| (lane, may(self.given[lane]))).filter(|(_, may)| *may > 0).collect();
        let Ok(count) = u32::try_from(waiting.len()) else { return Vec::new() };
        // the first time everybody must be asked who can be
        let each = if self.asked { self.room.checked_div(count).unwrap_or(0) } else { (self.room / count.max(1)).max(1) };
        self.asked = true;
        if each == 0 {
            return Vec::new();
        }
        waiting.into_iter().take((self.room / each) as usize).map(|(lane, may)| (lane, each.min(may))).collect()
    }

    fn note(&mut self, round: &[(usize, u32)], claimed: &[Job]) {
        for (lane, most) in round {
            let given = claimed.iter().filter(|job| job.lane == Some(*lane as i16)).count() as u32;
            self.given[*lane] += given;
            self.room -= given;
            if given < *most {
                self.open.retain(|open| open != lane);
            }
        }
    }

    /// What goes by time: its own part; all that is left where no lane has more.
    fn by_time(&self) -> u32 {
        self.kept + if self.open.is_empty() { self.room } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch for lanes with so many jobs each: how many of each lane it has, and what is left for the order of time.
    fn shared(limit: u32, share: f64, first: usize, jobs: &[(usize, u32)]) -> (Vec<(usize, u32)>, u32) {
        let mut left = vec![0; LANES];
        jobs.iter().for_each(|(lane, count)| left[*lane] = *count);
        let mut turns = Turns::new(limit, share, first);
        for _ in 0..ROUNDS {
            let round = turns.next();
            if round.is_empty() {
                break;
            }
            let mut claimed = Vec::new();
            for (lane, most) in &round {
                let taken = left[*lane].min(*most);
                left[*lane] -= taken;
                claimed.extend((0..taken).map(|_| of(*lane)));
            }
            turns.note(&round, &claimed);
        }
        (turns.given.iter().copied().enumerate().filter(|(_, given)| *given > 0).collect(), turns.by_time())
    }

    fn of(lane: usize) -> Job {
        Job {
            id: 1,
            key: "1".into(),
            priority: QUICK,
            enqueued_at: DateTime::UNIX_EPOCH,
            scheduled_at: DateTime::UNIX_EPOCH,
            claimed_at: DateTime::UNIX_EPOCH,
            attempts: 0,
            unanswered: None,
            tag: "insert".into(),
            traceparent: None,
            expired: false,
            lane: Some(lane as i16),
        }
    }

    #[test]
    fn single_jobs_are_all_in_the_batch_of_a_flood() {
        let singles = [(1, 1), (7, 2), (63, 1)];
        let (given, by_time) = shared(2_500, 1.0, 0, &[&[(5, 100_000)], &singles[..]].concat());
        assert_eq!(given, [(1, 1), (5, 2_184), (7, 2), (63, 1)]);
        assert_eq!(by_time, 312);
    }

    #[test]
    fn who_has_much_shares_alike_and_what_nobody_uses_goes_by_time() {
        assert_eq!(shared(2_500, 1.0, 0, &[(3, 9_000), (4, 9_000)]), (vec![(3, 1_094), (4, 1_094)], 312));
        assert_eq!(shared(2_500, 1.0, 0, &[(3, 10)]), (vec![(3, 10)], 2_490));
        assert_eq!(shared(2_500, 1.0, 0, &[]), (vec![], 2_500));
        let all: Vec<_> = (0..LANES).map(|lane| (lane, 9_000)).collect();
        assert!(shared(2_500, 1.0, 0, &all).0.iter().all(|(_, given)| *given == 34));
    }

    #[test]
    fn a_share_holds_while_others_have_work() {
        let (given, by_time) = shared(1_000, 0.3, 0, &[(1, 9_000), (2, 9_000)]);
        assert_eq!(given, [(1, 175), (2, 175)]);
        assert!(175 + by_time <= 300, "with all that goes by time");
        let (given, by_time) = shared(1_000, 0.5, 0, &[(1, 9_000), (2, 3)]);
        assert_eq!(given, [(1, 375), (2, 3)]);
        assert!(375 + by_time <= 500);
        assert_eq!(shared(1_000, 0.3, 0, &[(1, 9_000)]), (vec![(1, 875)], 125), "alone it may have all");
    }

    #[test]
    fn a_batch_is_even_if_no_lane_floods_it_and_none_is_short() {
        let batch = |counts: &dyn Fn(usize) -> usize| (0..LANES).flat_map(|lane| vec![of(lane); counts(lane)]).collect::<Vec<_>>();
        assert!(is_even(&batch(&|_| 39)));
        assert!(is_even(&batch(&|lane| 25 + lane % 30)), "as chance has it");
        assert!(!is_even(&batch(&|lane| if lane == 7 { 200 } else { 36 })), "one floods the others");
        assert!(!is_even(&batch(&|lane| if lane == 7 { 0 } else { 39 })), "one has no work, so somebody new there comes first");
        assert!(!is_even(&batch(&|lane| usize::from(lane < 20))));
        assert!(!is_even(&[]));
    }

    #[test]
    fn by_time_alone_asks_no_lane() {
        let mut turns = Turns::by_time_alone(2_500);
        assert!(turns.next().is_empty());
        assert_eq!(turns.by_time(), 2_500);
    }

    #[test]
    fn a_batch_without_room_for_all_lanes_begins_with_others_each_time() {
        let all: Vec<_> = (0..LANES).map(|lane| (lane, 9)).collect();
        let (first, _) = shared(50, 1.0, 0, &all);
        let (second, _) = shared(50, 1.0, 44, &all);
        assert_eq!(first.len(), 44);
        assert!((0..LANES).all(|lane| first.contains(&(lane, 1)) || second.contains(&(lane, 1))));
        assert_eq!(shared(1, 0.01, 0, &all), (vec![], 1), "one job goes by time");
    }
}
