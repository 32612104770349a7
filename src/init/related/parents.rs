//! Rows that the row refers to by its foreign keys.

use super::{Judged, Related, distinct, index_command, joined, labels, left_out, relation, unfit, watch, way_back};
use crate::init::draft::Touch;
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
    if parent.id == table.id {
        let why = format!("{} refers to the same table: only the value itself is in the document", key.columns.join(", "));
        return Err(left_out(parent, why));
    }
    if let Some(why) = unfit(parent) {
        return Err(left_out(parent, why));
    }
    let Some((row_column, column)) = way_back(table, &key.columns, &key.referred) else {
        return Err(left_out(parent, "its rows cannot be found by a column of that name"));
    };
    if table.large && !table.finds(row_column) {
        let why = format!(
            "no index begins with {row_column}, and each change of it would read the whole table; first: {}",
            index_command(table, row_column)
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
    let stem = field_name(&stem(row_column));
    let name = free(&[stem.clone(), field_name(&parent.name), format!("{stem}_row")], |name| taken.iter().any(|other| other == name));
    taken.push(name.clone());
    let small =
        if table.finds(row_column) { String::new() } else { format!("; when the table grows: {}", index_command(table, row_column)) };
    let reads = columns.iter().map(|chosen| chosen.column.name.clone()).chain(key.referred.clone());
    Ok(Related {
        field: Field { name, written, mapping, why: format!("the row of {} that {} refers to", parent.shown(), key.columns.join(", ")) },
        touch: Touch {
            table: parent.shown(),
            column: column.clone(),
            row_column: row_column.clone(),
            watch: watch(parent, reads, column),
            why: format!("the row refers to it{small}"),
        },
        unwatched: None,
        reads: key.columns.clone(),
    })
}
