//! The key: what names a document on both sides.

use std::fmt;

use uuid::Uuid;

/// Elasticsearch takes an `_id` of up to 512 bytes; a longer one fails the whole bulk it is in.
pub const MAX_KEY_BYTES: usize = 512;

/// How the ids of sentinels begin, tombstones by which an index that lost acknowledged writes is noticed. No row may have such a key.
pub const SENTINEL: &str = "catchword-sentinel";

/// The key of a row that several columns name together, for `Stored::new` and `index_now`: `Key::from((7, 42))` is `7/42`.
///
/// A key of one column needs none of it: that is the value itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(String);

impl Key {
    /// Of the values of the key's columns, in their order.
    pub fn of<P: ToString>(parts: impl IntoIterator<Item = P>) -> Key {
        Key(parts.into_iter().map(|part| escaped(&part.to_string())).collect::<Vec<_>>().join("/"))
    }
}

impl<A: ToString, B: ToString> From<(A, B)> for Key {
    fn from((a, b): (A, B)) -> Key {
        Key::of([a.to_string(), b.to_string()])
    }
}

impl<A: ToString, B: ToString, C: ToString> From<(A, B, C)> for Key {
    fn from((a, b, c): (A, B, C)) -> Key {
        Key::of([a.to_string(), b.to_string(), c.to_string()])
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A part of a key of several columns, as it is written in the key: so that its parts can be told apart.
pub(super) fn escaped(part: &str) -> String {
    part.replace('%', "%25").replace('/', "%2F")
}

pub(super) fn unescaped(part: &str) -> String {
    part.replace("%2F", "/").replace("%25", "%")
}

/// The type of one column of a key. Types that are compared alike are one here: `varchar` is text, a domain is what it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPart {
    Uuid,
    Bigint,
    Integer,
    Smallint,
    Text,
    /// `char(n)`: blanks at the end do not count.
    Padded,
    /// `citext`: in lower case.
    Caseless,
    Numeric,
    Date,
}

impl KeyPart {
    /// From Postgres' name of the type, as `catchword.key_type` has it.
    fn named(name: &str) -> Option<KeyPart> {
        Some(match name {
            "uuid" => KeyPart::Uuid,
            "bigint" => KeyPart::Bigint,
            "integer" => KeyPart::Integer,
            "smallint" => KeyPart::Smallint,
            "text" => KeyPart::Text,
            "bpchar" => KeyPart::Padded,
            "numeric" => KeyPart::Numeric,
            "date" => KeyPart::Date,
            name if name.ends_with("citext") => KeyPart::Caseless,
            _ => return None,
        })
    }

    /// The text that Postgres writes for what a person typed: 7 for ` 7`, lower case for an upper-case uuid. None: not of this type.
    fn canonical(self, typed: &str) -> Option<String> {
        let trimmed = typed.trim();
        match self {
            KeyPart::Uuid => Uuid::try_parse(trimmed).ok().map(|uuid| uuid.to_string()),
            KeyPart::Bigint => trimmed.parse::<i64>().ok().map(|n| n.to_string()),
            KeyPart::Integer => trimmed.parse::<i32>().ok().map(|n| n.to_string()),
            KeyPart::Smallint => trimmed.parse::<i16>().ok().map(|n| n.to_string()),
            KeyPart::Text => Some(typed.to_owned()),
            KeyPart::Padded => Some(typed.trim_end_matches(' ').to_owned()),
            KeyPart::Caseless => Some(typed.to_lowercase()),
            KeyPart::Numeric => decimal(trimmed),
            KeyPart::Date => date(trimmed),
        }
    }

    /// Is this just the text that Postgres writes? Which letters it lowers depends on the database, so of a citext only plain letters are judged.
    fn is_canonical(self, text: &str) -> bool {
        match self {
            KeyPart::Caseless => !text.contains(|letter: char| letter.is_ascii_uppercase()),
            part => part.canonical(text).is_some_and(|canonical| canonical == text),
        }
    }

    fn is_text(self) -> bool {
        matches!(self, KeyPart::Text | KeyPart::Padded | KeyPart::Caseless)
    }

