//! Numbers, spans and times as people read them. Pure.

use chrono::{DateTime, Datelike, Utc};

use crate::job::{CENSUS_LIMIT, Census};

/// `1,204,553`
pub(super) fn count(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if n < 0 {
        grouped.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count of the census, which estimates where there are many.
pub(super) fn counted(census: &Census, n: i64) -> String {
    if census.estimated && n >= CENSUS_LIMIT { format!("about {}", count(n)) } else { count(n) }
}

/// `1 job`, `12,400 jobs`
pub(super) fn of(n: i64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{} {what}s", count(n)) }
}

/// `0.04 s`, `12 s`, `6 min`, `3 h`, `2 days`: one unit, and no more digits than anybody reads.
pub(super) fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    match seconds {
        s if s < 0.095 => format!("{s:.2} s"),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 89.5 => format!("{s:.0} s"),
        s if s < 5_370.0 => format!("{:.0} min", s / 60.0),
        s if s < 128_000.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// About how long something still takes.
pub(super) fn left(seconds: f64) -> String {
    format!("about {}", span(seconds.max(1.0)))
}

/// A moment: short for the eye, whole in its title, and as machines read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub short: String,
    pub full: String,
    pub iso: String,
}

/// As seen from `now`: the time alone where it is the same day.
pub(super) fn moment(at: DateTime<Utc>, now: DateTime<Utc>) -> Moment {
    let short = match () {
        () if at.date_naive() == now.date_naive() => at.format("%H:%M").to_string(),
        () if at.year() == now.year() => at.format("%-d %b %H:%M").to_string(),
        () => at.format("%Y-%m-%d").to_string(),
    };
    Moment { short, ..exactly(at) }
}

/// The time to the second.
pub(super) fn exactly(at: DateTime<Utc>) -> Moment {
    Moment {
        short: at.format("%H:%M:%S").to_string(),
        full: at.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
        iso: at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }
}

/// The first letter in upper case: a fact of `check` begins a sentence here.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    #[test]
    fn a_count_has_commas() {
        for (n, told) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_400, "12,400"), (1_204_553, "1,204,553"), (-1_000, "-1,000")] {
            assert_eq!(count(n), told);
        }
        assert_eq!((of(1, "job"), of(2_500, "key")), ("1 job".into(), "2,500 keys".into()));
    }

    #[test]
    fn a_span_has_one_unit() {
        let told = [
            (0.0, "0.00 s"),
            (0.041, "0.04 s"),
            (0.94, "0.9 s"),
            (12.3, "12 s"),
            (360.0, "6 min"),
            (7_200.0, "2 h"),
            (172_800.0, "2 days"),
            (-1.0, "0.00 s"),
        ];
        for (seconds, told) in told {
            assert_eq!(span(seconds), told);
        }
    }

    #[test]
    fn a_moment_of_today_is_a_time_and_another_has_its_day() {
        let at = |y, mo, d, h, mi| Utc.with_ymd_and_hms(y, mo, d, h, mi, 7).unwrap();
        let now = at(2026, 11, 17, 12, 41);
        assert_eq!(moment(at(2026, 11, 17, 4, 10), now).short, "04:10");
        assert_eq!(moment(at(2026, 11, 6, 4, 10), now).short, "6 Nov 04:10");
        assert_eq!(moment(at(2025, 11, 6, 4, 10), now).short, "2025-11-06");
        assert_eq!(moment(at(2026, 11, 17, 4, 10), now).full, "2026-11-17 04:10:07 UTC");
    }
}
