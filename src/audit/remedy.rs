//! What to do about differences. Pure.

use super::{Counts, Kind};

/// How many of these a repair can schedule: all but those whose jobs were given up.
pub(super) fn repairable(counts: &Counts) -> u64 {
    Kind::ALL.into_iter().filter(|kind| *kind != Kind::Dead).map(|kind| of(counts, kind)).sum()
}

/// How many of these were given up.
pub(super) fn given_up(counts: &Counts) -> u64 {
    of(counts, Kind::Dead)
}

/// The command that schedules these. Other content is seen only by an audit that compares it.
pub(super) fn repair(collection: &str, counts: &Counts) -> String {
    let content = if of(counts, Kind::Content) > 0 { " --content" } else { "" };
    format!("catchword audit {collection}{content} --repair")
}

/// What to do about those that were given up: scheduled as they are, they would be given up again.
pub(super) fn correct(collection: &str) -> String {
    let letters = format!("catchword dead list --collection {collection}");
    format!("{letters} says why; fix the rows, then: catchword dead replay --collection {collection}")
}

/// Do documents differ under equal numbers?
pub(super) fn is_content(counts: &Counts) -> bool {
    of(counts, Kind::Content) > 0
}

fn of(counts: &Counts, kind: Kind) -> u64 {
    counts.get(kind.name()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(Kind, u64)]) -> Counts {
        counts.iter().map(|(kind, count)| (kind.name().to_owned(), *count)).collect()
    }

    #[test]
    fn a_repair_compares_the_content_if_that_is_what_differs() {
        assert_eq!(repair("note", &counts(&[(Kind::Missing, 1), (Kind::Dead, 2)])), "catchword audit note --repair");
        assert_eq!(repair("note", &counts(&[(Kind::Content, 1)])), "catchword audit note --content --repair");
    }

    #[test]
    fn what_was_given_up_and_what_is_pending_is_not_repaired() {
        let mut counts = counts(&[(Kind::Missing, 1), (Kind::Content, 2), (Kind::Dead, 4)]);
        counts.insert("pending".into(), 8);
        assert_eq!((repairable(&counts), given_up(&counts)), (3, 4));
    }
}
