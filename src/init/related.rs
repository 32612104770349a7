//! Rows one step from the row: those that the row refers to, those that refer to it, and those that a table between joins to it. Pure.

mod children;
mod parents;

pub(super) use children::children;
pub(super) use parents::parents;

use super::draft::{LeftOut, Touch, Unwatched};
use super::facts::{Column, Facts, ForeignKey, Relation};
use super::field::{self, Chosen, Field};
use super::kind::Sort;
use super::suspect;

/// A related table in the document.
pub(super) struct Related {
    pub field: Field,
    pub touches: Vec<Touch>,
    pub unwatched: Option<Unwatched>,
    /// Columns of the table itself that it is found by.
    pub reads: Vec<String>,
}

/// What a table came to: in the document, or why not.
pub(super) type Judged = Result<Related, LeftOut>;

/// A child with more columns than this is better chosen by hand.
const COLUMNS: usize = 8;
/// Enough to know a parent by.
const LABELS: usize = 4;

/// Why changes of a related table could not be followed, or its rows not be read.
fn unfit(related: &Relation) -> Option<&'static str> {
    if let Some(why) = suspect::secret_table(&related.name) {
        return Some(why);
    }
    match (related.kind.as_str(), related.persistence.as_str()) {
        _ if related.hides_rows => Some("has row security that applies to this role, and a hidden row would look deleted"),
        _ if related.inherits || related.partition_of.is_some() => Some("inherits or is a partition, and its changes cannot be followed"),
        ("r" | "p", "p") => None,
        _ => Some("is not a plain table that survives a crash"),
    }
}

/// Can a change find the rows by these columns?
fn is_way(own: &[String], theirs: &[String]) -> bool {
    own.iter().all(|name| !name.contains('=')) && own.iter().chain(theirs).all(|name| !name.contains("$f$"))
}

/// Does an index find rows by these columns?
fn finds(table: &Relation, columns: &[String]) -> bool {
    columns.iter().any(|column| table.finds(column))
}

/// The columns that rows of a related table are known by: names and titles, or else the first that are text.
fn labels(related: &Relation) -> Vec<Chosen<'_>> {
    let texts = || plain(related, &[]).filter(|chosen| matches!(chosen.shown.sort, Sort::Words | Sort::Whole) && !chosen.column.is_array);
    let named: Vec<Chosen> = texts().filter(|chosen| suspect::is_label(chosen.column)).take(LABELS).collect();
    if named.is_empty() { texts().filter(|chosen| chosen.column.base != "uuid").take(LABELS / 2).collect() } else { named }
}

/// The columns of a related table that fit into a document, without those named.
fn plain<'a>(related: &'a Relation, without: &'a [String]) -> impl Iterator<Item = Chosen<'a>> {
    let fits = |column: &&Column| {
        !column.is_generated
            && !without.contains(&column.name)
            && !column.description.starts_with("catchword")
            && suspect::soft_delete(column, "r").is_none()
            // a time of writing would make every update of the related row a change of the document
            && suspect::period_rank(column).is_none()
    };
    let refers = related.primary_key();
    related
        .columns
        .iter()
        .filter(fits)
        .filter_map(|column| field::choose(column, refers.contains(&column.name)).ok())
        .filter(|chosen| chosen.shown.sort != Sort::Kept)
}

/// The join of a related row to the row of the view, in SQL.
fn joined(from: &Relation, columns: &[String], alias: &str, to: &Relation, referred: &[String], other: &str) -> String {
    let quoted = |relation: &Relation, name: &String| relation.column(name).map_or_else(|| name.clone(), |column| column.quoted.clone());
    let pairs = columns.iter().zip(referred).map(|(one, two)| format!("{alias}.{} = {other}.{}", quoted(from, one), quoted(to, two)));
    pairs.collect::<Vec<_>>().join(" and ")
}

/// The columns to list in `watch`: those that are read, without those that are always compared. None where there is no primary key,
/// by which the old and the new row are told to be the same.
fn watch(related: &Relation, reads: impl IntoIterator<Item = String>, compared: &[String]) -> Vec<String> {
    if related.primary_key().is_empty() {
        return Vec::new();
    }
    let reads: std::collections::BTreeSet<String> = reads.into_iter().filter(|name| !compared.contains(name)).collect();
    related.columns.iter().map(|column| column.name.clone()).filter(|name| reads.contains(name)).collect()
}

/// Each foreign key once: the same columns may have two.
fn distinct(keys: &[ForeignKey]) -> Vec<&ForeignKey> {
    let mut found: Vec<&ForeignKey> = Vec::new();
    for key in keys {
        if !found.iter().any(|other| (other.relation, other.refers_to, &other.columns) == (key.relation, key.refers_to, &key.columns)) {
            found.push(key);
        }
    }
    found
}

fn left_out(related: &Relation, why: impl Into<String>) -> LeftOut {
    LeftOut { what: related.shown(), why: why.into() }
}

fn relation(facts: &Facts, id: i64) -> Option<&Relation> {
    facts.relations.get(&id)
}

/// What makes a column's look-ups quick, for whoever has to do it.
fn index_command(table: &Relation, columns: &[String]) -> String {
    let quoted = columns.iter().map(|name| table.column(name).map_or(name.as_str(), |column| &column.quoted));
    format!("create index concurrently on {} ({})", table.shown(), quoted.collect::<Vec<_>>().join(", "))
}
