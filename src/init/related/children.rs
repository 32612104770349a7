//! Rows that refer to the row: its children, one row of another table, and those that a table between joins to it.

use super::{COLUMNS, Judged, Related, distinct, finds, index_command, is_way, joined, labels, left_out, plain, relation, unfit, watch};
use crate::init::draft::{LeftOut, Touch, Unwatched, Way};
use crate::init::facts::{Facts, ForeignKey, Relation};
use crate::init::field::{self, Chosen, Field, object, parts};
use crate::init::names::{field_name, free, stem, words};
use crate::init::suspect;

/// With more related tables than this, only those count that are named after the table.
const MANY: usize = 5;
/// A document with more rows than this of another table is slow to build, and grows too large.
const LARGEST: f64 = 1000.0;

/// One judgement for each foreign key that leads to the table. `taken`: names of fields that are in the document already.
pub(in super::super) fn children(facts: &Facts, own_key: &[String], taken: &mut Vec<String>) -> Vec<Judged> {
    let table = &facts.table;
    let theirs = distinct(&facts.foreign_keys).into_iter().filter(|key| key.refers_to == table.id && key.relation != table.id);
    let found: Vec<Result<(&ForeignKey, &Relation), LeftOut>> = theirs
        .filter_map(|key| Some((key, relation(facts, key.relation)?)))
        .map(|(key, child)| check(key, child).map_or(Ok((key, child)), |why| Err(left_out(child, why))))
        .collect();
    let are_many = found.iter().filter(|judged| judged.is_ok()).count() > MANY;
    let mut shown = 0;
    found
        .into_iter()
        .map(|judged| {
            let (key, child) = judged?;
            let own = words(&child.name).join("_").starts_with(singular(&words(&table.name).join("_")));
            if are_many && (!own || shown == MANY) {
                return Err(left_out(child, "many tables refer to this one; only those that are named after it are in the document"));
            }
            let built = match far_key(facts, key, child) {
                Some(far) => far_rows(facts, own_key, key, child, far, taken),
                None => rows(table, key, child, taken),
            };
            shown += usize::from(built.is_ok());
            built
        })
        .collect()
}

/// Why the rows of a child are not in the document.
fn check(key: &ForeignKey, child: &Relation) -> Option<String> {
    if let Some(why) = unfit(child).or_else(|| suspect::unfit_child(&child.name)) {
        return Some(why.to_owned());
    }
    if !finds(child, &key.columns) {
        let (columns, command) = (key.columns.join(", "), index_command(child, &key.columns));
        return Some(format!("no index begins with {columns}, and each document would read the whole of it; first: {command}"));
    }
    if let Some(largest) = key.largest.filter(|largest| *largest > LARGEST) {
        return Some(format!("one row has about {largest:.0} of them, too many for a document"));
    }
    (!is_way(&key.referred, &key.columns)).then(|| "its rows cannot be found by a column of that name".into())
}

/// The children themselves: a list, or one object if there is at most one.
fn rows(table: &Relation, key: &ForeignKey, child: &Relation, taken: &mut Vec<String>) -> Judged {
    let order = child.primary_key();
    let single = child.is_unique(&key.columns);
    if order.is_empty() && !single {
        return Err(left_out(child, "it has no primary key to put its rows in order by, and one row must be one document"));
    }
    let columns: Vec<Chosen> = plain(child, &key.columns).take(COLUMNS).collect();
    if columns.is_empty() {
        return Err(left_out(child, "none of its columns fits into a document"));
    }
    let (built, mapping) = object(parts(&columns, "r"));
    let deleted = child.columns.iter().find_map(|column| Some((suspect::soft_delete(column, "r")?, column.name.clone())));
    let mut condition = joined(child, &key.columns, "r", table, &key.referred, "t");
    if let Some((not_deleted, _)) = &deleted {
        condition = format!("{condition} and {not_deleted}");
    }
    let built = if single { built } else { listed(&built, child, order) };
    let mut reads: Vec<String> = columns.iter().map(|chosen| chosen.column.name.clone()).chain(key.columns.clone()).collect();
    reads.extend(deleted.map(|(_, name)| name));
    if !single {
        reads.extend(order.iter().cloned());
    }
    let by = field_name(&format!("{}_by_{}", child.name, stem(key.columns.last().map_or("", String::as_str))));
    let field = Field {
        name: name(&[field_name(&child.name), by], taken),
        written: format!("(\n      select {built}\n        from {} r\n       where {condition}\n    )", child.shown()),
        mapping,
        why: if single {
            format!("the row of {} that refers to this one", child.shown())
        } else {
            format!("the rows of {}; if there can be thousands, take them out, and their touch too", child.shown())
        },
    };
    Ok(related(key, child, field, reads))
}

/// The foreign key that leads on, if the table is one between two others: it has nothing of its own but times.
fn far_key<'a>(facts: &'a Facts, key: &ForeignKey, between: &Relation) -> Option<&'a ForeignKey> {
    let mut others = facts.foreign_keys.iter().filter(|other| other.relation == between.id && other.columns != key.columns);
    let (far, more) = (others.next()?, others.next());
    let is_time = |base: &str| ["date", "timestamp", "timestamptz"].contains(&base);
    let part = |name: &String| key.columns.contains(name) || far.columns.contains(name) || between.primary_key().contains(name);
    let bare = between.columns.iter().all(|column| part(&column.name) || is_time(&column.base));
    (bare && more.is_none() && far.columns.len() == 1 && key.columns.len() == 1).then_some(far)
}

