//! Text from outside, made safe to print: a key or an error may hold what moves a terminal's cursor or fakes a line of ours.

/// The text on one line, with control characters and those that turn the direction of writing as escapes.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => shown.extend(c.escape_debug()),
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// How a line is meant, for whoever prints it in colours. The words say the same: nobody depends on a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    Plain,
    Well,
    /// Worth a look. It needs nobody now.
    Note,
    /// It needs a person.
    Wrong,
}

/// A line of a report.
pub(crate) type Line = (Tone, String);

/// Lines as plain text.
pub(crate) fn write_plain(f: &mut std::fmt::Formatter<'_>, lines: Vec<Line>) -> std::fmt::Result {
    lines.iter().try_for_each(|(_, text)| writeln!(f, "{text}"))
}

/// The text as a word that a shell takes as it is.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { format!("'{}'", printable(text).replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::{printable, shell_word};

    #[test]
    fn nothing_that_moves_a_cursor_is_printed() {
        assert_eq!(printable("é\u{1b}[2J\r\n\tx\u{9b}\u{202e}\u{7f}"), r"é\u{1b}[2J\r\n\tx\u{9b}\u{202e}\u{7f}");
        assert_eq!(printable(r#"it's "a" \ 100 %"#), r#"it's "a" \ 100 %"#);
    }

    #[test]
    fn a_word_for_the_shell_is_quoted_where_it_must_be() {
        assert_eq!(shell_word("acct:a@b.c"), "acct:a@b.c");
        assert_eq!(shell_word("it's $x"), r"'it'\''s $x'");
        assert_eq!(shell_word(""), "''");
    }
}
