//! The clock's cron expression. The worker's scheduler would refuse a wrong one too, but only after everything else has
//! started, and without a line. What is accepted here is the part of cron that everybody means the same by.

use std::ops::RangeInclusive;

use super::error::Fault;

/// Five or six fields of numbers, `*`, ranges, lists and steps; names for months and days. Always returns six: classic
/// cron has five and means the first second of the minute.
pub(super) fn parse(tick: &str) -> Result<String, Fault> {
    let wrong =
        |problem: String| Fault::new(problem, r#"write for instance tick = "0 * * * * *": second, minute, hour, day, month, weekday"#);
    let mut fields: Vec<&str> = tick.split_whitespace().collect();
    match fields.len() {
        5 => fields.insert(0, "0"),
        6 => {}
        found => {
            return Err(wrong(format!("has {found} fields, and cron has five or six")));
        }
    }
    for (field, known) in fields.iter().zip(FIELDS) {
        if !known.allows(field) {
            let (name, least, most) = (known.name, known.range.start(), known.range.end());
            return Err(wrong(format!("has a {name} that is not within {least} to {most}: {field:?}")));
        }
    }
    Ok(fields.join(" "))
}

struct Field {
    name: &'static str,
    range: RangeInclusive<u8>,
    /// Stand for the numbers from the range's first on.
    words: &'static [&'static str],
}

const FIELDS: [Field; 6] = [
    Field { name: "second", range: 0..=59, words: &[] },
    Field { name: "minute", range: 0..=59, words: &[] },
    Field { name: "hour", range: 0..=23, words: &[] },
    Field { name: "day", range: 1..=31, words: &[] },
    Field { name: "month", range: 1..=12, words: MONTHS },
    Field { name: "weekday", range: 0..=7, words: DAYS },
];

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Field {
    fn allows(&self, field: &str) -> bool {
        field.split(',').all(|part| self.allows_part(part))
    }

    fn allows_part(&self, part: &str) -> bool {
        let (span, step) = match part.split_once('/') {
            None => (part, None),
            Some((span, step)) => (span, Some(step)),
        };
        let first_to_last = match span.split_once('-') {
            _ if span == "*" => true,
            // `5/10` means different things to different crons
            None => step.is_none() && self.value(span).is_some(),
            Some((first, last)) => match (self.value(first), self.value(last)) {
                (Some(first), Some(last)) => first <= last,
                _ => false,
            },
        };
        first_to_last && step.is_none_or(|step| self.is_step(step))
    }

    fn is_step(&self, step: &str) -> bool {
        digits(step).is_some_and(|step| (1..=*self.range.end()).contains(&step))
    }

    fn value(&self, text: &str) -> Option<u8> {
        let word = self.words.iter().position(|word| word.eq_ignore_ascii_case(text));
        let value = match word.and_then(|nth| u8::try_from(nth).ok()) {
            Some(nth) => self.range.start() + nth,
            None => digits(text)?,
        };
        self.range.contains(&value).then_some(value)
    }
}

/// Unlike `parse`, takes no sign.
fn digits(text: &str) -> Option<u8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_fields_get_the_first_second() {
        assert_eq!(parse("* * * * *").unwrap(), "0 * * * * *");
        assert_eq!(parse(" */5  * * * * * ").unwrap(), "*/5 * * * * *");
    }

    #[test]
    fn what_cron_says_is_accepted() {
        for tick in [
            "0 * * * * *",
            "* * * * * *",
            "* * * * *",
            "*/5 * * * * *",
            "0 0-30/10 1,2,3 * * *",
            "0 0 0 1 JAN mon-fri",
            "59 59 23 31 12 7",
            "0 0 3 * * sun",
        ] {
            assert!(parse(tick).is_ok(), "{tick:?}: {:?}", parse(tick));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for tick in [
            "",
            "every minute",
            "* * * *",
            "* * * * * * *",
            "60 * * * * *",
            "0 60 * * * *",
            "0 0 24 * * *",
            "0 0 0 0 * *",
            "0 0 0 32 * *",
            "0 0 0 1 13 *",
            "0 0 0 1 0 *",
            "0 0 0 1 1 8",
            "*/0 * * * * *",
            "*/ * * * * *",
            "*/60 * * * * *",
            "5/10 * * * * *",
            "30-10 * * * * *",
            "1-2-3 * * * * *",
            "1, * * * * *",
            "+1 * * * * *",
            "-1 * * * * *",
            "a * * * * *",
            "mon * * * * *",
            "999 * * * * *",
            "ä * * * * *",
            "@hourly",
        ] {
            assert!(parse(tick).is_err(), "{tick:?} was accepted");
        }
    }

    #[test]
    fn the_field_is_named() {
        let fault = parse("0 61 * * * *").unwrap_err();
        assert_eq!(fault.problem, "has a minute that is not within 0 to 59: \"61\"");
    }
}
