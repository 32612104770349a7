//! The `[[collection]]`. Pure.

use std::fmt::Write;

use super::draft::{Draft, Way};
use crate::printable::printable;

pub(super) fn text(draft: &Draft, mapping: &str) -> String {
    let mut text =
        format!("# {}: what `catchword init` chose; change it as you like, then catchword migrate.\n[[collection]]\n", draft.collection);
    let mut line = |comment: &str, setting: String| {
        for comment in comment.lines() {
            _ = writeln!(text, "# {}", printable(comment));
        }
        _ = writeln!(text, "{setting}");
    };
    line("", format!("name = {}", quoted(&draft.collection)));
    line("", format!("table = {}", quoted(&draft.table)));
    let key: Vec<String> = draft.key.iter().map(|column| column.name.clone()).collect();
    line(draft.key_why, format!("key = {}", one_or_list(&key)));
    if draft.revision.name != "catchword_revision" {
        line("the column that the trigger keeps the document's version in", format!("revision = {}", column(&draft.revision.name)));
    }
    line("returns the key, the revision and the document of each row that is to be found", format!("view = {}", quoted(&draft.view)));
    line(
        "text is found by its words, and whole as FIELD.keyword up to 256 letters; keyword is found whole.\n\
         Another type of a field: change it there, catchword rebuild. One more: there, catchword migrate; then in the view",
        format!("mapping = {}", quoted(mapping)),
    );
    if !draft.scopes.is_empty() {
        let flags: Vec<String> = draft.scopes.iter().map(|(name, _)| format!("--{name} X")).collect();
        let scopes: Vec<String> = draft.scopes.iter().map(|(name, scope)| format!("{name} = {}", column(scope))).collect();
        line(
            &format!("catchword reindex {}; an index begins with each of these columns", flags.join(" | ")),
            format!("scopes = {{ {} }}", scopes.join(", ")),
        );
    }
    if let Some((period, has_index)) = &draft.period {
        let small = if *has_index { "" } else { "; when the table grows, the column needs an index" };
        line(&format!("catchword reindex --between A B{small}"), format!("period = {}", column(period)));
    }
    if !draft.touches.is_empty() {
        line(
            "A change of these tables reaches the documents that show it: rows whose row_column has the value of its column, or that keys finds.\n\
             With watch only a change of these columns counts, and of column; without, every update",
            touches(draft),
        );
    }
    if !draft.unwatched.is_empty() {
        let why: Vec<String> = draft.unwatched.iter().map(|far| format!("{}: {}", far.table, far.why)).collect();
        line(
            &format!(
                "Documents may be older than these tables. After a change of one: catchword reindex {} --all --rewrite\n{}",
                draft.collection,
                why.join("\n")
            ),
            format!("unwatched = {}", list(draft.unwatched.iter().map(|far| &far.table))),
        );
    }
    if let Some(watch) = &draft.watch {
        line(
            "the columns that the view reads: an update that changes none of them schedules nothing",
            format!("watch = {}", columns(watch.iter())),
        );
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn touches(draft: &Draft) -> String {
    let mut text = String::from("touches = [\n");
    for touch in &draft.touches {
        let watch = if touch.watch.is_empty() { String::new() } else { format!(", watch = {}", columns(touch.watch.iter())) };
        let (table, column, why) = (quoted(&touch.table), one_or_list(&touch.column), printable(&touch.why));
        let way = match &touch.way {
            Way::Columns(columns) => format!("row_column = {}", one_or_list(columns)),
            Way::Keys(query) => format!("keys = {}", quoted(query)),
        };
        _ = writeln!(text, "  # {why}\n  {{ table = {table}, column = {column}, {way}{watch} }},");
    }
    text + "]"
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    format!("[{}]", names.map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
}

fn columns<'a>(names: impl Iterator<Item = &'a String>) -> String {
    format!("[{}]", names.map(|name| column(name)).collect::<Vec<_>>().join(", "))
}

fn one_or_list(names: &[String]) -> String {
    match names {
        [only] => column(only),
        several => columns(several.iter()),
    }
}

/// A column as the configuration reads it: one with capitals is quoted, as in SQL.
fn column(name: &str) -> String {
    let is_as_it_is = !name.starts_with('"') && !name.chars().any(|c| c.is_ascii_uppercase());
    quoted(&if is_as_it_is { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) })
}

/// A text in TOML. One with double quotes is easier to read between single ones.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| !c.is_control() && c != '\'';
    if text.contains(['"', '\\']) && text.chars().all(is_plain) {
        return format!("'{text}'");
    }
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            c if c.is_control() => _ = write!(written, "\\u{:04X}", u32::from(c)),
            c => written.push(c),
        }
    }
    written + "\""
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_name_comes_back_as_it_was() {
        for name in ["plain", r#""Order""#, r#"it's "so""#, "a\\b", "a\nb\u{7f}", "größe"] {
            let read: toml::Table = toml::from_str(&format!("x = {}", quoted(name))).unwrap();
            assert_eq!(read["x"].as_str(), Some(name));
        }
    }
}
