//! What an index and a search show of a key, compared with the revision that is waited for. Pure.

use crate::elastic::Has;

/// What a look at the readers' index came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Not there yet, and what is.
    NotYet(String),
    /// It is there, under this version; none: nothing is wanted, and nothing is there.
    There(Option<i64>),
    /// Something later is there.
    Later(i64),
}

/// An odd version is a delete's, or that of a row which the view hides.
fn is_tombstone(version: i64) -> bool {
    version % 2 != 0
}

/// Looks at what the index has. A row at `n` is there as a document under `n`, or as a tombstone under `n + 1` if the view hides it: both
/// numbers are this row's alone. A delete is there under its own number.
pub(super) fn seen(revision: Option<i64>, has: &Has) -> Seen {
    match (revision, has) {
        (_, Has::Unknown(why)) => Seen::NotYet(why.clone()),
        (None, Has::Absent) => Seen::There(None),
        (None, Has::Present(version)) if is_tombstone(*version) => Seen::There(Some(*version)),
        (None, Has::Present(_)) => Seen::NotYet("the index has a document for which there is no row".into()),
        // not enough for a delete either: a late write of the deleted row could still come
        (Some(_), Has::Absent) => Seen::NotYet("it is not in the index yet".into()),
        (Some(revision), Has::Present(version)) if *version < revision => Seen::NotYet("the index has an older one".into()),
        (Some(revision), Has::Present(version)) if *version == revision => Seen::There(Some(*version)),
        (Some(revision), Has::Present(version)) if !is_tombstone(revision) && *version == revision + 1 => Seen::There(Some(*version)),
        (Some(_), Has::Present(version)) => Seen::Later(*version),
    }
}

/// Is a later version that of a later write? Otherwise nobody committed it: the index is ahead of Postgres.
pub(super) fn is_committed(version: i64, revision_now: Option<i64>) -> bool {
    revision_now.is_some_and(|now| version <= now + i64::from(!is_tombstone(now)))
}

/// Does search show what the index has under this version (none: nothing)? `found` is the version that search shows. What is gone must not
/// be found; of a document that one, or a later one.
pub(super) fn is_shown(version: Option<i64>, found: Option<i64>) -> bool {
    match version {
        Some(version) if !is_tombstone(version) => found.is_some_and(|found| found >= version),
        _ => found.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let not_yet = |revision, has| matches!(seen(revision, &has), Seen::NotYet(_));
        // a row at 8: its document, or its tombstone if the view hides it
        assert!(not_yet(Some(8), Has::Absent) && not_yet(Some(8), Has::Present(7)) && not_yet(Some(8), Has::Unknown("closed".into())));
        assert_eq!(seen(Some(8), &Has::Present(8)), Seen::There(Some(8)));
        assert_eq!(seen(Some(8), &Has::Present(9)), Seen::There(Some(9)));
        assert_eq!(seen(Some(8), &Has::Present(10)), Seen::Later(10));
        // a delete at 13: what is above it is another life of the key
        assert!(not_yet(Some(13), Has::Absent) && not_yet(Some(13), Has::Present(12)));
        assert_eq!(seen(Some(13), &Has::Present(13)), Seen::There(Some(13)));
        assert_eq!(seen(Some(13), &Has::Present(14)), Seen::Later(14));
        // never
        assert_eq!(seen(None, &Has::Absent), Seen::There(None));
        assert_eq!(seen(None, &Has::Present(5)), Seen::There(Some(5)));
        assert!(not_yet(None, Has::Present(4)));
    }

    #[test]
    fn what_is_later_was_committed_or_the_index_is_ahead() {
        assert!(is_committed(12, Some(12)) && is_committed(13, Some(12)) && is_committed(12, Some(16)) && is_committed(13, Some(13)));
        assert!(!is_committed(14, Some(12)) && !is_committed(14, Some(13)) && !is_committed(12, None));
    }

    #[test]
    fn search_shows_a_document_or_no_longer_finds_it() {
        assert!(is_shown(Some(8), Some(8)) && is_shown(Some(8), Some(12)));
        assert!(!is_shown(Some(8), Some(4)) && !is_shown(Some(8), None));
        assert!(is_shown(Some(9), None) && !is_shown(Some(9), Some(8)));
        assert!(is_shown(None, None) && !is_shown(None, Some(4)));
    }
}
