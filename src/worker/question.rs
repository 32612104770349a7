//! When the keeper asks whether a quick job is due, and how far back it looks. It measures itself and asks less often where that is
//! expensive. Pure: time comes from outside.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// As often as the configuration says, for so long after the last quick job.
const BUSY: Duration = Duration::from_secs(60);
/// So often after that.
const IDLE: Duration = Duration::from_millis(250);
/// How far back it looks, as a rule. A job is as old as the transaction that scheduled it, so this is longer than a short one takes; and
/// what was settled since is read again and again while a long transaction keeps vacuum away, so it is no longer than that.
const NEAR: Duration = Duration::from_secs(2);
/// How far back it looks now and then. What commits even later is the loop's.
const FAR: Duration = Duration::from_secs(60);
const FAR_EVERY: Duration = Duration::from_secs(1);
/// Of a core it takes this share at most, and for looking far back a quarter of that.
const SHARE: f64 = 0.02;
const FAR_SHARE: f64 = SHARE / 4.0;
/// What a question costs beside what the server measures: to be received, planned and answered.
const ROUND_TRIP: Duration = Duration::from_micros(50);
/// The median of so many questions is what one costs. The server measures by the clock: on a busy machine some of them wait for a core, and
/// to ask less often because of that would make those who write wait too.
const RECENT: usize = 9;

/// The pace of the questions.
#[derive(Debug)]
pub(super) struct Pace {
    every: Duration,
    /// When a quick job was last found.
    found: Instant,
    /// When it last asked.
    asked: Instant,
    /// What the last usual questions took.
    near: VecDeque<Duration>,
    /// When it last looked far back, and how long that took.
    far_at: Option<Instant>,
    far: Duration,
}

impl Pace {
    /// For a keeper that begins now, and is to ask so often.
    pub fn new(every: Duration, now: Instant) -> Pace {
        Pace { every, found: now, asked: now, near: [ROUND_TRIP; RECENT].into(), far_at: None, far: ROUND_TRIP }
    }

    /// How far back the next question looks.
    pub fn reach(&self, now: Instant) -> Duration {
        let far_is_due = self.far_at.is_none_or(|at| now.saturating_duration_since(at) >= self.far_every());
        if far_is_due { FAR } else { (NEAR + now.saturating_duration_since(self.asked)).min(FAR / 2) }
    }

    /// It is time to look far back.
    pub fn is_far(&self, reach: Duration) -> bool {
        reach == FAR
    }

    /// A question that looked so far back took so long, as the server measured it.
    pub fn asked(&mut self, reach: Duration, took: Duration, now: Instant) {
        let took = took + ROUND_TRIP;
        self.asked = now;
        if reach == FAR {
            (self.far_at, self.far) = (Some(now), took);
        } else {
            self.near.pop_front();
            self.near.push_back(took);
        }
    }

    /// A quick job was found: more may follow.
    pub fn found(&mut self, now: Instant) {
        self.found = now;
    }

    /// How long to wait before the next question.
    pub fn wait(&self, now: Instant) -> Duration {
        let is_busy = now.saturating_duration_since(self.found) < BUSY;
        let every = if is_busy { self.every } else { self.every.max(IDLE) };
        let far_share = self.far.as_secs_f64() / self.far_every().as_secs_f64();
        every.max(self.usual().div_f64(SHARE - far_share))
    }

    fn far_every(&self) -> Duration {
        FAR_EVERY.max(self.far.div_f64(FAR_SHARE))
    }

    fn usual(&self) -> Duration {
        let mut near: Vec<Duration> = self.near.iter().copied().collect();
        *near.select_nth_unstable(RECENT / 2).1
    }
}

/// Whether an answer could be another one than before. The sequence that gives jobs their ids tells: what has no id yet is not due. A job has
/// its id before it is committed, so the question is asked again, each time a quarter later than the time before: a transaction that takes a
/// second is met a quarter of a second after its commit, and one of milliseconds at once.
#[derive(Debug)]
pub(super) struct Stillness<T> {
    /// Something was due when it was last asked.
    found: bool,
    /// The last id then; none: it was not read.
    id: Option<i64>,
    /// When that id was first seen.
    rose: Instant,
    /// When it was last asked, and for what.
    asked: Instant,
    of: T,
}

impl<T: PartialEq> Stillness<T> {
    pub fn new(of: T, now: Instant) -> Stillness<T> {
        Stillness { found: false, id: None, rose: now, asked: now, of }
    }

    /// Whether the last id is worth reading. It is not where something was due a moment ago.
    pub fn may_hold(&self) -> bool {
        !self.found
    }

    /// Nothing can be due that was not before.
    pub fn holds(&self, id: i64, of: &T, now: Instant) -> bool {
        let since = |then: Instant, now: Instant| now.saturating_duration_since(then);
        self.id == Some(id) && self.of == *of && since(self.asked, now) < since(self.rose, self.asked) / 4
    }

