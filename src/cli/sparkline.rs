//! A row of small bars, one for each step of time. Pure.

use chrono::{DateTime, Utc};

use crate::history::Minute;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A step without a worker.
const GAP: char = ' ';

/// The steps that some minutes are put into: so many that they fit into a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// Minutes in one step.
    pub minutes: i64,
    pub count: usize,
}

impl Steps {
    /// Of so many minutes, in at most so many columns.
    pub fn of(minutes: i64, columns: usize) -> Steps {
        let (minutes, columns) = (minutes.max(1), i64::try_from(columns.max(1)).unwrap_or(i64::MAX));
        let step = minutes.div_euclid(columns) + i64::from(minutes % columns > 0);
        Steps { minutes: step, count: (minutes.div_euclid(step) + i64::from(minutes % step > 0)) as usize }
    }

    /// The most in each step, the last of which ends now. None: nobody was there, or there was nothing to be measured.
    pub fn most(&self, minutes: &[Minute], now: DateTime<Utc>, value: impl Fn(&Minute) -> Option<f64>) -> Vec<Option<f64>> {
        let mut steps: Vec<Option<f64>> = vec![None; self.count];
        for minute in minutes {
            // the minute that is under way has no row
            let ago = (now - minute.at).num_minutes() - 1;
            let back = usize::try_from(ago.max(0) / self.minutes).unwrap_or(usize::MAX);
            if let (Some(place), Some(value)) = (self.count.checked_sub(back + 1), value(minute)) {
                steps[place] = Some(steps[place].map_or(value, |before| before.max(value)));
            }
        }
        steps
    }
}

/// As high as each is, compared with the highest. Nothing is the lowest bar, and anything is higher than that.
pub(super) fn sparkline(values: &[Option<f64>]) -> String {
    let highest = values.iter().flatten().copied().fold(0.0, f64::max);
    let top = BARS.len() - 1;
    let bar = |value: f64| match value {
        value if value <= 0.0 || highest <= 0.0 => BARS[0],
        value => BARS[((value / highest * top as f64).round() as usize).clamp(1, top)],
    };
    values.iter().map(|value| value.map_or(GAP, bar)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn a_gap_a_zero_and_a_little_are_three_different_things() {
        assert_eq!(sparkline(&[None, Some(0.0), Some(0.1), Some(50.0), Some(100.0)]), " ▁▂▅█");
        assert_eq!(sparkline(&[Some(0.0), None]), "▁ ");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn minutes_are_put_into_as_many_steps_as_fit() {
        assert_eq!(Steps::of(60, 60), Steps { minutes: 1, count: 60 });
        assert_eq!(Steps::of(60, 38), Steps { minutes: 2, count: 30 });
        assert_eq!(Steps::of(180, 38), Steps { minutes: 5, count: 36 });
        assert_eq!(Steps::of(11_520, 38), Steps { minutes: 304, count: 38 });
        assert_eq!(Steps::of(0, 0), Steps { minutes: 1, count: 1 });
    }

    #[test]
    fn the_last_step_ends_with_the_last_minute_that_is_over() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::seconds(90_005);
        let minute = |ago: i64, due: i64| Minute {
            at: DateTime::UNIX_EPOCH + TimeDelta::seconds(90_000 - 60 * ago),
            scheduled: 0,
            settled: 0,
            written: 0,
            pushed_back: 0,
            buried: 0,
            due,
            waiting: 0,
            oldest_seconds: None,
            fresh_p50: None,
            fresh_p99: None,
        };
        let minutes = [minute(9, 9), minute(4, 4), minute(3, 7), minute(1, 1)];
        let due = |minute: &Minute| Some(minute.due as f64);
        assert_eq!(Steps { minutes: 1, count: 4 }.most(&minutes, now, due), [Some(4.0), Some(7.0), None, Some(1.0)]);
        assert_eq!(Steps { minutes: 2, count: 2 }.most(&minutes, now, due), [Some(7.0), Some(1.0)]);
    }
}
