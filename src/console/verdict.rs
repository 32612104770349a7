//! The sentence on top: what `check` says, in the words of somebody who was woken by it. Pure.

use super::state::State;
use super::text::{self, Text, text};
use super::words::{capital, count, of, span};
use crate::check::{Check, Level, Report};
use crate::status::{CollectionStatus, Status};

/// Judgements of lateness: work moves, and not fast enough.
const LATE: [&str; 5] =
    ["CatchwordQueueLong", "CatchwordOldestDueJob", "CatchwordOldestChange", "CatchwordFreshnessBurnFast", "CatchwordFreshnessBurnSlow"];
/// A plain write is verified within seconds, and one of `store_and_schedule` within two minutes. Older ones are behind, long before
/// anybody is woken.
const BEHIND_SECONDS: f64 = 150.0;

/// How everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub state: State,
    /// Two or three words.
    pub headline: String,
    /// A sentence.
    pub sentence: String,
    /// What is so, the worst first, and what to do.
    pub causes: Vec<Cause>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    pub state: State,
    /// The alarm that judges the same.
    pub name: &'static str,
    pub collection: Option<String>,
    pub says: Text,
    pub remedy: Text,
    /// The page that has the buttons for it, without the base path.
    pub href: String,
}

/// Judges what whoever looks may see. Without a status nothing is known but what `check` says.
pub(super) fn verdict(report: &Report, status: Option<&Status>, sees: &dyn Fn(&str) -> bool) -> Verdict {
    let seen = || report.checks.iter().filter(|check| check.collection.as_deref().is_none_or(sees));
    let level = seen().map(|check| check.level).max().unwrap_or(Level::Unknown);
    let mut causes: Vec<Cause> = seen().filter(|check| check.level != Level::Well).map(cause).collect();
    // what is not known outweighs everything, and comes first as well
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.state));
    let late = status.and_then(|status| latest(status, sees));
    let state = match (level, late) {
        (Level::Unknown, _) => State::Unknown,
        (Level::Unwell, _) if causes.iter().any(|cause| cause.state == State::NotWell) => State::NotWell,
        (Level::Unwell, _) | (_, Some(_)) => State::Behind,
        (Level::Warning, None) => State::Remark,
        (Level::Well, None) => State::InStep,
    };
    let headline = match state {
        State::InStep => "In step".into(),
        State::Remark => format!("In step, with {}", if causes.len() == 1 { "a remark".into() } else { of(causes.len() as i64, "remark") }),
        State::Behind => "Behind".into(),
        State::Unknown => "Not known".into(),
        _ => "Not well".into(),
    };
    let sentence = match (state, late, status) {
        (State::InStep | State::Remark, _, Some(status)) => on_their_way(status, sees),
        (State::Behind, Some((collection, seconds)), _) if causes.is_empty() => format!(
            "The oldest change of {} that is not verified was made {} ago. Work goes on; nobody has to do anything unless this grows.",
            text::line(&collection.name),
            span(seconds)
        ),
        _ => causes.first().map_or(String::new(), sentence_of),
    };
    Verdict { state, headline, sentence, causes }
}

fn sentence_of(cause: &Cause) -> String {
    let of = cause.collection.as_ref().map_or(String::new(), |name| format!("{}: ", text::line(name)));
    format!("{of}{}.", if of.is_empty() { capital(&cause.says.short) } else { cause.says.short.clone() })
}

/// The collection whose oldest change is late, if one is. What is paused is meant to wait.
fn latest<'s>(status: &'s Status, sees: &dyn Fn(&str) -> bool) -> Option<(&'s CollectionStatus, f64)> {
    let age = |collection: &CollectionStatus| collection.census.as_ref().and_then(|census| census.oldest_change_seconds);
    let ages = status
        .collections
        .iter()
        .filter(|collection| collection.paused.is_none() && sees(&collection.name))
        .filter_map(|c| Some((c, age(c)?)));
    ages.max_by(|(_, one), (_, other)| one.total_cmp(other)).filter(|(_, seconds)| *seconds > BEHIND_SECONDS)
}

