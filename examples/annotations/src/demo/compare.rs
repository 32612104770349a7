use std::collections::BTreeMap;
use std::fmt;

use indicatif::HumanCount;

/// Keys, and the version of each: what one of the two sides has.
pub type Side = BTreeMap<String, i64>;

/// Both sides, key by key.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// How many rows the view returns.
    pub rows: usize,
    /// How many documents readers can find.
    pub documents: usize,
    /// Rows without a document.
    pub missing: Vec<String>,
    /// Documents without a row.
    pub surplus: Vec<String>,
    /// Documents of another version than their row.
    pub different: Vec<String>,
}

/// Compares both ways: each row with its document, and each document with its row.
pub fn compare(rows: &Side, documents: &Side) -> Compared {
    let mut compared = Compared { rows: rows.len(), documents: documents.len(), ..Compared::default() };
    for (key, version) in rows {
        match documents.get(key) {
            None => compared.missing.push(key.clone()),
            Some(seen) if seen != version => compared.different.push(key.clone()),
            Some(_) => {}
        }
    }
    compared.surplus = documents.keys().filter(|key| !rows.contains_key(*key)).cloned().collect();
    compared
}

impl Compared {
    /// Whether every row has its document, and every document its row.
    pub fn agree(&self) -> bool {
        self.missing.is_empty() && self.surplus.is_empty() && self.different.is_empty()
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rows, {} documents: {} missing, {} without a row, {} of another version",
            HumanCount(self.rows as u64),
            HumanCount(self.documents as u64),
            HumanCount(self.missing.len() as u64),
            HumanCount(self.surplus.len() as u64),
            HumanCount(self.different.len() as u64)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(pairs: &[(&str, i64)]) -> Side {
        pairs.iter().map(|(key, version)| (key.to_string(), *version)).collect()
    }

    #[test]
    fn equal_sides_agree() {
        let both = side(&[("a", 2), ("b", 4)]);
        let compared = compare(&both, &both);
        assert!(compared.agree());
        assert_eq!((compared.rows, compared.documents), (2, 2));
    }

    #[test]
    fn one_difference_of_any_kind_is_a_disagreement() {
        let rows = side(&[("a", 2), ("b", 4)]);
        let missing = compare(&rows, &side(&[("a", 2)]));
        let surplus = compare(&rows, &side(&[("a", 2), ("b", 4), ("c", 6)]));
        let older = compare(&rows, &side(&[("a", 2), ("b", 3)]));
        let swapped = compare(&rows, &side(&[("a", 4), ("b", 2)]));
        assert_eq!(missing.missing, ["b"]);
        assert_eq!(surplus.surplus, ["c"]);
        assert_eq!(older.different, ["b"]);
        assert_eq!(swapped.different, ["a", "b"]);
        for compared in [missing, surplus, older, swapped] {
            assert!(!compared.agree(), "{compared}");
        }
    }
}
