//! What a name gives away: a secret, a person's data, a soft delete, a table that grows for ever. Pure. A guess costs a line to put right.

use super::facts::Column;
use super::names::words;

const SECRET: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "secrets",
    "token",
    "tokens",
    "hash",
    "hashes",
    "hashed",
    "salt",
    "digest",
    "otp",
    "totp",
    "mfa",
    "cvv",
    "cvc",
    "ssn",
    "credential",
    "credentials",
    "apikey",
    "encrypted",
    "nonce",
];
const SECRET_PAIRS: &[(&str, &str)] = &[
    ("api", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("access", "key"),
    ("auth", "key"),
    ("recovery", "codes"),
    ("backup", "codes"),
];
const PERSONAL: &[&str] =
    &["email", "emails", "mail", "phone", "telephone", "mobile", "fax", "birthday", "birthdate", "dob", "ip", "iban", "passport"];
const PERSONAL_PAIRS: &[(&str, &str)] = &[("birth", "date"), ("date", "birth"), ("e", "mail"), ("card", "number"), ("account", "number")];

/// Tables that have ever more rows for one row of another, and whose rows nobody searches for by it.
const ENDLESS: &[&str] = &[
    "log",
    "logs",
    "audit",
    "audits",
    "history",
    "histories",
    "session",
    "sessions",
    "event",
    "events",
    "notification",
    "notifications",
    "job",
    "jobs",
    "queue",
    "version",
    "versions",
    "archive",
    "archives",
];

/// Why a column had better not be in an index that others read, if its name says so.
pub(super) fn private(column: &Column) -> Option<&'static str> {
    // a number, a time and a flag about a secret are none
    if ["bool", "date", "timestamp", "timestamptz", "int2", "int4", "int8"].contains(&column.base.as_str()) {
        return None;
    }
    let words = words(&column.name);
    if has(&words, SECRET, SECRET_PAIRS) || ["password", "passwd", "secret"].iter().any(|part| words.concat().contains(part)) {
        return Some("looks like a secret");
    }
    has(&words, PERSONAL, PERSONAL_PAIRS).then_some("looks like personal data")
}

/// Why the rows of a table had better not be in the document of another one, if its name says so.
pub(super) fn unfit_child(table: &str) -> Option<&'static str> {
    let words = words(table);
    has(&words, ENDLESS, &[]).then_some("looks like it gets ever more rows")
}

/// The same of a table in whose rows nobody should look.
pub(super) fn secret_table(table: &str) -> Option<&'static str> {
    let words = words(table);
    (has(&words, SECRET, SECRET_PAIRS) || has(&words, &["activation", "activations", "invite", "invites"], &[]))
        .then_some("looks like it holds secrets")
}

/// The condition under which a row is not deleted, if the column says that it is. `alias` is the table's.
pub(super) fn soft_delete(column: &Column, alias: &str) -> Option<String> {
    let words = words(&column.name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = &column.quoted;
    let flag = [&["deleted"][..], &["is", "deleted"], &["removed"], &["is", "removed"], &["soft", "deleted"], &["discarded"]];
    let time = [&["deleted", "at"][..], &["deleted"], &["deleted", "on"], &["date", "deleted"], &["removed", "at"], &["discarded", "at"]];
    match column.base.as_str() {
        _ if column.is_array => None,
        "bool" if flag.contains(&words.as_slice()) => {
            Some(if column.not_null { format!("not {alias}.{name}") } else { format!("{alias}.{name} is not true") })
        }
        // one that is never null says something else
        "date" | "timestamp" | "timestamptz" if time.contains(&words.as_slice()) && !column.not_null => {
            Some(format!("{alias}.{name} is null"))
        }
        _ => None,
    }
}

/// Is it a time of writing? The smaller, the better for `reindex --between`.
pub(super) fn period_rank(column: &Column) -> Option<usize> {
    if column.is_array || column.is_generated || !["date", "timestamp", "timestamptz"].contains(&column.base.as_str()) {
        return None;
    }
    let words = words(&column.name);
    let first = ["updated", "modified", "changed", "edited", "update", "created", "published", "inserted", "posted", "added"];
    first.iter().position(|word| words.first().is_some_and(|found| found == word))
}

/// Does it name its row for people?
pub(super) fn is_label(column: &Column) -> bool {
    let words = words(&column.name);
    let labels = ["name", "title", "label", "slug", "username", "login", "handle", "nickname", "nick", "code", "subject", "caption"];
    words.last().is_some_and(|last| labels.contains(&last.as_str()))
}

/// Is a text column one that is looked for whole, not by its words?
pub(super) fn is_whole(column: &Column) -> bool {
    let words = words(&column.name);
    let whole = [
        "id",
        "ids",
        "uuid",
        "guid",
        "uri",
        "url",
        "href",
        "link",
        "slug",
        "status",
        "state",
        "type",
        "kind",
        "code",
        "locale",
        "lang",
        "language",
        "country",
        "currency",
        "timezone",
        "version",
        "key",
        "path",
        "username",
        "login",
        "userid",
        "groupid",
        "mime",
        "extension",
        "color",
    ];
    let address = |word: &String| ["uri", "url"].contains(&word.as_str());
    words.last().is_some_and(|last| whole.contains(&last.as_str())) || words.iter().any(address)
}

fn has(words: &[String], single: &[&str], pairs: &[(&str, &str)]) -> bool {
    words.iter().any(|word| single.contains(&word.as_str()))
        || words.windows(2).any(|two| pairs.iter().any(|(first, second)| two[0] == *first && two[1] == *second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, base: &str) -> Column {
        Column { name: name.into(), quoted: name.into(), base: base.into(), ..Column::default() }
    }

    #[test]
    fn secrets_and_personal_data_are_told_by_their_names() {
        for name in ["password", "encrypted_password", "passwordDigest", "api_key", "reset_token", "otp_secret", "userpassword"] {
            assert_eq!(private(&column(name, "text")), Some("looks like a secret"), "{name}");
        }
        for name in ["email", "contact_email", "phoneNumber", "last_ip", "birth_date"] {
            assert_eq!(private(&column(name, "varchar")), Some("looks like personal data"), "{name}");
        }
        for name in ["title", "monkey", "keyword", "shipping", "description"] {
            assert_eq!(private(&column(name, "text")), None, "{name}");
        }
        assert_eq!(private(&column("password_changed_at", "timestamptz")), None);
    }

    #[test]
    fn a_soft_delete_is_a_condition() {
        let of = |name: &str, base: &str, not_null: bool| soft_delete(&Column { not_null, ..column(name, base) }, "t");
        assert_eq!(of("deleted", "bool", true).as_deref(), Some("not t.deleted"));
        assert_eq!(of("is_deleted", "bool", false).as_deref(), Some("t.is_deleted is not true"));
        assert_eq!(of("deletedAt", "timestamptz", false).as_deref(), Some("t.deletedAt is null"));
        assert_eq!(of("deleted_at", "timestamptz", true), None);
        assert_eq!(of("deleted_by", "bool", true), None);
        assert_eq!(of("deleted", "text", true), None);
    }

    #[test]
    fn the_time_of_the_last_write_comes_before_that_of_the_first() {
        assert!(period_rank(&column("updated_at", "timestamptz")) < period_rank(&column("created", "timestamp")));
        assert_eq!(period_rank(&column("created", "text")), None);
        assert_eq!(period_rank(&column("birthday", "date")), None);
    }
}
