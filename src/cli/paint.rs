//! Colours on a terminal that has them. Red is only for what needs a person.

use std::io::IsTerminal;

use super::say;
use crate::printable::{Line, Tone};

/// Whether a stream gets colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Colours,
    Plain,
}

impl Paint {
    /// Of standard output.
    pub fn of_stdout() -> Paint {
        Paint::of(&std::io::stdout())
    }

    /// As the terminal and the environment say.
    pub fn of(stream: &impl IsTerminal) -> Paint {
        wanted(|name| std::env::var(name).ok(), stream.is_terminal())
    }

    /// A line with the word that it begins with in the colour of its tone.
    pub fn line(self, (tone, text): &Line) -> String {
        let from = text.len() - text.trim_start().len();
        let to = ["  ", ": ", ", ", "; "].iter().filter_map(|end| text[from..].find(end)).min().map_or(text.len(), |end| from + end);
        format!("{}{}{}", &text[..from], self.text(*tone, &text[from..to]), &text[to..])
    }

    /// All of a text in this colour.
    pub fn text(self, tone: Tone, text: &str) -> String {
        let colour = match tone {
            Tone::Plain => "",
            Tone::Well => "32",
            Tone::Note => "33",
            Tone::Wrong => "1;31",
        };
        self.with(colour, text)
    }

    /// A heading.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What is less worth reading.
    pub fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    fn with(self, colour: &str, text: &str) -> String {
        match self {
            Paint::Colours if !colour.is_empty() && !text.is_empty() => format!("\x1b[{colour}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// Prints a report.
pub(super) fn say_lines(lines: &[Line]) -> anyhow::Result<()> {
    let paint = Paint::of_stdout();
    let text: String = lines.iter().map(|line| paint.line(line) + "\n").collect();
    say(text)
}

/// `NO_COLOR` outweighs all, then `CLICOLOR_FORCE`; otherwise a terminal that can has colours, unless `CLICOLOR` is 0.
fn wanted(variable: impl Fn(&str) -> Option<String>, is_terminal: bool) -> Paint {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty() && value != "0");
    let is_capable = variable("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        Paint::Plain
    } else if is_set("CLICOLOR_FORCE") || is_terminal && is_capable && variable("CLICOLOR").as_deref() != Some("0") {
        Paint::Colours
    } else {
        Paint::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_have_them_and_the_environment_may_say_otherwise() {
        let on_terminal = true;
        for (set, is_terminal, paint) in [
            (&[("TERM", "xterm-256color")][..], on_terminal, Paint::Colours),
            (&[("TERM", "xterm-256color")], false, Paint::Plain),
            (&[("TERM", "dumb")], on_terminal, Paint::Plain),
            (&[], on_terminal, Paint::Plain),
            (&[("TERM", "xterm"), ("NO_COLOR", "1")], on_terminal, Paint::Plain),
            (&[("TERM", "xterm"), ("NO_COLOR", "")], on_terminal, Paint::Colours),
            (&[("TERM", "xterm"), ("CLICOLOR", "0")], on_terminal, Paint::Plain),
            (&[("CLICOLOR_FORCE", "1")], false, Paint::Colours),
            (&[("CLICOLOR_FORCE", "0")], false, Paint::Plain),
            (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], on_terminal, Paint::Plain),
        ] {
            let variable = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(wanted(variable, is_terminal), paint, "{set:?}, {is_terminal}");
        }
    }

    #[test]
    fn the_first_word_has_the_colour_and_the_text_stays_the_same() {
        for (text, coloured) in [
            ("  blocked   the index: is closed", "  \x1b[1;31mblocked\x1b[0m   the index: is closed"),
            ("unwell: CatchwordNoProgress note", "\x1b[1;31munwell\x1b[0m: CatchwordNoProgress note"),
            ("  not in step; repair it: x", "  \x1b[1;31mnot in step\x1b[0m; repair it: x"),
            ("  in step", "  \x1b[1;31min step\x1b[0m"),
            ("é, è", "\x1b[1;31mé\x1b[0m, è"),
            ("", ""),
        ] {
            let line = (Tone::Wrong, text.to_owned());
            assert_eq!(Paint::Colours.line(&line), coloured);
            assert_eq!(Paint::Plain.line(&line), text);
            assert_eq!(Paint::Colours.line(&(Tone::Plain, text.to_owned())), text);
        }
    }
}
