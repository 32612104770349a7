//! Which names can be. Postgres and Elasticsearch would refuse or cut most of the others themselves, but later, one at
//! a time, and without saying which line of which file they came from.

use super::canary::CANARY;
use super::error::Fault;

/// Flags of `catchword reindex` and of the whole binary: a scope becomes a flag beside them.
pub(crate) const FLAGS: &[&str] = &[
    "all", "between", "config", "dry-run", "help", "hidden", "ids", "insecure", "json", "log", "rate", "rewrite", "tag", "version", "wait",
    "where", "yes",
];

/// Elasticsearch allows 255 bytes; the prefix takes up to [`PREFIX_LIMIT`] and a hyphen, and `-000001-write` the rest.
const INDEX_LIMIT: usize = 190;

const PREFIX_LIMIT: usize = 50;

/// Postgres cuts longer names silently, and two of them could then be one.
const POSTGRES_LIMIT: usize = 63;

pub(super) fn collection(name: &str) -> Result<(), Fault> {
    if name == CANARY {
        return Err(Fault::new(format!("is {}, which is catchword's own", shown(name)), "choose another name"));
    }
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if starts_with_letter(name) && name.chars().all(rest) && name.len() <= 40 {
        return Ok(());
    }
    Err(Fault::new(format!("is {}", shown(name)), "write a lowercase letter and then lowercase letters, digits or _, at most 40 in all"))
}

pub(super) fn scope(name: &str) -> Result<(), Fault> {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(starts_with_letter(name) && name.chars().all(rest) && name.len() <= 30) {
        return Err(Fault::new("cannot be a flag", "write a lowercase letter and then lowercase letters, digits or -, at most 30 in all"));
    }
    if FLAGS.contains(&name) {
        let remedy = format!("choose another name, for instance by-{name}");
        return Err(Fault::new(format!("would hide the flag --{name}"), remedy));
    }
    Ok(())
}

pub(super) fn index(name: &str) -> Result<(), Fault> {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if !(starts_alphanumeric(name) && name.chars().all(rest)) {
        return Err(Fault::new(
            format!("is {}, which Elasticsearch refuses", shown(name)),
            "begin with a lowercase letter or digit and go on with those, -, _ or .",
        ));
    }
    if name.len() > INDEX_LIMIT {
        let problem = format!("has {} bytes", name.len());
        return Err(Fault::new(problem, format!("write at most {INDEX_LIMIT}")));
    }
    if looks_physical(name) {
        return Err(Fault::new(
            format!("is {}, which looks like an index that catchword makes", shown(name)),
            "write the readers' alias; -000001 is added by catchword",
        ));
    }
    Ok(())
}

pub(super) fn index_prefix(prefix: &str) -> Result<(), Fault> {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let legal = starts_alphanumeric(prefix) && prefix.chars().all(rest);
    if prefix.is_empty() || (legal && prefix.len() <= PREFIX_LIMIT) {
        return Ok(());
    }
    Err(Fault::new(
        format!("is {}, which no index name can begin with", shown(prefix)),
        format!(
            "begin with a lowercase letter or digit and go on with those, - or _, \
             at most {PREFIX_LIMIT} in all, for instance staging-"
        ),
    ))
}

/// A table or a view, perhaps with its schema. A part in double quotes is taken as it is, as in SQL.
pub(super) fn relation(name: &str) -> Result<(), Fault> {
    let parts = parts(name);
    if parts.len() > 2 {
        let remedy = "write table or schema.table; the database is that of DATABASE_URL";
        return Err(Fault::new(format!("is {}", shown(name)), remedy));
    }
    parts.iter().try_for_each(|part| column(part))
}

/// The names between the dots, without their quotes.
fn parts(name: &str) -> Vec<String> {
    let (mut parts, mut quoted) = (vec![String::new()], false);
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        let Some(part) = parts.last_mut() else { break };
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => part.push('"'),
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other => part.push(other),
        }
    }
    parts
}

