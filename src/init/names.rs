//! Names: which words one is made of, and which one is free. Pure.

/// The words of a name, in lower case: `passwordHash`, `password_hash` and `Password Hash` are the same two.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (was_lower && letter.is_uppercase()) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A name without what says that it refers to another row: `author_id` is about an author.
pub(super) fn stem(column: &str) -> String {
    let ends = ["_id", "_uuid", "_fk", "_key", "Id", "ID", "Uuid", "_ID"];
    let stem = ends.iter().find_map(|end| column.strip_suffix(end)).filter(|stem| !stem.is_empty());
    stem.unwrap_or(column).to_owned()
}

/// What a field of a document may be called: Elasticsearch takes a dot for a path, and names that begin with `_` for its own.
pub(super) fn field_name(column: &str) -> String {
    let name = column.replace('.', "_");
    let name = name.trim().trim_start_matches('_');
    match name {
        "" => "column".to_owned(),
        // ours, on tombstones
        "catchword_deleted" => "catchword_deleted_column".to_owned(),
        name => name.to_owned(),
    }
}

/// The first of these names that is free; the last one with a number, if none is.
pub(super) fn free(candidates: &[String], taken: impl Fn(&str) -> bool) -> String {
    if let Some(found) = candidates.iter().find(|name| !taken(name)) {
        return found.clone();
    }
    let last = candidates.last().map_or("field", String::as_str);
    (2..).map(|n| format!("{last}_{n}")).find(|name| !taken(name)).unwrap_or_default()
}

/// What a collection may be called: a lower-case letter, then up to 39 letters, digits and underscores.
pub(super) fn collection_name(table: &str) -> String {
    let plain: String = words(table).join("_").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let plain = plain.trim_matches('_');
    let begins = plain.starts_with(|c: char| c.is_ascii_lowercase());
    let name: String = if begins { plain.to_owned() } else { format!("t_{plain}") }.chars().take(40).collect();
    // the canary is catchword's own
    if name == crate::config::CANARY { format!("{name}_rows") } else { name }
}

/// What a scope may be called, as a flag of `reindex`. None: nothing of the name is left.
pub(super) fn scope_name(column: &str) -> Option<String> {
    let plain: String = words(&stem(column)).join("-").chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(30).collect();
    let plain = plain.trim_matches('-').to_owned();
    plain.starts_with(|c: char| c.is_ascii_lowercase()).then_some(plain)
}

/// Names that the view of a table could have, the best first. Postgres cuts names at 63 bytes.
pub(super) fn view_names(table: &str) -> Vec<String> {
    ["_document", "_search_document", "_catchword_document"].iter().map(|end| format!("{}{end}", cut(table, 63 - end.len()))).collect()
}

fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A name as SQL writes it, where it is one that we made: none of these is a reserved word.
pub(super) fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if begins && name.chars().all(plain) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_same_words_however_it_is_written() {
        for name in ["password_hash", "passwordHash", "Password Hash", "PASSWORD-HASH"] {
            assert_eq!(words(name), ["password", "hash"], "{name}");
        }
        assert_eq!(words("_"), Vec::<String>::new());
    }

    #[test]
    fn names_of_collections_and_scopes_are_such_that_the_configuration_takes_them() {
        let long = "x".repeat(60);
        for (table, name) in [("Order", "order"), ("2fa", "t_2fa"), ("größe", "gr__e"), ("", "t_"), ("OrderItem", "order_item")] {
            assert_eq!(collection_name(table), name);
        }
        assert_eq!(collection_name(&long).len(), 40);
        assert_eq!(scope_name("author_id").as_deref(), Some("author"));
        assert_eq!(scope_name("OrderId").as_deref(), Some("order"));
        assert_eq!(scope_name("ключ"), None);
    }

    #[test]
    fn no_field_is_called_as_elasticsearch_refuses_it() {
        for (column, field) in [("_id", "id"), ("a.b", "a_b"), (" ", "column"), ("catchword_deleted", "catchword_deleted_column")] {
            assert_eq!(field_name(column), field);
        }
    }

    #[test]
    fn a_name_that_is_taken_gives_way() {
        let names = ["author".to_owned(), "person".to_owned()];
        assert_eq!(free(&names, |_| false), "author");
        assert_eq!(free(&names, |name| name == "author"), "person");
        assert_eq!(free(&names, |name| !name.ends_with('3')), "person_3");
    }

    #[test]
    fn a_view_has_a_name_that_postgres_does_not_cut() {
        for name in view_names(&"ä".repeat(31)) {
            assert!(name.len() <= 63, "{name}");
        }
    }
}
