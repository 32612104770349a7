//! Tables that cannot be attached: said here as `migrate` says it, before anybody has written a view for one. Pure.

use super::facts::{Facts, Relation};
use super::key;
use super::names::quoted;
use crate::Error;

/// The name is also that of the files.
pub(super) fn refuse_name(name: Option<&str>) -> Result<(), Error> {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match name {
        Some(name) if !(name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(rest) && name.len() <= 40) => {
            Err(Error::refused_with(
                format!("{name:?} cannot be the name of a collection"),
                "use a lower-case letter, then up to 39 letters, digits and underscores",
            ))
        }
        _ => Ok(()),
    }
}

pub(super) fn refuse(facts: &Facts) -> Result<(), Error> {
    let table = &facts.table;
    let reason = what_it_is(table).or_else(|| no_key(table)).or_else(|| no_column(facts)).or_else(|| late_trigger(facts));
    reason.map_or(Ok(()), |(what, remedy)| Err(Error::refused_with(what, remedy)))
}

type Reason = Option<(String, String)>;

fn what_it_is(table: &Relation) -> Reason {
    let name = table.shown();
    let reason = |what: &str, remedy: &str| Some((format!("{name} {what}"), remedy.to_owned()));
    if ["pg_catalog", "information_schema", "pg_toast", "catchword"].contains(&table.schema.as_str()) {
        return reason("belongs to Postgres or to catchword", "name a table of your own");
    }
    if let Some(whole) = &table.partition_of {
        return Some((format!("{name} is a partition of {whole}"), format!("name the whole table: catchword init {whole}")));
    }
    match (table.kind.as_str(), table.persistence.as_str()) {
        ("r" | "p", "p") if table.inherits => {
            reason("inherits or is inherited from, and such tables cannot be attached yet", "attach a plain table")
        }
        ("r" | "p", "p") if table.hides_rows => Some((
            format!("row security of {name} applies to the role {}, and a hidden row would look deleted", table.reader),
            format!(
                "leave row security on, and let the owner of the table run this and catchword migrate; or run: alter role {} bypassrls",
                table.reader
            ),
        )),
        ("r" | "p", "p") => None,
        ("r" | "p", _) => reason("is temporary or unlogged: its rows do not survive a crash", "attach a permanent table"),
        _ => reason(
            "is not a plain table",
            "name the table that holds the rows; views and foreign tables have no triggers that could be trusted",
        ),
    }
}

fn no_key(table: &Relation) -> Reason {
    if key::choose(table).is_some() {
        return None;
    }
    let name = table.shown();
    let may_be = "a key is of type uuid, bigint, integer, smallint, text, varchar, char, citext, numeric or date, or a domain over one of these; never null, \
                  and unique for all rows at once (not deferrable, not partial)";
    let primary = table.indexes.iter().find(|index| index.is_primary);
    let what = match primary {
        Some(index) => format!("the primary key of {name} ({}) cannot name documents", index.columns.join(", ")),
        None => format!("{name} has no key: no column that is unique and never null"),
    };
    let remedy = format!(
        "{may_be}; for instance: alter table {name} add column id bigint generated always as identity primary key, \
                          which rewrites the table"
    );
    let remedy = if primary.is_some() { format!("{may_be}; add a column that is") } else { remedy };
    Some((what, remedy))
}

/// A composite key's columns stand in the view beside `revision` and `body`.
fn no_column(facts: &Facts) -> Reason {
    let (table, revision) = (&facts.table, &facts.revision.name);
    let name = table.shown();
    let keys = key::choose(table).map(|key| key.columns).unwrap_or_default();
    if let Some(column) = keys.iter().find(|column| keys.len() > 1 && ["revision", "body"].contains(&column.as_str())) {
        return Some((format!("the key of {name} has a column {column}, and so has every view"), "add a key of one column".into()));
    }
    let column = table.column(revision)?;
    let quoted = &column.quoted;
    if !column.description.starts_with("catchword") {
        return Some((
            format!("{name} has a column {quoted} that catchword did not make"),
            format!(
                "choose another name with --revision NAME; if it is meant for catchword, which then overwrites what is in it, \
                 say so: comment on column {name}.{quoted} is 'catchword: revision'"
            ),
        ));
    }
    (column.type_name != "bigint" || column.not_null || column.is_generated).then(|| {
        (
            format!("the column {name}.{quoted} is not what catchword needs"),
            "it must be bigint, nullable, with no default: drop it".to_owned(),
        )
    })
}

fn late_trigger(facts: &Facts) -> Reason {
    let ours = format!("zzz_catchword_{}_revision", facts.collection);
    let (trigger, name) = (facts.table.triggers.iter().find(|trigger| **trigger > ours)?, facts.table.shown());
    Some((
        format!("the trigger {trigger} on {name} fires after {ours}"),
        format!(
            "BEFORE ROW triggers fire in the order of their names, and ours must be last: alter trigger {} on {name} rename to \"…\"",
            quoted(trigger)
        ),
    ))
}