/// What is open although all is well. A job is deleted only when both sides were seen to agree, so no job means in step.
fn on_their_way(status: &Status, sees: &dyn Fn(&str) -> bool) -> String {
    let collections = || status.collections.iter().filter(|collection| sees(&collection.name));
    let sum = |n: fn(&crate::job::Census) -> i64| collections().filter_map(|collection| collection.census.as_ref()).map(n).sum::<i64>();
    let (due, waiting, dead) = (sum(|census| census.due), sum(|census| census.waiting), sum(|census| census.dead));
    match (collections().count(), due, waiting) {
        (0, _, _) => "No collection is configured yet.".into(),
        (_, 0, 0) if dead > 0 => format!("Everything that was saved is in the index, but for what was given up: {}.", of(dead, "document")),
        (_, 0, 0) if collections().any(|collection| collection.audit.as_ref().is_none_or(|audit| audit.verified_up_to.is_none())) => {
            "Every change since the triggers are there is in the index: no job is open. Not everything was compared yet.".into()
        }
        (_, 0, 0) => "Everything that was saved is in the index: no job is open.".into(),
        (_, 0, waiting) => format!("{} wait for their look, and nothing is late.", of(waiting, "job")),
        (_, due, 0) => format!("{} on the way, and nothing is late.", are(due)),
        (_, due, waiting) => format!("{} on the way, {} more wait for their time, and nothing is late.", are(due), count(waiting)),
    }
}

fn are(due: i64) -> String {
    format!("{} {}", of(due, "job"), if due == 1 { "is" } else { "are" })
}

pub(super) fn cause(check: &Check) -> Cause {
    let state = match check.level {
        Level::Well => State::InStep,
        Level::Warning => State::Remark,
        Level::Unwell if LATE.contains(&check.name) => State::Behind,
        Level::Unwell => State::NotWell,
        Level::Unknown => State::Unknown,
    };
    Cause {
        state,
        name: check.name,
        collection: check.collection.clone(),
        says: text(&check.says),
        remedy: text(&check.remedy),
        href: page_of(check),
    }
}

/// Where somebody can do something about it.
fn page_of(check: &Check) -> String {
    let Some(collection) = check.collection.as_deref() else { return format!("/checks#{}", check.name) };
    match check.name {
        "CatchwordDeadLettersGrowing" | "CatchwordAhead" => text::link("/dead", &[("collection", collection)]),
        "CatchwordAuditDrift" | "CatchwordAuditStale" | "CatchwordIndexLostWrites" => text::link("/audits", &[("collection", collection)]),
        _ => format!("/collections/{}", text::segment(collection)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, level: Level) -> Check {
        Check { name, collection: Some("note".into()), level, says: "3 documents given up".into(), remedy: "fix it".into() }
    }

    fn report(checks: Vec<Check>) -> Report {
        let level = checks.iter().map(|check| check.level).max().unwrap_or(Level::Well);
        Report { level, summary: String::new(), checks }
    }

    fn state(checks: Vec<Check>) -> State {
        verdict(&report(checks), None, &|_| true).state
    }

    #[test]
    fn the_worst_judgement_is_the_state_and_comes_first() {
        let bad = || check("CatchwordCollectionBlocked", Level::Unwell);
        let late = || check("CatchwordQueueLong", Level::Unwell);
        assert_eq!(state(vec![check("x", Level::Well)]), State::InStep);
        assert_eq!(state(vec![check("x", Level::Warning)]), State::Remark);
        assert_eq!(state(vec![late(), check("x", Level::Warning)]), State::Behind);
        assert_eq!(state(vec![late(), bad()]), State::NotWell);
        assert_eq!(state(vec![bad(), check("x", Level::Unknown)]), State::Unknown);
        let judged = verdict(&report(vec![late(), bad(), check("x", Level::Well)]), None, &|_| true);
        assert_eq!(judged.causes.iter().map(|cause| cause.name).collect::<Vec<_>>(), ["CatchwordCollectionBlocked", "CatchwordQueueLong"]);
        assert_eq!(judged.sentence, "note: 3 documents given up.");
    }

    #[test]
    fn nothing_is_told_of_what_somebody_may_not_see() {
        let judged = verdict(&report(vec![check("x", Level::Unwell), check("y", Level::Unknown)]), None, &|name| name != "note");
        assert_eq!((judged.causes.len(), judged.sentence.as_str()), (0, ""));
        let other = Check { collection: None, ..check("x", Level::Well) };
        assert_eq!(verdict(&report(vec![check("x", Level::Unwell), other]), None, &|name| name != "note").state, State::InStep);
    }

    #[test]
    fn a_remark_is_counted_and_does_not_alarm() {
        let judged = verdict(&report(vec![check("x", Level::Warning), check("y", Level::Warning)]), None, &|_| true);
        assert_eq!(judged.headline, "In step, with 2 remarks");
    }

    #[test]
    fn what_to_do_is_one_click_away() {
        let to = |name, collection: Option<&str>| page_of(&Check { collection: collection.map(Into::into), ..check(name, Level::Unwell) });
        assert_eq!(to("CatchwordDeadLettersGrowing", Some("a b")), "/dead?collection=a+b");
        assert_eq!(to("CatchwordPausedTooLong", Some("a b")), "/collections/a%20b");
        assert_eq!(to("CatchwordElasticsearchDown", None), "/checks#CatchwordElasticsearchDown");
    }
}
