//! Text from outside, as the pages show it: keys, error texts, tags and names may hold anything. Control characters are made visible
//! here, and long texts are cut; the templates escape.

use url::form_urlencoded::byte_serialize;

use crate::printable::printable;

/// What is shown at once. The rest is behind a click.
const SHORT: usize = 240;
/// More than this is never sent: an error text may hold a whole document.
const LONGEST: usize = 20_000;

/// A text, and all of it where it was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub short: String,
    /// The whole text; none: nothing was cut.
    pub full: Option<String>,
}

/// A text, cut where it would fill the page.
pub(super) fn text(from_outside: &str) -> Text {
    cut(from_outside, SHORT)
}

/// A text, cut after so many letters.
pub(super) fn cut(from_outside: &str, letters: usize) -> Text {
    let shown = printable(from_outside);
    match shown.char_indices().nth(letters) {
        None => Text { short: shown, full: None },
        Some((at, _)) => {
            let full = match shown.char_indices().nth(LONGEST) {
                None => shown.clone(),
                Some((end, _)) => format!("{} … ({} bytes more)", &shown[..end], shown.len() - end),
            };
            Text { short: format!("{}…", &shown[..at]), full: Some(full) }
        }
    }
}

/// One line of it, for a title or a link.
pub(super) fn line(from_outside: &str) -> String {
    cut(from_outside, 60).short
}

/// A path with what follows the question mark.
pub(super) fn link(path: &str, query: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// A part of a path.
pub(super) fn segment(name: &str) -> String {
    // a plus is a space only behind the question mark
    encoded(name).replace('+', "%20")
}

fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_cursor_or_turns_the_writing_is_shown_as_an_escape() {
        assert_eq!(text("a\u{1b}[2J\r\n\u{202e}b").short, r"a\u{1b}[2J\r\n\u{202e}b");
    }

    #[test]
    fn a_long_text_is_cut_and_all_of_it_is_kept() {
        let long = "é".repeat(10_000);
        let shown = cut(&long, 10);
        assert_eq!(shown.short, format!("{}…", "é".repeat(10)));
        assert_eq!(shown.full.as_deref(), Some(long.as_str()));
        assert_eq!(cut("short", 10), Text { short: "short".into(), full: None });
    }

    #[test]
    fn what_nobody_reads_is_not_sent() {
        let full = text(&"x".repeat(3_000_000)).full.unwrap();
        assert!(full.len() < LONGEST + 100, "{}", full.len());
        assert!(full.ends_with("… (2980000 bytes more)"));
    }

    #[test]
    fn a_link_holds_any_key() {
        assert_eq!(link("/key", &[("key", "a/b?c&d=<é> ")]), "/key?key=a%2Fb%3Fc%26d%3D%3C%C3%A9%3E+");
        assert_eq!(segment("a b/.."), "a%20b%2F..");
    }
}
