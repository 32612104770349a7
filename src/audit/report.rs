//! What an audit found, for people and scripts.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Cause, Counts, Fields, Kind, remedy};
use crate::printable::{Line, Tone, printable, write_plain};

/// Characters of a key that are shown; the JSON has all of them.
const SHOWN: usize = 80;

/// What an audit found, or has found so far.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub audit: i64,
    pub collection: String,
    pub indices: Vec<String>,
    /// Keys and documents that were looked at.
    pub looked: u64,
    /// About how many there will have been in the end, if anybody knows.
    pub expected: Option<u64>,
    /// How many differ, by kind.
    pub differences: Counts,
    /// Keys that differ now and have an open job, which will look at them.
    pub pending: u64,
    /// Keys of schemas that came or went: an audit with repair was asked for then, and schedules them.
    pub left: u64,
    /// Keys of which it could not be told.
    pub unknown: u64,
    /// Keys that were scheduled for repair.
    pub scheduled: u64,
    pub repair: bool,
    /// Were the documents themselves compared?
    pub content: bool,
    /// If not: of this share of the keys they were.
    pub content_share: Option<f64>,
    /// Only rows of the period since then were compared.
    pub since: Option<DateTime<Utc>>,
    /// Only this share of the keys was.
    pub sample: Option<f64>,
    /// Since when, by whom and why the work on it is paused, asked at the end.
    pub paused: Option<String>,
    /// Why it cannot be worked on, asked at the end.
    pub blocked: Option<String>,
    pub examples: Vec<Example>,
    /// If documents differ under equal numbers: why that may be, the likeliest first. Asked at the end.
    pub likely_causes: Vec<Cause>,
    /// What was committed before is what is compared.
    pub asked_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// A key that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    pub key: String,
    pub kind: Kind,
    pub index: String,
    /// What Postgres wants: a version, `gone at` one, or nothing.
    pub postgres: String,
    /// What the index has.
    pub elasticsearch: String,
    /// The fields that differ, if the versions agree.
    #[serde(default)]
    pub fields: Fields,
}

impl Report {
    /// How many differ.
    pub fn differ(&self) -> u64 {
        self.differences.values().sum()
    }

    /// Did documents differ under equal numbers?
    pub fn is_other_content(&self) -> bool {
        remedy::is_content(&self.differences)
    }

    /// Do both sides agree, but for what jobs are open for?
    pub fn is_in_step(&self) -> bool {
        self.differ() == 0 && self.unknown == 0
    }

    /// Why it cannot be told whether both sides agree, with what to do. None: it can. A difference that was seen is one, whatever else
    /// was not.
    pub fn untold(&self) -> Option<String> {
        let Report { collection, unknown, pending, .. } = self;
        if self.differ() > 0 {
            return None;
        }
        let nothing = self.looked == 0;
        match (&self.paused, &self.blocked) {
            _ if *unknown > 0 => Some(format!("{unknown} keys could not be compared; repeat it when both servers are up")),
            _ if nothing && self.since.is_some() => Some("nothing was compared: no row is of that period; take an earlier --since".into()),
            _ if nothing && self.sample.is_some() => {
                Some("nothing was compared: the share is less than one key; use a larger --sample".into())
            }
            (Some(_), _) if *pending > 0 => {
                Some(format!("what is pending waits while it is paused; resume it: catchword resume {collection}"))
            }
            (None, Some(_)) if *pending > 0 => Some("what is pending waits while it is blocked; fix that first".into()),
            _ => None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_plain(f, self.lines())
    }
}

impl Report {
    /// All of it, line by line.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let plain = |text: String| (Tone::Plain, text);
        let mut lines = vec![plain(self.collection.clone())];
        lines.push(plain(format!("  compared  {} keys and documents, with {}", self.looked, self.indices.join(", "))));
        // what is scheduled for repair needs nobody
        let differs = if self.repair { Tone::Note } else { Tone::Wrong };
        for kind in Kind::ALL {
            let count = self.differences.get(kind.name()).copied().unwrap_or(0);
            if count > 0 {
                lines.push((differs, format!("  {:<9} {count}: {}", kind.name(), kind.means())));
                for example in self.examples.iter().filter(|example| example.kind == kind).take(3) {
                    let (key, index) = (quoted(&example.key), &example.index);
                    lines.push(plain(format!("            {key}: Postgres {}, {index} {}", example.postgres, example.elasticsearch)));
                    lines.extend(example.fields.lines().into_iter().map(|line| plain(format!("              {line}"))));
                }
            }
        }
        if self.pending > 0 {
            let held = self.paused.is_some() || self.blocked.is_some();
            let looked_at = if held { "" } else { ", and will look at it" };
            lines.push(plain(format!("  pending   {}: a job is open for each{looked_at}", self.pending)));
        }
        if self.left > 0 {
            let says = format!("  left      {}: of schemas that came or went; the audit that migrate asked for schedules them", self.left);
            lines.push(plain(says));
        }
        if self.unknown > 0 {
            lines.push((Tone::Note, format!("  unknown   {}: neither side could be asked about these", self.unknown)));
        }
        for (word, why) in [("paused", &self.paused), ("blocked", &self.blocked)] {
            lines.extend(why.as_ref().map(|why| (Tone::Note, format!("  {word:<9} {}", printable(why)))));
        }
        match (self.differ(), self.untold()) {
            (0, None) => lines.push((Tone::Well, "  in step".into())),
            (0, Some(why)) => lines.push((Tone::Wrong, format!("  could not tell: {why}"))),
            _ => lines.extend(self.what_to_do()),
        }
        lines
    }