    /// It was asked, after the id was read.
    pub fn asked(&mut self, id: Option<i64>, of: T, found: bool, now: Instant) {
        let rose = if self.id == id { self.rose } else { now };
        *self = Stillness { found, id, rose, asked: now, of };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_millis(25);

    #[test]
    fn while_no_job_gets_an_id_the_question_is_asked_more_and_more_rarely_and_each_change_ends_that() {
        let (begun, ms) = (Instant::now(), Duration::from_millis);
        let mut still = Stillness::new("a", begun);
        assert!(!still.holds(7, &"a", begun), "nothing is known yet");
        still.asked(Some(7), "a", false, begun);
        let mut asked = vec![];
        for at in 1..=1_000 {
            if !still.holds(7, &"a", begun + ms(at)) {
                asked.push(at);
                still.asked(Some(7), "a", false, begun + ms(at));
            }
        }
        assert!(asked.len() < 40, "{asked:?}");
        // a transaction that committed at any time is met a quarter later
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] <= 1 + pair[0] / 4), "{asked:?}");
        let now = begun + ms(1_001);
        assert!(still.holds(7, &"a", now));
        assert!(!still.holds(8, &"a", now), "a job got an id");
        assert!(!still.holds(7, &"b", now), "another collection can be worked on");
        still.asked(Some(8), "a", true, now);
        assert!(!still.may_hold(), "something was due");
        still.asked(None, "a", false, now);
        assert!(still.may_hold() && !still.holds(8, &"a", now), "the id was not read before the question");
    }

    /// Asks for so long, each question taking so long: how many there were, and what share of the time they took.
    fn ask_for(pace: &mut Pace, mut now: Instant, long: Duration, near: Duration, far: Duration) -> (u32, f64) {
        let (end, mut asked, mut spent) = (now + long, 0, Duration::ZERO);
        while now < end {
            let reach = pace.reach(now);
            let took = if reach == FAR { far } else { near };
            (asked, spent, now) = (asked + 1, spent + took, now + took);
            pace.asked(reach, took, now);
            now += pace.wait(now);
        }
        (asked, spent.as_secs_f64() / long.as_secs_f64())
    }

    #[test]
    fn it_asks_as_often_as_it_is_told_and_less_often_after_a_minute_with_nothing() {
        let (mut pace, now) = (Pace::new(EVERY, Instant::now()), Instant::now());
        assert_eq!(pace.wait(now), EVERY);
        assert_eq!(pace.wait(now + BUSY + EVERY), IDLE);
        pace.found(now + BUSY);
        assert_eq!(pace.wait(now + BUSY + EVERY), EVERY);
        let slow = Pace::new(Duration::from_secs(5), now);
        assert_eq!(slow.wait(now + 2 * BUSY), Duration::from_secs(5));
    }

    #[test]
    fn it_looks_far_back_once_a_second() {
        let (mut pace, now) = (Pace::new(EVERY, Instant::now()), Instant::now());
        assert_eq!(pace.reach(now), FAR, "whatever the keeper before it did not see");
        pace.asked(FAR, Duration::ZERO, now);
        assert_eq!(pace.reach(now + EVERY), NEAR + EVERY, "and never less than since the last question");
        assert_eq!(pace.reach(now + FAR_EVERY), FAR);
    }

    #[test]
    fn some_slow_answers_change_nothing_and_many_of_them_never_take_more_than_two_per_cent() {
        let minute = Duration::from_secs(60);
        let now = Instant::now();
        // every third question waits for a core, and one of them for a second
        let (every, mut pace) = (Duration::from_millis(5), Pace::new(Duration::from_millis(5), now));
        for n in 0..1_000 {
            let slow = if n == 501 { 1_000_000 } else { 3_000 };
            pace.asked(NEAR, Duration::from_micros(if n % 3 == 0 { slow } else { 40 }), now + n * every);
            assert_eq!(pace.wait(now + n * every), every);
        }
        let usual = ask_for(&mut Pace::new(EVERY, now), now, minute, Duration::from_micros(100), Duration::from_micros(100));
        assert!(usual.0 > 2_200 && usual.1 < 0.005, "{usual:?}");
        for (near, far) in [(1, 3), (3, 78), (78, 2_000), (500, 500)] {
            let mut pace = Pace::new(Duration::from_millis(1), now);
            let (near, far) = (Duration::from_millis(near), Duration::from_millis(far));
            ask_for(&mut pace, now, minute, near, far);
            let (asked, share) = ask_for(&mut pace, now + minute, 10 * minute, near, far);
            assert!(asked > 10 && share < 0.021, "{near:?}, {far:?}: {share}");
        }
    }
}