/// The rows on the far side. If nothing of them is worth it, or they cannot be read, only the values that lead there are listed.
fn far_rows(
    facts: &Facts,
    own_key: &[String],
    key: &ForeignKey,
    between: &Relation,
    far_key: &ForeignKey,
    taken: &mut Vec<String>,
) -> Judged {
    let table = &facts.table;
    let values = || left_out(between, "it joins a table that cannot be read");
    let far = relation(facts, far_key.refers_to).ok_or_else(values)?;
    let leads = far_key.columns.first().and_then(|name| between.column(name)).ok_or_else(values)?;
    let chosen = field::choose(leads, true).map_err(|why| left_out(between, why))?;
    let condition = joined(between, &key.columns, "r", table, &key.referred, "t");
    let columns = if far.id == table.id || unfit(far).is_some() { Vec::new() } else { labels(far) };
    let reads: Vec<String> = key.columns.iter().chain(&far_key.columns).cloned().collect();
    let names = far_names(table, between, far);
    if columns.is_empty() {
        let written = format!(
            "(\n      select coalesce(jsonb_agg({0} order by {0}), '[]')\n        from {1} r\n       where {condition}\n    )",
            chosen.written("r"),
            between.shown()
        );
        let why = format!("which rows of {} are joined to this one by {}", far.shown(), between.shown());
        let field = Field { name: name(&names, taken), written, mapping: chosen.mapping(), why };
        return Ok(related(key, between, field, reads));
    }
    let mut shown = parts(&columns, "f");
    // what leads there is the far row's own
    let value = far_key.referred.first().map_or("id".to_owned(), |name| field_name(name));
    if shown.iter().all(|(name, ..)| *name != value) {
        shown.insert(0, (value, chosen.written("r"), chosen.mapping()));
    }
    let (built, mapping) = object(shown);
    let written = format!(
        "(\n      select coalesce(jsonb_agg({built} order by r.{}), '[]')\n        from {} r\n        join {} f on {}\n       where {condition}\n    )",
        leads.quoted,
        between.shown(),
        far.shown(),
        joined(far, &far_key.referred, "f", between, &far_key.columns, "r"),
    );
    let why = format!("the rows of {} that {} joins to this one", far.shown(), between.shown());
    let field = Field { name: name(&names, taken), written, mapping, why };
    let mut found = related(key, between, field, reads);
    match keys_query(own_key, key, between, far_key) {
        Ok(query) => found.touches.push(Touch {
            table: far.shown(),
            column: far_key.referred.clone(),
            way: Way::Keys(query),
            watch: watch(far, columns.iter().map(|chosen| chosen.column.name.clone()), &far_key.referred),
            why: format!("{} joins it to the row", between.shown()),
        }),
        Err(why) => found.unwatched = Some(Unwatched { table: far.shown(), why }),
    }
    Ok(found)
}

/// A query for the keys of the rows that far rows are joined to, or why there is none.
fn keys_query(own_key: &[String], key: &ForeignKey, between: &Relation, far_key: &ForeignKey) -> Result<String, String> {
    if own_key.len() > 1 || key.referred != own_key {
        return Err(format!("{} does not lead to a key of one column", between.shown()));
    }
    if !finds(between, &far_key.columns) {
        let command = index_command(between, &far_key.columns);
        return Err(format!("no index of {} begins with {}; first: {command}", between.shown(), far_key.columns.join(", ")));
    }
    let quoted = |name: &String| between.column(name).map_or_else(|| name.clone(), |column| column.quoted.clone());
    let listed = |names: &[String]| names.iter().map(quoted).collect::<Vec<_>>().join(", ");
    Ok(["select", &listed(&key.columns), "from", &between.shown(), "where", &listed(&far_key.columns), "= any($1)"].join(" "))
}

/// `post_tag` between posts and tags is about tags; a table with a name of its own is about what that says.
fn far_names(table: &Relation, between: &Relation, far: &Relation) -> [String; 2] {
    let said = words(&between.name).join("_");
    let of_both = [table, far].iter().all(|end| said.contains(singular(&words(&end.name).join("_"))));
    let (one, two) = (field_name(&far.name), field_name(&between.name));
    if of_both { [one, two] } else { [two, one] }
}

/// A child refers to columns that are unique, so an index finds the row.
fn related(key: &ForeignKey, child: &Relation, field: Field, reads: Vec<String>) -> Related {
    let touch = Touch {
        table: child.shown(),
        column: key.columns.clone(),
        way: Way::Columns(key.referred.clone()),
        watch: watch(child, reads, &key.columns),
        why: "it refers to the row".into(),
    };
    Related { field, touches: vec![touch], unwatched: None, reads: key.referred.clone() }
}

fn listed(built: &str, child: &Relation, order: &[String]) -> String {
    let order = order.iter().filter_map(|name| child.column(name)).map(|column| format!("r.{}", column.quoted));
    format!("coalesce(jsonb_agg({built} order by {}), '[]')", order.collect::<Vec<_>>().join(", "))
}

fn name(candidates: &[String], taken: &mut Vec<String>) -> String {
    let name = free(candidates, |name| taken.iter().any(|other| other == name));
    taken.push(name.clone());
    name
}

fn singular(name: &str) -> &str {
    name.strip_suffix("ies").or_else(|| name.strip_suffix('s')).unwrap_or(name)
}
