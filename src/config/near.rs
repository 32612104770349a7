use super::error::Fault;

/// Guesses what was meant by a key that does not exist, or lists those that do.
pub(super) fn unknown_key<'k>(key: &str, known: impl Iterator<Item = &'k str> + Clone) -> Fault {
    const OUTSIDE: &[&str] = &["url", "password", "api_key", "host", "prefix", "database"];
    let near = known
        .clone()
        .map(|known| (distance(key, known), known))
        .filter(|(distance, known)| *distance <= 2 && 2 * *distance <= known.len())
        .min();
    let remedy = match near {
        Some((_, near)) => format!("did you mean {near}?"),
        None if OUTSIDE.iter().any(|word| key.to_ascii_lowercase().contains(word)) => {
            "addresses and secrets come from the environment: set DATABASE_URL, ELASTICSEARCH_URL \
             and CATCHWORD_INDEX_PREFIX"
                .to_owned()
        }
        None => format!("the keys here are: {}", listed(known)),
    };
    Fault::new("is not a known key", remedy)
}

pub(super) fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Levenshtein's: how many letters to add, drop or replace.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_guessed_and_others_get_the_list() {
        let known = ["table", "view", "scopes"];
        let remedy = |key| unknown_key(key, known.into_iter()).remedy;
        assert_eq!(remedy("scope"), "did you mean scopes?");
        assert_eq!(remedy("tabel"), "did you mean table?");
        assert_eq!(remedy("Views"), "did you mean view?");
        assert_eq!(unknown_key("new", ["key"].into_iter()).remedy, "the keys here are: key");
        assert_eq!(remedy("frequency"), "the keys here are: table, view, scopes");
        assert!(remedy("elasticsearch_password").contains("the environment"));
    }

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
