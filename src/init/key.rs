//! Which columns name a row. Pure.

use super::facts::{Column, Index, Relation};

/// The columns of the key, and why they were chosen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub columns: Vec<String>,
    pub why: &'static str,
}

/// Types that a key may have, by their names in pg_type; domains over them too.
const TYPES: &[&str] = &["uuid", "int8", "int4", "int2", "text", "varchar", "bpchar", "citext", "numeric", "date"];

/// The primary key, or else the shortest one that is unique and never null.
pub(super) fn choose(table: &Relation) -> Option<Key> {
    let fits = |index: &&Index| {
        index.is_unique && index.columns.len() <= 8 && index.columns.iter().all(|name| table.column(name).is_some_and(can_be_key))
    };
    let found = table.indexes.iter().filter(fits).min_by_key(|index| (!index.is_primary, index.columns.len()))?;
    let why = if found.is_primary { "the primary key" } else { "unique and never null; the table has no primary key that could serve" };
    Some(Key { columns: found.columns.clone(), why })
}

pub(super) fn can_be_key(column: &Column) -> bool {
    column.not_null && !column.loose_collation && !column.is_array && TYPES.contains(&column.base.as_str()) && !column.name.contains("$f$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(indexes: &[(bool, bool, &[&str])]) -> Relation {
        let column = |name: &str, base: &str, not_null| Column { name: name.into(), base: base.into(), not_null, ..Column::default() };
        let index = |(is_primary, is_unique, columns): &(bool, bool, &[&str])| Index {
            is_primary: *is_primary,
            is_unique: *is_unique,
            finds_equals: true,
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        };
        let columns = vec![
            column("id", "int8", true),
            column("tenant", "uuid", true),
            column("code", "text", false),
            column("at", "timestamptz", true),
        ];
        Relation { columns, indexes: indexes.iter().map(index).collect(), ..Relation::default() }
    }

    fn chosen(indexes: &[(bool, bool, &[&str])]) -> Option<Vec<String>> {
        choose(&table(indexes)).map(|key| key.columns)
    }

    #[test]
    fn the_primary_key_comes_first_whatever_it_is_made_of() {
        assert_eq!(chosen(&[(false, true, &["tenant"]), (true, true, &["tenant", "id"])]).unwrap(), ["tenant", "id"]);
        assert_eq!(chosen(&[(false, true, &["tenant", "id"]), (false, true, &["id"])]).unwrap(), ["id"]);
    }

    #[test]
    fn what_may_be_null_or_is_deferred_or_of_a_type_with_many_texts_is_no_key() {
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[(true, false, &["id"])]), None);
        assert_eq!(chosen(&[(false, true, &["code"])]), None);
        assert_eq!(chosen(&[(true, true, &["at"])]), None);
        assert_eq!(chosen(&[(false, true, &[""])]), None);
        assert_eq!(chosen(&[(true, true, &["at"]), (false, true, &["id"])]).unwrap(), ["id"]);
    }
}
