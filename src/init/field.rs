//! A field of the document: what the view writes, and how Elasticsearch takes it. Pure.

use super::facts::Column;
use super::kind::{self, Kind, Shown, Written};
use super::names::{field_name, free};
use super::suspect;
use crate::printable::printable;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub name: String,
    /// In SQL, perhaps of several lines.
    pub written: String,
    pub mapping: Mapping,
    /// For a comment beside it.
    pub why: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mapping {
    /// One field, in JSON.
    One(String),
    /// An object, or a list of them.
    Object(Vec<(String, Mapping)>),
}

impl Mapping {
    /// How many fields Elasticsearch counts.
    pub fn count(&self) -> usize {
        match self {
            Mapping::One(json) => json.matches("\"type\"").count(),
            Mapping::Object(fields) => 1 + fields.iter().map(|(_, mapping)| mapping.count()).sum::<usize>(),
        }
    }
}

/// A column of its table, as a field.
pub(super) struct Chosen<'a> {
    pub column: &'a Column,
    pub shown: Shown,
}

/// Judges a column: a field, or why it is none. `refers`: it is part of a key of some table.
pub(super) fn choose(column: &Column, refers: bool) -> Result<Chosen<'_>, &'static str> {
    // the triggers' functions are written between these
    if column.name.contains("$f$") {
        return Err("a column with $f$ in its name cannot be watched");
    }
    if let Some(why) = suspect::private(column).filter(|_| !refers) {
        return Err(why);
    }
    match kind::kind(column, refers) {
        Kind::Shown(shown) => Ok(Chosen { column, shown }),
        Kind::LeftOut(why) => Err(why),
    }
}

impl Chosen<'_> {
    /// The value in SQL.
    pub fn written(&self, alias: &str) -> String {
        let name = format!("{alias}.{}", self.column.quoted);
        match (self.shown.written, self.column.is_array) {
            (Written::Plain, _) => name,
            (Written::Text, false) => format!("{name}::text"),
            (Written::Text, true) => format!("{name}::text[]"),
            (Written::Host, _) => format!("host({name})"),
        }
    }

    pub fn mapping(&self) -> Mapping {
        Mapping::One(self.shown.mapping.clone())
    }

    fn why(&self) -> String {
        let mapped = self.shown.mapping.split('"').nth(3).unwrap_or_default();
        let whole = if self.shown.mapping.contains("\"fields\"") { ", and whole as .keyword" } else { "" };
        let more = if self.shown.why.is_empty() { String::new() } else { format!("; {}", self.shown.why) };
        format!("{}: {mapped}{whole}{more}", printable(&self.column.type_name))
    }
}

/// The column as a field of the document itself, under a name that is free.
pub(super) fn own_field(chosen: &Chosen, taken: impl Fn(&str) -> bool) -> Field {
    let name = free(&[field_name(&chosen.column.name)], taken);
    Field { name, written: chosen.written("t"), mapping: chosen.mapping(), why: chosen.why() }
}

/// A value of an object: its name, what the view writes, and its mapping.
pub(super) type Part = (String, String, Mapping);

/// Columns of a related table as parts of an object.
pub(super) fn parts(columns: &[Chosen], alias: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for chosen in columns {
        let name = free(&[field_name(&chosen.column.name)], |name| parts.iter().any(|(taken, ..)| taken == name));
        parts.push((name, chosen.written(alias), chosen.mapping()));
    }
    parts
}

/// An object in SQL, and its mapping.
pub(super) fn object(parts: Vec<Part>) -> (String, Mapping) {
    let written: Vec<String> = parts.iter().map(|(name, written, _)| format!("{}, {written}", literal(name))).collect();
    let mapping = parts.into_iter().map(|(name, _, mapping)| (name, mapping)).collect();
    (format!("jsonb_build_object({})", written.join(", ")), Mapping::Object(mapping))
}

/// A text in SQL.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
