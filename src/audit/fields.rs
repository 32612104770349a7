//! Which fields of two documents differ, for people: some of them, with the beginning of their values. Pure.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::are_same;
use crate::printable::printable;

/// Fields that are named: enough to see what they have in common.
const MOST: usize = 5;
/// Characters of a value, and of a path, that are shown.
const SHOWN: usize = 60;

/// The fields in which a document of an index differs from the one that the view builds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields {
    /// The first of them.
    pub named: Vec<Field>,
    /// How many more there are.
    pub more: usize,
}

/// A field that differs. All of it can be printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// `document.title`, `tags[2]`; empty: the whole document.
    pub path: String,
    /// The beginning of what the view builds, as JSON; none: no such field.
    pub postgres: Option<String>,
    /// The same of what the index has.
    pub elasticsearch: Option<String>,
}

/// Compares what the view builds with what the index has.
pub(crate) fn differing_fields(postgres: &[u8], elasticsearch: &[u8]) -> Fields {
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into());
    let mut fields = Fields::default();
    fields.compare(String::new(), Some(&value(postgres)), Some(&value(elasticsearch)));
    fields
}

impl Fields {
    /// Leaves the paths, and takes off what is in the fields.
    pub(crate) fn hide_values(&mut self) {
        for field in &mut self.named {
            for value in [&mut field.postgres, &mut field.elasticsearch].into_iter().flatten() {
                *value = "(hidden)".into();
            }
        }
    }

    fn compare(&mut self, path: String, postgres: Option<&Value>, elasticsearch: Option<&Value>) {
        match (postgres, elasticsearch) {
            (Some(a), Some(b)) if are_same(a, b) => {}
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                for (name, value) in a {
                    self.compare(below(&path, name), Some(value), b.get(name));
                }
                for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                    self.compare(below(&path, name), None, Some(value));
                }
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
                for (n, (a, b)) in a.iter().zip(b).enumerate() {
                    self.compare(format!("{path}[{n}]"), Some(a), Some(b));
                }
            }
            _ if self.named.len() == MOST => self.more += 1,
            _ => self.named.push(Field {
                path: cut(&path),
                postgres: postgres.map(|value| cut(&value.to_string())),
                elasticsearch: elasticsearch.map(|value| cut(&value.to_string())),
            }),
        }
    }

    /// One line for each, and one for the rest.
    pub(crate) fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.named.iter().map(Field::to_string).chain(more).collect()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |value: &Option<String>| value.as_ref().map_or("has nothing".to_owned(), |value| format!("has {value}"));
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        write!(f, "{path}: Postgres {}, the index {}", has(&self.postgres), has(&self.elasticsearch))
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", printable(&text[..end])),
        None => printable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(postgres: &str, elasticsearch: &str) -> Vec<String> {
        differing_fields(postgres.as_bytes(), elasticsearch.as_bytes()).lines()
    }

    #[test]
    fn the_fields_that_differ_are_named_by_their_paths() {
        let postgres = r#"{"a":1,"document":{"title":"new","uri":"u"},"tags":["x","y"],"list":[1,2],"only":null}"#;
        let elasticsearch = r#"{"a":1.0,"document":{"uri":"u","title":"old"},"tags":["x","z"],"list":[1],"theirs":true}"#;
        assert_eq!(
            lines(postgres, elasticsearch),
            [
                r#"document.title: Postgres has "new", the index has "old""#,
                "list: Postgres has [1,2], the index has [1]",
                "only: Postgres has null, the index has nothing",
                r#"tags[1]: Postgres has "y", the index has "z""#,
                "theirs: Postgres has nothing, the index has true",
            ]
        );
        assert_eq!(lines(r#"{"a":[1]}"#, r#"{ "a": [1.0] }"#), Vec::<String>::new());
    }

    #[test]
    fn only_some_are_named_and_values_are_cut_and_safe_to_print() {
        let of = |text: &str| (0..9).map(|n| (format!("f{n}"), text.into())).collect::<serde_json::Map<_, _>>();
        let (a, b) = (Value::from(of(&"é".repeat(500))), Value::from(of("b")));
        let found = lines(&a.to_string(), &b.to_string());
        assert_eq!((found.len(), found[5].as_str()), (6, "and 4 more"));
        assert_eq!(found[0], format!(r#"f0: Postgres has "{}…, the index has "b""#, "é".repeat(59)));
        let fields = differing_fields("{\"\u{1b}[2J\\u0000\":\"\u{202e}\"}".as_bytes(), b"{}");
        assert_eq!(fields.named.len(), 1);
        let told = fields.lines().concat();
        assert!(!told.contains(['\u{1b}', '\0', '\u{202e}']), "{told}");
    }

    #[test]
    fn what_is_no_object_differs_as_a_whole() {
        assert_eq!(lines("[1]", "{}"), ["the document: Postgres has [1], the index has {}"]);
        assert_eq!(lines("{}", "no json"), [r#"the document: Postgres has {}, the index has "no json""#]);
    }
}
