/// Longest text kept of a reason, in characters: enough for a field, its type and what was expected.
const LIMIT: usize = 300;

/// Words after which a bracket holds a name out of the mapping, not a value out of a document.
const NAMING: [&str; 7] = ["field", "fields", "type", "introduction of", "within", "mapping for", "mapper"];

const OPENING: [char; 3] = ['[', '\'', '"'];
const CLOSING: [char; 3] = [']', '\'', '"'];

/// An error text without the values of documents in it.
///
/// Names out of the mapping stay, as long as nothing else came before them. The first quoted or bracketed text that is not
/// known to be a name is dropped, and everything up to the last quote or bracket with it: a value may hold quotes and
/// brackets of its own, Elasticsearch does not escape them, and it quotes whole documents. Positions are dropped as well:
/// without them the same fault of two documents has the same text, and faults can be counted.
pub(crate) fn redact(reason: &str) -> String {
    let mut kept = String::new();
    let mut rest = reason;
    while let Some(at) = rest.find(OPENING) {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        match span(&kept, rest) {
            Span::Name(end) => {
                kept.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            Span::Position(end) => rest = rest[end..].trim_start(),
            Span::Value => {
                kept.push('…');
                rest = rest[1..].rsplit_once(CLOSING).map_or("", |(_, after)| after);
                break;
            }
        }
    }
    kept.push_str(rest);
    cut(&kept)
}

/// Longest text kept of a cause, in characters: it comes behind a whole reason.
const HINT: usize = 120;

/// The beginning of a cause: its words, and names out of the mapping, up to where a value may begin. Unlike the error itself, a cause tells
/// values also without quotes: `Numeric value (99999999999) out of range of int`, `unknown geometry type: secret`.
pub(super) fn hint(reason: &str) -> String {
    let redacted = redact(reason);
    let before_value = redacted.char_indices().find(|(at, c)| {
        c.is_ascii_digit() || matches!(c, '(' | '{' | '<' | '=' | '…') || (*c == ':' && redacted[at + 1..].starts_with(' '))
    });
    let kept = match before_value {
        None => redacted,
        Some((at, ':')) => format!("{}: …", &redacted[..at]),
        Some((at, _)) => format!("{}…", &redacted[..at]),
    };
    match kept.char_indices().nth(HINT) {
        Some((end, _)) => format!("{}…", &kept[..end]),
        None => kept,
    }
}

/// A text cut to the limit, on one line.
pub(super) fn cut(text: &str) -> String {
    let line: String = text.chars().take(LIMIT + 1).map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What stands before the name of a field whose value is too long for a keyword.
const IMMENSE: &str = "immense term in field=";

/// What a text is that begins with a bracket or a quote, and where it ends.
enum Span {
    Name(usize),
    Position(usize),
    Value,
}

fn span(before: &str, from: &str) -> Span {
    if let Some(inner) = from.strip_prefix('[').and_then(|from| from.split(']').next()) {
        let end = inner.len() + "[]".len();
        return match inner {
            _ if end > from.len() => Span::Value,
            _ if is_position(inner) => Span::Position(end),
            _ if is_naming(before) && is_name(inner) => Span::Name(end),
            _ => Span::Value,
        };
    }
    // OpenSearch does not say which field it was in any other way
    if let Some(inner) = from.strip_prefix('"').and_then(|from| from.split('"').next()).filter(|_| before.ends_with(IMMENSE))
        && inner.len() + "\"\"".len() <= from.len()
        && is_name(inner)
    {
        return Span::Name(inner.len() + "\"\"".len());
    }
    if from.starts_with('\'') && before.ends_with(char::is_alphanumeric) {
        return Span::Name(1); // an apostrophe
    }
    Span::Value
}

/// `[1:42]`: line and column.
fn is_position(inner: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    inner.split_once(':').is_some_and(|(line, column)| digits(line) && digits(column))
}

fn is_naming(before: &str) -> bool {
    let before = before.trim_end();
    // "failed to parse date field [2020-99]" names a value
    !before.ends_with("date field") && NAMING.iter().any(|naming| before.ends_with(naming))
}

fn is_name(inner: &str) -> bool {
    !inner.is_empty() && inner.chars().all(|c| c.is_alphanumeric() || "_-.@$".contains(c))
}

#[cfg(test)]
mod tests {
    use super::{LIMIT, hint, redact};

    #[test]
    fn a_cause_is_told_up_to_its_first_value() {
        for (reason, kept) in [
            ("For input string: \"secret\"", "For input string: …"),
            ("Numeric value (99999999999) out of range of int (-2147483648 - 2147483647)", "Numeric value …"),
            ("unknown geometry type: secret", "unknown geometry type: …"),
            ("'secret' is not an IP string literal.", "…"),
            ("Cannot parse Boolean value [secret], expecting [true] or [false]", "Cannot parse Boolean value …"),
            (
                "mapping set to strict, dynamic introduction of [y] within [o] is not allowed",
                "mapping set to strict, dynamic introduction of [y] within [o] is not allowed",
            ),
            ("", ""),
        ] {
            assert_eq!(hint(reason), kept);
        }
        assert!(hint(&"é ".repeat(500)).chars().count() <= 121);
    }

    #[test]
    fn of_a_value_that_is_too_long_the_field_is_told() {
        let reason = |field: &str| {
            format!(
                "Document contains at least one immense term in field={field} (whose UTF8 encoding is longer than the max length 32766), all of which were skipped.  The prefix of the first immense term is: '[48, 48]...', original message: bytes can be at most 32766 in length; got 40000"
            )
        };
        assert!(
            redact(&reason("\"user.id\""))
                .starts_with("Document contains at least one immense term in field=\"user.id\" (whose UTF8 encoding")
        );
        assert!(!redact(&reason("\"user.id\"")).contains("48"), "and nothing of the value");
        assert!(redact(&reason("\"two words\"")).starts_with("Document contains at least one immense term in field=…"));
        assert_eq!(redact("immense term in field=\"cut"), "immense term in field=…");
        assert_eq!(redact("a value \"secret\""), "a value …");
    }

    #[test]
    fn names_stay_and_values_go() {
        // as Elasticsearch 9.4.3 words them
        for (reason, kept) in [
            (
                "[1:6] failed to parse field [ip] of type [ip] in document with id 'it's/k'. Preview of field's value: 'not it's ip'",
                "failed to parse field [ip] of type [ip] in document with id …",
            ),
            (
                "[1:6] failed to parse field [b] of type [boolean] in document with id 'it's/k'. Preview of field's value: 'a] b' c'",
                "failed to parse field [b] of type [boolean] in document with id …",
            ),
            (
                "[1:6] object mapping for [o] tried to parse field [o] as object, but found a concrete value",
                "object mapping for [o] tried to parse field [o] as object, but found a concrete value",
            ),
            (
                "[1:11] mapping set to strict, dynamic introduction of [y] within [o] is not allowed",
                "mapping set to strict, dynamic introduction of [y] within [o] is not allowed",
            ),
            (
                "[1:6] failed to parse: [1:11] Duplicate field 'n'\n at [Source: (byte[])\"{\"n\":1,\"n\":\"it's secret\"}\"; line: 1, column: 11]",
                "failed to parse: Duplicate field …",
            ),
            (
                "[1:4997] failed to parse field [o.x] of type [text] in document with id 'deep'. Could not parse field value preview,",
                "failed to parse field [o.x] of type [text] in document with id …. Could not parse field value preview,",
            ),
            ("[1:6] failed to parse: [1:7] Unexpected end of file", "failed to parse: Unexpected end of file"),
            ("Malformed content, must start with an object", "Malformed content, must start with an object"),
        ] {
            assert_eq!(redact(reason), kept);
        }
    }

    #[test]
    fn what_is_not_known_to_be_a_name_is_a_value() {
        assert_eq!(redact("failed to parse date field [2020-99] with format [x]"), "failed to parse date field …");
        assert_eq!(redact("field [a secret] is bad"), "field … is bad");
        assert_eq!(redact("For input string: \"secret"), "For input string: …");
        assert_eq!(redact("value [secret"), "value …");
        assert_eq!(redact("[1:2"), "…");
        assert_eq!(redact("the prefix is: '[115, 115]...', got 40000"), "the prefix is: …, got 40000");
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_has_one_line() {
        let cut = redact(&"é\n".repeat(1000));
        assert_eq!(cut.chars().count(), LIMIT + 1);
        assert!(cut.starts_with("é é ") && cut.ends_with('…'));
    }
}
