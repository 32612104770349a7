//! The key: what names a document on both sides.

use uuid::Uuid;

/// Elasticsearch takes an `_id` of up to 512 bytes; a longer one fails the whole bulk it is in.
pub const MAX_KEY_BYTES: usize = 512;

/// How the ids of sentinels begin, tombstones by which an index that lost acknowledged writes is noticed. No row may have such a key.
pub const SENTINEL: &str = "catchword-sentinel";

/// The type of a collection's key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    Uuid,
    Bigint,
    Integer,
    Text,
}

impl KeyType {
    /// From Postgres' name of the type.
    pub fn named(name: &str) -> Option<KeyType> {
        match name {
            "uuid" => Some(KeyType::Uuid),
            "bigint" => Some(KeyType::Bigint),
            "integer" => Some(KeyType::Integer),
            "text" => Some(KeyType::Text),
            _ => None,
        }
    }

    /// Postgres' name of the type.
    pub fn name(self) -> &'static str {
        match self {
            KeyType::Uuid => "uuid",
            KeyType::Bigint => "bigint",
            KeyType::Integer => "integer",
            KeyType::Text => "text",
        }
    }

    /// The text that Postgres writes for what a person typed: 7 for ` 7`, lower case for an upper-case uuid. None: not of this type.
    pub fn canonical(self, typed: &str) -> Option<String> {
        let trimmed = typed.trim();
        match self {
            KeyType::Uuid => Uuid::try_parse(trimmed).ok().map(|uuid| uuid.to_string()),
            KeyType::Bigint => trimmed.parse::<i64>().ok().map(|n| n.to_string()),
            KeyType::Integer => trimmed.parse::<i32>().ok().map(|n| n.to_string()),
            KeyType::Text => Some(typed.to_owned()),
        }
    }

    /// What is wrong with a key of a job, if anything: found before the query, because there it would fail its whole batch. A key must
    /// be the text that Postgres itself writes, or it would never meet its row.
    pub fn fault(self, key: &str) -> Option<String> {
        match self.canonical(key) {
            None => Some(format!("the key is not of type {}", self.name())),
            Some(canonical) if canonical != key => Some(format!("the key is not written as Postgres writes it: {canonical}")),
            _ => no_id(key),
        }
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
    use super::KeyType;

    #[test]
    fn a_key_is_the_text_that_postgres_writes() {
        let uuid = "0d0a5c1e-6a3b-4b9e-9d7a-2f1c3e4d5b6a";
        for (kind, key, fine) in [
            (KeyType::Uuid, uuid, true),
            (KeyType::Uuid, &uuid.to_uppercase(), false),
            (KeyType::Uuid, &uuid.replace('-', ""), false),
            (KeyType::Uuid, "7", false),
            (KeyType::Bigint, "7", true),
            (KeyType::Bigint, "-7", true),
            (KeyType::Bigint, " 7", false),
            (KeyType::Bigint, "007", false),
            (KeyType::Bigint, "+7", false),
            (KeyType::Integer, "2147483648", false),
            (KeyType::Integer, "2147483647", true),
            (KeyType::Text, "a/b%c\"\n", true),
            (KeyType::Text, "", false),
            (KeyType::Text, "catchword-sentinel", false),
            (KeyType::Text, "catchword-sentinel-7", false),
            (KeyType::Text, "catchword", true),
            (KeyType::Text, &"x".repeat(512), true),
            (KeyType::Text, &"x".repeat(513), false),
            (KeyType::Text, &"é".repeat(257), false),
        ] {
            assert_eq!(kind.fault(key).is_none(), fine, "{kind:?} {key:?}");
        }
    }
}