pub(super) fn column(name: &str) -> Result<(), Fault> {
    if name.is_empty() {
        return Err(Fault::new("has an empty name", "write the name as Postgres has it"));
    }
    if name.contains('\0') {
        return Err(Fault::new("has a NUL in a name", "write the name as Postgres has it"));
    }
    if name.len() > POSTGRES_LIMIT {
        let problem = format!("has a name of {} bytes", name.len());
        let remedy = format!("write at most {POSTGRES_LIMIT}: Postgres cuts longer ones");
        return Err(Fault::new(problem, remedy));
    }
    Ok(())
}

/// The one rule of quotes, for tables, views and columns alike, as in SQL: a name in double quotes is taken as it is, and of any other
/// capitals become small letters. Tables and views are read so by Postgres itself; this is for columns.
pub(super) fn as_in_sql(name: &str) -> String {
    match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_ascii_lowercase(),
    }
}

/// `…-000001` and `…-000001-write` are the names of a collection's own index and its write alias.
fn looks_physical(name: &str) -> bool {
    let name = name.strip_suffix("-write").unwrap_or(name);
    name.rsplit_once('-').is_some_and(|(_, end)| end.len() >= 6 && end.bytes().all(|byte| byte.is_ascii_digit()))
}

fn starts_with_letter(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
}

fn starts_alphanumeric(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// A long value is cut: the line is known anyway, and an error is read on a terminal.
fn shown(value: &str) -> String {
    match value.char_indices().nth(60) {
        None => format!("{value:?}"),
        Some((end, _)) => format!("{:?}…", &value[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(&str) -> Result<(), Fault>;

    #[track_caller]
    fn judge(rule: Rule, good: &[&str], bad: &[&str]) {
        for name in good {
            assert!(rule(name).is_ok(), "{name:?} was refused: {:?}", rule(name));
        }
        for name in bad {
            assert!(rule(name).is_err(), "{name:?} was accepted");
        }
    }

    #[test]
    fn collection_names() {
        let (longest, longer) = ("a".repeat(40), "a".repeat(41));
        judge(collection, &["a", "annotation", "annotation_2", &longest], &["", "Annotation", "2a", "_a", "a-b", "a b", "ä", &longer]);
    }

    #[test]
    fn scope_names_are_flags_that_are_free() {
        let (longest, longer) = ("a".repeat(30), "a".repeat(31));
        judge(scope, &["user", "by-user", "u2", &longest], &["", "User", "-u", "2u", "a_b", &longer]);
        judge(scope, &["tags", "by-ids"], FLAGS);
    }

    #[test]
    fn index_names_are_elasticsearchs() {
        let (longest, longer) = ("a".repeat(INDEX_LIMIT), "a".repeat(INDEX_LIMIT + 1));
        judge(
            index,
            &["annotation", "2024", "a-b_c.d", "a-00001", "a-write", "a-00000b", &longest],
            &["", "A", "-a", "_a", ".", "..", "a b", "a*", "a,b", "a#b", "a:b", "ä", &longer],
        );
        judge(index, &[], &["a-000001", "a-000001-write", "a-1000000"]);
    }

    #[test]
    fn an_index_fits_with_prefix_and_suffix() {
        assert!(PREFIX_LIMIT + "-".len() + INDEX_LIMIT + "-000001-write".len() <= 255);
    }

    #[test]
    fn index_prefixes() {
        let (longest, longer) = ("a".repeat(50), "a".repeat(51));
        judge(index_prefix, &["", "staging-", "2", "a_b", &longest], &["-", "_a", "A", "a.b", "a b", "a*", &longer]);
    }

    #[test]
    fn names_of_postgres() {
        let (longest, longer) = ("ä".repeat(31) + "a", "a".repeat(64));
        judge(column, &["id", "User Id", "a.b", "\"q\"", &longest], &["", "a\0b", &longer]);
        let (both, quoted) = (format!("{longest}.{longest}"), format!("\"{longest}\".\"{longest}\""));
        judge(
            relation,
            &["annotation", "public.annotation", &both, &quoted, r#""My Schema"."a.b.""c"""#],
            &["", ".a", "a.", "a.b.c", "a.\0", "\"\"", "a.\"b\".c", &longer],
        );
        for (written, meant) in [("id", "id"), ("Id", "id"), (r#""Id""#, "Id"), (r#""a""b""#, r#"a"b"#), ("ÄB", "Äb")] {
            assert_eq!(as_in_sql(written), meant, "{written}");
        }
    }
}
