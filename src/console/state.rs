//! How something is: a word, a sign and a colour each, so that nobody depends on one of them.

/// How something is, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    InStep,
    /// Worth a word, not a night.
    Remark,
    /// An operator stopped it.
    Paused,
    /// Later than it should be, and it moves.
    Behind,
    /// A person is needed.
    NotWell,
    /// It could not be asked.
    Unknown,
}

impl State {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            State::InStep => "in step",
            State::Remark => "remark",
            State::Paused => "paused",
            State::Behind => "behind",
            State::NotWell => "not well",
            State::Unknown => "not known",
        }
    }

    /// The colour, as the stylesheet names it.
    pub fn class(self) -> &'static str {
        match self {
            State::InStep => "is-ok",
            State::Remark => "is-remark",
            State::Paused => "is-paused",
            State::Behind => "is-behind",
            State::NotWell => "is-bad",
            State::Unknown => "is-unknown",
        }
    }

    /// The sign: each has a shape of its own.
    pub fn sign(self) -> &'static str {
        match self {
            State::InStep => {
                r#"<svg class="sign" viewBox="0 0 20 20" aria-hidden="true"><circle class="fill" cx="10" cy="10" r="9"/><path class="cut" d="M5.8 10.4l2.9 2.9 5.6-6.2"/></svg>"#
            }
            State::Remark => {
                r#"<svg class="sign" viewBox="0 0 20 20" aria-hidden="true"><circle class="ring" cx="10" cy="10" r="8"/><path class="stroke" d="M10 9.2v4.6"/><circle class="fill" cx="10" cy="6.1" r="1.2"/></svg>"#
            }
            State::Paused => {
                r#"<svg class="sign" viewBox="0 0 20 20" aria-hidden="true"><rect class="fill" x="4" y="3" width="4.2" height="14" rx="1.2"/><rect class="fill" x="11.8" y="3" width="4.2" height="14" rx="1.2"/></svg>"#
            }
            State::Behind => {
                r#"<svg class="sign" viewBox="0 0 20 20" aria-hidden="true"><path class="fill" d="M10 1.6c.6 0 1.1.3 1.4.8l7.2 13.1c.6 1.1-.2 2.5-1.4 2.5H2.8c-1.2 0-2-1.4-1.4-2.5L8.6 2.4c.3-.5.8-.8 1.4-.8z"/><path class="cut" d="M10 7v4.6"/><circle class="hole" cx="10" cy="14.6" r="1.2"/></svg>"#
            }
            State::NotWell => {
                r#"<svg class="sign" viewBox="0 0 20 20" aria-hidden="true"><rect class="fill" x="1.5" y="1.5" width="17" height="17" rx="3.5"/><path class="cut" d="M6.6 6.6l6.8 6.8M13.4 6.6l-6.8 6.8"/></svg>"#
            }
            State::Unknown => {
                r#"<svg class="sign" viewBox="0 0 20 20" aria-hidden="true"><path class="ring" d="M10 1.6l8.4 8.4-8.4 8.4L1.6 10z"/><path class="stroke" d="M7.9 8.2c.1-2.7 4.3-2.5 4.2.1 0 1.7-2.1 1.8-2.1 3.4"/><circle class="fill" cx="10" cy="14" r="1"/></svg>"#
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::State::{self, *};

    const ALL: [State; 6] = [InStep, Remark, Paused, Behind, NotWell, Unknown];

    #[test]
    fn every_state_has_a_word_a_sign_and_a_colour_of_its_own() {
        for told in [State::word, State::sign, State::class] {
            assert_eq!(ALL.into_iter().map(told).collect::<BTreeSet<_>>().len(), ALL.len());
        }
    }
}
