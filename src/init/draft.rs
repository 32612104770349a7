//! The choices put together: what the view, the mapping and the collection are made of. Pure.

use std::collections::BTreeSet;

use serde::Serialize;

use super::facts::{Column, Facts, Named};
use super::field::{self, Field, own_field};
use super::names::{free, quoted, view_names};
use super::{key, related, settings, suspect};
use crate::Error;

/// What `init` proposes.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The collection's name.
    pub collection: String,
    /// As SQL and the configuration write it.
    pub table: String,
    pub view: String,
    pub(super) key: Vec<Named>,
    pub(super) key_why: &'static str,
    pub(super) revision: Named,
    pub(super) body: Vec<Entry>,
    /// What a soft delete says, in SQL.
    pub(super) condition: Option<String>,
    pub(super) touches: Vec<Touch>,
    pub(super) unwatched: Vec<Unwatched>,
    pub(super) scopes: Vec<(String, String)>,
    /// The column, and whether an index begins with it.
    pub(super) period: Option<(String, bool)>,
    pub(super) watch: Option<Vec<String>>,
    /// Columns and tables that are not in the document.
    pub left_out: Vec<LeftOut>,
}

/// A column or a table that is not in the document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    pub what: String,
    pub why: String,
}

/// A line of the document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    Field(Field),
    LeftOut(LeftOut),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Touch {
    pub table: String,
    pub column: Vec<String>,
    pub way: Way,
    pub watch: Vec<String>,
    pub why: String,
}

/// How a change finds the rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Way {
    /// Columns of the table that have the changed values.
    Columns(Vec<String>),
    /// A query for the keys.
    Keys(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unwatched {
    pub table: String,
    pub why: String,
}

impl Draft {
    /// The columns that name a row.
    pub fn key(&self) -> Vec<&str> {
        self.key.iter().map(|column| column.name.as_str()).collect()
    }

    /// The command that fills the index. Rows that the view hides are told to the index too: an audit would miss them.
    pub fn fill_command(&self) -> String {
        let hidden = if self.condition.is_some() { " --hidden" } else { "" };
        format!("catchword reindex {} --all{hidden}", self.collection)
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.body.iter().filter_map(|entry| match entry {
            Entry::Field(field) => Some(field),
            Entry::LeftOut(_) => None,
        })
    }
}

pub(super) fn draft(facts: &Facts) -> Result<Draft, Error> {
    let table = &facts.table;
    let key = key::choose(table).ok_or_else(|| Error::refused(format!("{} has no key", table.shown())))?;
    let condition = table.columns.iter().find_map(|column| Some((suspect::soft_delete(column, "t")?, column)));
    let mut body = own_fields(facts, &key.columns, &facts.revision.name, condition.as_ref().map(|(_, column)| *column));
    let mut reads: BTreeSet<String> = condition.iter().map(|(_, column)| column.name.clone()).collect();
    reads.extend(body.iter().filter(|(entry, _)| matches!(entry, Entry::Field(_))).map(|(_, column)| column.name.clone()));
    let mut taken: Vec<String> = body.iter().filter_map(|(entry, _)| field_name_of(entry)).collect();

    let mut body: Vec<Entry> = body.drain(..).map(|(entry, _)| entry).collect();
    let (mut touches, mut unwatched): (Vec<Touch>, Vec<Unwatched>) = (Vec::new(), Vec::new());
    let judged = related::parents(facts, &mut taken);
    for judged in judged.into_iter().chain(related::children(facts, &key.columns, &mut taken)) {
        match judged {
            Ok(related) => {
                reads.extend(related.reads);
                related.touches.into_iter().for_each(|touch| add(&mut touches, touch));
                if let Some(far) = related.unwatched.filter(|far| unwatched.iter().all(|other| other.table != far.table)) {
                    unwatched.push(far);
                }
                body.push(Entry::Field(related.field));
            }
            Err(left_out) => body.push(Entry::LeftOut(left_out)),
        }
    }
    let left_out =
        body.iter().filter_map(|entry| if let Entry::LeftOut(left_out) = entry { Some(left_out.clone()) } else { None }).collect();
    let named = |name: &String| Named {
        name: name.clone(),
        quoted: table.column(name).map_or_else(|| quoted(name), |column| column.quoted.clone()),
    };
    Ok(Draft {
        collection: facts.collection.clone(),
        table: table.shown(),
        view: facts.view.clone().unwrap_or_else(|| view(facts)),
        key: key.columns.iter().map(named).collect(),
        key_why: key.why,
        watch: settings::watch(table, &reads, &key.columns, &facts.revision.name),
        revision: facts.revision.clone(),
        body,
        condition: condition.map(|(sql, _)| sql),
        touches,
        unwatched,
        scopes: settings::scopes(facts, &key.columns),
        period: settings::period(table),
        left_out,
    })
}

/// The columns of the table in their order. Catchword's own are no part of a document.
fn own_fields<'a>(facts: &'a Facts, key: &[String], revision: &str, deleted: Option<&Column>) -> Vec<(Entry, &'a Column)> {
    let table = &facts.table;
    let mut entries: Vec<(Entry, &Column)> = Vec::new();
    for column in table.columns.iter().filter(|column| column.name != revision && !column.description.starts_with("catchword")) {
        let of_foreign_key = |other: &super::facts::ForeignKey| other.relation == table.id && other.columns.contains(&column.name);
        let refers = key.contains(&column.name) || facts.foreign_keys.iter().any(of_foreign_key);
        let left_out = |why: &str| Entry::LeftOut(LeftOut { what: column.name.clone(), why: why.to_owned() });
        let entry = if deleted.is_some_and(|deleted| deleted.name == column.name) {
            left_out("the same in every document: the where below")
        } else {
            let is_taken = |name: &str| entries.iter().any(|(entry, _)| field_name_of(entry).is_some_and(|taken| taken == name));
            // what is made of a secret may give it away
            let made_of = column.made_of.iter().filter_map(|name| suspect::private(table.column(name)?)).next();
            let chosen = made_of.map_or_else(|| field::choose(column, refers), Err);
            chosen.map_or_else(left_out, |chosen| Entry::Field(own_field(&chosen, is_taken)))
        };
        entries.push((entry, column));
    }
    entries
}

fn field_name_of(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Field(field) => Some(field.name.clone()),
        Entry::LeftOut(_) => None,
    }
}

/// Two that find the same rows by the same columns are one, which watches for both.
fn add(touches: &mut Vec<Touch>, touch: Touch) {
    let same = |other: &&mut Touch| (&other.table, &other.column, &other.way) == (&touch.table, &touch.column, &touch.way);
    match touches.iter_mut().find(same) {
        // an empty list is every column
        Some(other) if other.watch.is_empty() || touch.watch.is_empty() => other.watch.clear(),
        Some(other) => {
            let more: Vec<String> = touch.watch.into_iter().filter(|name| !other.watch.contains(name)).collect();
            other.watch.extend(more);
        }
        None => touches.push(touch),
    }
}

/// In the schema of the table.
fn view(facts: &Facts) -> String {
    let name = quoted(&free(&view_names(&facts.table.name), |name| facts.taken.iter().any(|taken| taken == name)));
    let table = &facts.table;
    if table.shown() == table.quoted_name { name } else { format!("{}.{name}", table.quoted_schema) }
}