    /// What it could be.
    fn example(self) -> &'static str {
        match self {
            KeyPart::Uuid => "01234567-89ab-cdef-0123-456789abcdef",
            KeyPart::Date => "2026-01-31",
            part if part.is_text() => "a",
            _ => "0",
        }
    }
}

/// A day as Postgres writes it: `2026-01-31`, `0044-03-15 BC`, `12345-01-01`, `infinity`.
fn date(text: &str) -> Option<String> {
    if let "infinity" | "-infinity" = text {
        return Some(text.to_owned());
    }
    let (day, era) = text.strip_suffix(" BC").map_or((text, ""), |day| (day, " BC"));
    let numbers = day.split('-').map(|part| part.parse().ok().filter(|_| part.len() <= 7 && !part.starts_with('+')));
    let [year, month, day]: [u32; 3] = numbers.collect::<Option<Vec<_>>>()?.try_into().ok()?;
    // there was no year 0: the first year BC counts as 0
    let counted = if era.is_empty() { year } else { year.checked_sub(1)? };
    let is_leap = counted % 4 == 0 && (counted % 100 != 0 || counted % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let is_a_day = (1..=12).contains(&month) && (1..=days).contains(&day) && (1..=5_874_897).contains(&year);
    is_a_day.then(|| format!("{year:04}-{month:02}-{day:02}{era}"))
}

/// Digits with at most one point, without zeros that say nothing.
fn decimal(text: &str) -> Option<String> {
    if let "NaN" | "Infinity" | "-Infinity" = text {
        return Some(text.to_owned());
    }
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || digits.ends_with('.') {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if whole == "0" && fraction.is_empty() { "" } else { sign };
    Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

/// The types of the columns that are a collection's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyType {
    parts: Vec<KeyPart>,
    /// Postgres' names of the types.
    names: Vec<String>,
}

impl KeyType {
    /// From Postgres' names of the types.
    pub fn named(names: &[String]) -> Option<KeyType> {
        let parts = names.iter().map(|name| KeyPart::named(name)).collect::<Option<Vec<_>>>()?;
        (!parts.is_empty()).then(|| KeyType { parts, names: names.to_vec() })
    }

    /// Postgres' names of the types.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Postgres' names of the types, for people.
    pub fn name(&self) -> String {
        self.names.join(", ")
    }

    /// Is it one uuid, and nothing else?
    pub fn is_uuid(&self) -> bool {
        self.parts == [KeyPart::Uuid]
    }

    /// May a key hold a blank, and no comma?
    pub fn has_date(&self) -> bool {
        self.parts.contains(&KeyPart::Date)
    }

    /// May a key hold a comma or a blank?
    pub fn has_text(&self) -> bool {
        self.parts.iter().any(|part| part.is_text())
    }

    /// A key that could be.
    pub fn example(&self) -> String {
        self.parts.iter().map(|part| part.example()).collect::<Vec<_>>().join("/")
    }

    /// The text that Postgres writes for what a person typed: 7 for ` 7`, lower case for an upper-case uuid. None: not of this type.
    pub fn canonical(&self, typed: &str) -> Option<String> {
        if let [part] = self.parts[..] {
            return part.canonical(typed);
        }
        let typed: Vec<&str> = typed.split('/').collect();
        if typed.len() != self.parts.len() {
            return None;
        }
        let parts = self.parts.iter().zip(typed).map(|(part, typed)| part.canonical(&unescaped(typed)));
        Some(Key::of(parts.collect::<Option<Vec<_>>>()?).0)
    }

    /// What is wrong with a key of a job, if anything: found before the query, because there it would fail its whole batch. A key must
    /// be the text that Postgres itself writes, or it would never meet its row.
    pub fn fault(&self, key: &str) -> Option<String> {
        match self.canonical(key) {
            None => Some(format!("the key is not of type {}", self.name())),
            Some(_) if self.is_canonical(key) => no_id(key),
            Some(canonical) => Some(format!("the key is not written as Postgres writes it: {canonical}")),
        }
    }

    fn is_canonical(&self, key: &str) -> bool {
        if let [part] = self.parts[..] {
            return part.is_canonical(key);
        }
        let parts = self.parts.iter().zip(key.split('/'));
        parts.into_iter().all(|(part, text)| part.is_canonical(&unescaped(text)) && escaped(&unescaped(text)) == text)
    }
}

/// Why a text cannot be the id of a document, if it cannot, whatever the key's type.
pub fn no_id(key: &str) -> Option<String> {
    match key.len() {
        0 => Some("the key is empty".into()),
        bytes if bytes > MAX_KEY_BYTES => Some(format!("the key has {bytes} bytes, Elasticsearch takes {MAX_KEY_BYTES}")),
        _ if key.starts_with(SENTINEL) => Some(format!("keys that begin with {SENTINEL} are catchword's own; give the row another")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, KeyType};

    fn of(types: &[&str]) -> KeyType {
        KeyType::named(&types.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_key_is_the_text_that_postgres_writes() {
        let uuid = "0d0a5c1e-6a3b-4b9e-9d7a-2f1c3e4d5b6a";
        for (kind, key, fine) in [
            ("uuid", uuid, true),
            ("uuid", &uuid.to_uppercase(), false),
            ("uuid", &uuid.replace('-', ""), false),
            ("uuid", "7", false),
            ("bigint", "7", true),
            ("bigint", "-7", true),
            ("bigint", " 7", false),
            ("bigint", "007", false),
            ("bigint", "+7", false),
            ("integer", "2147483648", false),
            ("integer", "2147483647", true),
            ("smallint", "32767", true),
            ("smallint", "32768", false),
            ("numeric", "1.5", true),
            ("numeric", "1.50", false),
            ("numeric", "-0", false),
            ("numeric", "0", true),
            ("numeric", "0.25", true),
            ("numeric", ".25", false),
            ("numeric", "1.", false),
            ("numeric", "NaN", true),
            ("numeric", "nan", false),
            ("numeric", "-Infinity", true),
            ("numeric", "123456789012345678901234567890", true),
            ("date", "2026-01-31", true),
            ("date", "2026-02-30", false),
            ("date", "31.1.2026", false),
            ("date", "infinity", true),
            ("date", "-infinity", true),
            ("date", "12345-01-01", true),
            ("date", "0044-03-15 BC", true),
            ("date", "0001-02-29 BC", true),
            ("date", "0002-02-29 BC", false),
            ("date", "0000-01-01", false),
            ("date", "2024-02-29", true),
            ("date", "1900-02-29", false),
            ("date", "2026-1-31", false),
            ("date", "2026-01-31-01", false),
            ("public.citext", "draft", true),
            ("public.citext", "Draft", false),
            // in a database with locale C, Postgres lowers plain letters only
            ("public.citext", "οδοσ", true),
            ("public.citext", "ÄÖ", true),
            ("bpchar", "ab", true),
            ("bpchar", "ab ", false),
            ("text", "a/b%c\"\n", true),
            ("text", "", false),
            ("text", "catchword-sentinel", false),
            ("text", "catchword-sentinel-7", false),
            ("text", "catchword", true),
            ("text", &"x".repeat(512), true),
            ("text", &"x".repeat(513), false),
            ("text", &"é".repeat(257), false),
        ] {
            assert_eq!(of(&[kind]).fault(key).is_none(), fine, "{kind:?} {key:?}");
        }
    }

    #[test]
    fn a_key_of_several_columns_has_their_texts_with_a_slash_in_between() {
        assert_eq!(Key::from((7, 42)).to_string(), "7/42");
        assert_eq!(Key::from(("a/b", "50%", "%2F")).to_string(), "a%2Fb/50%25/%252F");
        for (types, key, fine) in [
            (&["integer", "bigint"][..], "7/42", true),
            (&["integer", "bigint"], "7/042", false),
            (&["integer", "bigint"], "7", false),
            (&["integer", "bigint"], "7/42/1", false),
            (&["integer", "text"], "7/", true),
            (&["integer", "text"], "7/a%2Fb", true),
            (&["integer", "text"], "7/a%252Fb", true),
            (&["integer", "text"], "7/50%", false),
        ] {
            assert_eq!(of(types).fault(key).is_none(), fine, "{types:?} {key:?}");
        }
        assert_eq!(of(&["integer", "date"]).canonical(" 7/2026-1-31").as_deref(), Some("7/2026-01-31"));
    }
}
