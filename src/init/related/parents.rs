//! Rows that the row refers to by its foreign keys.

use super::{Judged, Related, distinct, finds, index_command, is_way, joined, labels, left_out, relation, unfit, watch};
use crate::init::draft::{Touch, Way};
use crate::init::facts::{Facts, ForeignKey, Relation};
use crate::init::field::{Field, object, parts};
use crate::init::names::{field_name, free, stem};

/// One judgement for each foreign key. `taken`: names of fields that are in the document already.
pub(in super::super) fn parents(facts: &Facts, taken: &mut Vec<String>) -> Vec<Judged> {
    let own = distinct(&facts.foreign_keys).into_iter().filter(|key| key.relation == facts.table.id);
    own.filter_map(|key| Some(parent(facts, key, relation(facts, key.refers_to)?, taken))).collect()
}

fn parent(facts: &Facts, key: &ForeignKey, parent: &Relation, taken: &mut Vec<String>) -> Judged {
    let table = &facts.table;
    if let Some(why) = unfit(parent) {
        return Err(left_out(parent, why));
    }
    if !is_way(&key.columns, &key.referred) {
        return Err(left_out(parent, "its rows cannot be found by a column of that name"));
    }
    let has_index = finds(table, &key.columns);
    // a table that refers to itself and has no index is small only now
    if !has_index && (table.large || parent.id == table.id) {
        let why = format!(
            "no index begins with {}, and each change of it would read the whole table; first: {}",
            key.columns.join(", "),
            index_command(table, &key.columns)
        );
        return Err(left_out(parent, why));
    }
    let columns = labels(parent);
    if columns.is_empty() {
        return Err(left_out(parent, "none of its columns looks like a name or a title"));
    }
    let (built, mapping) = object(parts(&columns, "r"));
    let written = format!(
        "(\n      select {built}\n        from {} r\n       where {}\n    )",
        parent.shown(),
        joined(parent, &key.referred, "r", table, &key.columns, "t")
    );
    let stem = field_name(&stem(key.columns.last().map_or("", String::as_str)));
    let name = free(&[stem.clone(), field_name(&parent.name), format!("{stem}_row")], |name| taken.iter().any(|other| other == name));
    taken.push(name.clone());
    let small = if has_index { String::new() } else { format!("; when the table grows: {}", index_command(table, &key.columns)) };
    let reads = columns.iter().map(|chosen| chosen.column.name.clone()).chain(key.referred.clone());
    Ok(Related {
        field: Field { name, written, mapping, why: format!("the row of {} that {} refers to", parent.shown(), key.columns.join(", ")) },
        touches: vec![Touch {
            table: parent.shown(),
            column: key.referred.clone(),
            way: Way::Columns(key.columns.clone()),
            watch: watch(parent, reads, &key.referred),
            why: format!("the row refers to it{small}"),
        }],
        unwatched: None,
        reads: key.columns.clone(),
    })
}
