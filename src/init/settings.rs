//! Settings of the collection that follow from its columns and indexes: scopes, period, watch. Pure.

use std::collections::BTreeSet;

use super::facts::{Facts, Relation};
use super::field;
use super::kind::Sort;
use super::names::scope_name;
use super::suspect;
use crate::config::FLAGS;

/// More flags than this nobody remembers.
const SCOPES: usize = 6;

/// Scopes: columns that an index begins with and that many rows share, first those that refer to other rows.
pub(super) fn scopes(facts: &Facts, key: &[String]) -> Vec<(String, String)> {
    let table = &facts.table;
    let refers =
        |name: &str| facts.foreign_keys.iter().any(|key| key.relation == table.id && key.columns.iter().any(|column| column == name));
    let shared = |name: &str| {
        table.finds(name) && !table.is_unique(&[name.to_owned()]) && (key.len() > 1 || key.iter().all(|column| column != name))
    };
    let fits = |column: &super::facts::Column| {
        let whole = |sort| matches!(sort, Sort::Whole | Sort::Number | Sort::Words);
        !column.is_array && !column.is_generated && field::choose(column, refers(&column.name)).is_ok_and(|chosen| whole(chosen.shown.sort))
    };
    let mut columns: Vec<_> = table.columns.iter().filter(|column| shared(&column.name) && fits(column)).collect();
    columns.sort_by_key(|column| !refers(&column.name));
    let mut scopes: Vec<(String, String)> = Vec::new();
    for column in columns {
        let Some(name) = scope_name(&column.name) else { continue };
        let name = if FLAGS.contains(&name.as_str()) { format!("by-{name}") } else { name };
        if scopes.len() < SCOPES && scopes.iter().all(|(taken, _)| *taken != name) {
            scopes.push((name, column.name.clone()));
        }
    }
    scopes
}

/// The time of the last write, if there is an index for it or the table is small enough to do without.
pub(super) fn period(table: &Relation) -> Option<(String, bool)> {
    let ranked = table.columns.iter().filter_map(|column| Some((suspect::period_rank(column)?, column)));
    let found = ranked.filter(|(_, column)| table.finds(&column.name) || !table.large);
    let (_, column) = found.min_by_key(|(rank, column)| (!table.finds(&column.name), *rank))?;
    Some((column.name.clone(), table.finds(&column.name)))
}

/// The columns that the view reads, where it does not read all of them. One that is generated changes with those that it is made of.
pub(super) fn watch(table: &Relation, reads: &BTreeSet<String>, key: &[String], revision: &str) -> Option<Vec<String>> {
    let read = |name: &String| {
        reads.contains(name)
            || table.columns.iter().any(|column| column.is_generated && reads.contains(&column.name) && column.made_of.contains(name))
    };
    let plain: Vec<&String> = table
        .columns
        .iter()
        .filter(|column| !column.is_generated)
        .map(|column| &column.name)
        .filter(|name| *name != revision && !key.contains(name))
        .collect();
    let watched: Vec<String> = plain.iter().filter(|name| read(name)).map(|name| (*name).clone()).collect();
    (watched.len() < plain.len() && !watched.is_empty()).then_some(watched)
}
