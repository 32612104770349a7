//! What was done, told on the next page. The address holds a word and a number and no text, so that nobody can make a page say anything.

use super::Act;
use crate::console::asked::Asked;
use crate::console::frame::Notice;
use crate::console::state::State;
use crate::console::words::of;

/// What was done, and where it is seen.
pub(super) struct Did {
    act: Act,
    count: i64,
    place: String,
}

impl Did {
    /// Something changed, or was so already.
    pub fn changed(act: Act, changed: bool) -> Did {
        Did::counted(act, i64::from(changed))
    }

    pub fn counted(act: Act, count: i64) -> Did {
        Did { act, count, place: String::new() }
    }

    /// Where it is seen, without the base path.
    pub fn at(self, place: String) -> Did {
        Did { place, ..self }
    }

    pub fn place(&self) -> String {
        let mark = if self.place.contains('?') { '&' } else { '?' };
        format!("{}{mark}did={}&n={}", self.place, self.act.word(), self.count)
    }
}

/// A word about what was done, if somebody comes from there.
pub(in super::super) fn notice(asked: &Asked) -> Option<Notice> {
    let act = asked.get("did").and_then(Act::named)?;
    let count = asked.number::<i64>("n").ok().flatten().unwrap_or(0);
    let (word, text) = if count == 0 { ("Nothing to do.", already(act)) } else { ("Done.", told(act, count)) };
    let state = if count == 0 { State::Remark } else { State::InStep };
    Some(Notice { state, word: word.into(), text })
}

fn told(act: Act, count: i64) -> String {
    match act {
        Act::Pause => "The work on it is paused. Writes go on scheduling jobs, which wait.".into(),
        Act::Resume => "The work on it goes on.".into(),
        Act::Replay => format!("{} scheduled again. Those that come to be in step leave this list.", of(count, "dead letter")),
        Act::Discard => format!("{} deleted for good.", of(count, "dead letter")),
        Act::LookAgain => "A job was scheduled. Reload in a moment to see what became of it.".into(),
        Act::Reindex => "The reindex is written down. Workers schedule its keys, in small pieces.".into(),
        Act::PauseReindex => "No more of it is scheduled. What is open is still worked on.".into(),
        Act::ResumeReindex => "The reindex goes on.".into(),
        Act::RateReindex => "It has another limit now.".into(),
        Act::CancelReindex => "The reindex is cancelled, and its open jobs are gone.".into(),
        Act::Audit | Act::Repair => "The audit is asked for. A worker begins it within a minute.".into(),
        Act::StopAudit => "The audit is stopped.".into(),
        Act::Rebuild => "The rebuild has begun. This server works on it, and workers help.".into(),
        Act::Back => "Readers see the other index again.".into(),
        Act::Abort => "The rebuild is undone, and its new index is dropped.".into(),
    }
}

fn already(act: Act) -> String {
    match act {
        Act::Pause => "It was paused already.".into(),
        Act::Resume => "It was not paused.".into(),
        Act::Replay | Act::Discard => "There was no such dead letter any more.".into(),
        _ => "It was over, or it was so already.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_what_was_done_by_a_word_and_a_number() {
        assert_eq!(Did::counted(Act::Replay, 14).at("/dead?collection=a".into()).place(), "/dead?collection=a&did=replay&n=14");
        assert_eq!(Did::changed(Act::Pause, false).at("/collections/a".into()).place(), "/collections/a?did=pause&n=0");
    }

    #[test]
    fn every_act_says_something_of_both() {
        for act in Act::ALL {
            assert!(told(act, 1).ends_with('.') && already(act).ends_with('.'), "{act:?}");
        }
    }
}