    fn what_to_do(&self) -> Vec<Line> {
        let Report { collection, differences, scheduled, .. } = self;
        let mut lines = vec![match (remedy::repairable(differences), self.repair) {
            (0, _) => (Tone::Wrong, "  not in step; no repair can help".into()),
            (_, true) => (Tone::Note, format!("  not in step; {scheduled} scheduled for repair, watch them: catchword status")),
            (_, false) => (Tone::Wrong, format!("  not in step; repair it: {}", remedy::repair(collection, differences))),
        }];
        for (n, cause) in self.likely_causes.iter().enumerate() {
            let word = if n == 0 { "other content under equal numbers; likely cause" } else { "or" };
            lines.push((Tone::Plain, format!("  {word}: {}; {}", printable(&cause.what), cause.remedy)));
        }
        match remedy::given_up(differences) {
            0 => {}
            dead => lines.push((Tone::Wrong, format!("  {dead} given up; {}", remedy::correct(collection)))),
        }
        lines
    }
}

/// A key for people: an empty one is seen, and a long one leaves room for the rest.
fn quoted(key: &str) -> String {
    match key.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("\"{}\"…", printable(&key[..end])),
        None => format!("\"{}\"", printable(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            audit: 1,
            collection: "note".into(),
            indices: vec!["note-000001".into()],
            looked: 10,
            expected: None,
            differences: Counts::new(),
            pending: 0,
            left: 0,
            unknown: 0,
            scheduled: 0,
            repair: false,
            content: false,
            content_share: None,
            since: None,
            sample: None,
            paused: None,
            blocked: None,
            examples: Vec::new(),
            likely_causes: Vec::new(),
            asked_at: DateTime::UNIX_EPOCH,
            finished_at: None,
        }
    }

    #[test]
    fn a_key_is_seen_where_it_begins_and_ends_and_fills_no_screen() {
        assert_eq!(quoted(""), r#""""#);
        assert_eq!(quoted(" a\n"), r#"" a\n""#);
        assert_eq!(quoted(&"é".repeat(80)), format!("\"{}\"", "é".repeat(80)));
        assert_eq!(quoted(&"é".repeat(513)), format!("\"{}\"…", "é".repeat(80)));
    }

    #[test]
    fn in_step_is_said_only_of_what_was_compared_and_is_worked_on() {
        let (paused, blocked, since) = (Some("by mina: moving".to_owned()), Some("closed".to_owned()), Some(DateTime::UNIX_EPOCH));
        for (what, report, untold) in [
            ("all of it", report(), false),
            ("an empty table", Report { looked: 0, ..report() }, false),
            ("no row since", Report { looked: 0, since, ..report() }, true),
            ("some rows since", Report { since, ..report() }, false),
            ("no key of a share", Report { looked: 0, sample: Some(1e-9), ..report() }, true),
            ("jobs that are worked on", Report { pending: 3, ..report() }, false),
            ("jobs of a pause", Report { pending: 3, paused: paused.clone(), ..report() }, true),
            ("jobs that are blocked", Report { pending: 3, blocked, ..report() }, true),
            ("a pause without jobs", Report { paused, ..report() }, false),
            ("keys that nobody could be asked about", Report { unknown: 1, ..report() }, true),
        ] {
            let last = if untold { "could not tell: " } else { "in step" };
            assert_eq!(report.untold().is_some(), untold, "{what}");
            assert!(report.to_string().lines().last().unwrap().trim().starts_with(last), "{what}: {report}");
        }
        let differs = Report { differences: [("missing".to_owned(), 1)].into(), unknown: 1, ..report() };
        assert_eq!(differs.untold(), None);
    }
}
