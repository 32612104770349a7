//! The decision: what Postgres wants and what Elasticsearch has come down to one number each. Pure; no client, no clock.
//!
//! | Postgres wants | Elasticsearch has | verdict | write | job |
//! |---|---|---|---|---|
//! | present at v | v | [`Verdict::Current`] | – | satisfied |
//! | present at v | nothing | [`Verdict::Missing`] | document v | left |
//! | present at v | lower | [`Verdict::Stale`] | document v | left |
//! | gone at n | n, or a higher tombstone | [`Verdict::Gone`] | – | satisfied |
//! | gone at n | nothing | [`Verdict::Untold`] | tombstone n | left |
//! | gone at n | lower | [`Verdict::Orphan`] | tombstone n | left |
//! | never | nothing, or a tombstone | [`Verdict::Gone`] | – | satisfied |
//! | never | live | [`Verdict::Orphan`] | a number is recorded; the tombstone by the next pass | left |
//! | present at v, gone at n | higher (and live, for gone) | [`Verdict::Ahead`] | the row draws a higher number | left, attempt charged |
//! | any | unknown | [`Verdict::Unknown`] | – | left, looked at again soon |

use crate::collection::Want;
use crate::elastic::Has;

/// What a look at both sides came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// Neither side has it, and Elasticsearch was told.
    Gone,
    /// Elasticsearch has a document that Postgres does not want.
    Orphan,
    /// Postgres deleted it and Elasticsearch has nothing. Not `Gone`: a delayed write of the deleted row would recreate the document for good.
    Untold,
    /// Postgres has it, Elasticsearch does not.
    Missing,
    /// Elasticsearch has an older one.
    Stale,
    /// Both sides agree.
    Current,
    /// Elasticsearch has a newer one than was ever committed here: a restore lost commits, or somebody wrote to the index.
    Ahead,
    /// Elasticsearch could not say.
    Unknown,
}

/// An odd version is a delete's.
fn is_tombstone(version: i64) -> bool {
    version % 2 != 0
}

/// Compares what Postgres wants of a key with what one index has.
pub fn compare(want: Want, has: &Has) -> Verdict {
    use Verdict::*;
    let seen = match has {
        Has::Unknown(_) => return Unknown,
        Has::Present(version) => Some(*version),
        Has::Absent => None,
    };
    match (want, seen) {
        (Want::Present(_), None) => Missing,
        (Want::Present(v), Some(seen)) if seen == v => Current,
        (Want::Present(v), Some(seen)) if seen < v => Stale,
        (Want::Present(_), Some(_)) => Ahead,
        (Want::Hidden(_) | Want::Deleted(_), None) => Untold,
        (Want::Hidden(n) | Want::Deleted(n), Some(seen)) if seen < n => Orphan,
        (Want::Hidden(n) | Want::Deleted(n), Some(seen)) if seen == n || is_tombstone(seen) => Gone,
        (Want::Hidden(_) | Want::Deleted(_), Some(_)) => Ahead,
        (Want::Never, None) => Gone,
        (Want::Never, Some(seen)) if is_tombstone(seen) => Gone,
        (Want::Never, Some(_)) => Orphan,
    }
}

impl Verdict {
    /// All of them, in the order of the table.
    pub const ALL: [Verdict; 8] = [
        Verdict::Current,
        Verdict::Missing,
        Verdict::Stale,
        Verdict::Gone,
        Verdict::Untold,
        Verdict::Orphan,
        Verdict::Ahead,
        Verdict::Unknown,
    ];

    /// Did this look see both sides agree?
    pub fn is_satisfied(self) -> bool {
        matches!(self, Verdict::Current | Verdict::Gone)
    }

    /// The word for it, in metrics and for people.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Gone => "gone",
            Verdict::Orphan => "orphan",
            Verdict::Untold => "untold",
            Verdict::Missing => "missing",
            Verdict::Stale => "stale",
            Verdict::Current => "current",
            Verdict::Ahead => "ahead",
            Verdict::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table above, row by row. 10 and 20 are rows' numbers, 11 and 21 are deletes'.
    #[test]
    fn the_truth_table_holds() {
        use Verdict::*;
        let unknown = Has::Unknown("closed".into());
        let table: [(Want, Has, Verdict); 24] = [
            (Want::Present(10), Has::Present(10), Current),
            (Want::Present(10), Has::Absent, Missing),
            (Want::Present(10), Has::Present(8), Stale),
            (Want::Present(10), Has::Present(9), Stale),
            (Want::Present(10), Has::Present(20), Ahead),
            (Want::Present(10), Has::Present(11), Ahead),
            (Want::Present(10), unknown.clone(), Unknown),
            (Want::Deleted(11), Has::Present(11), Gone),
            (Want::Deleted(11), Has::Present(21), Gone),
            (Want::Deleted(11), Has::Absent, Untold),
            (Want::Deleted(11), Has::Present(10), Orphan),
            (Want::Deleted(11), Has::Present(9), Orphan),
            (Want::Deleted(11), Has::Present(20), Ahead),
            (Want::Deleted(11), unknown.clone(), Unknown),
            (Want::Hidden(11), Has::Present(11), Gone),
            (Want::Hidden(11), Has::Present(21), Gone),
            (Want::Hidden(11), Has::Absent, Untold),
            (Want::Hidden(11), Has::Present(10), Orphan),
            (Want::Hidden(11), Has::Present(20), Ahead),
            (Want::Hidden(11), unknown.clone(), Unknown),
            (Want::Never, Has::Absent, Gone),
            (Want::Never, Has::Present(11), Gone),
            (Want::Never, Has::Present(10), Orphan),
            (Want::Never, unknown, Unknown),
        ];
        for (want, has, verdict) in table {
            assert_eq!(compare(want, &has), verdict, "{want:?} against {has:?}");
        }
    }

    #[test]
    fn only_agreement_satisfies() {
        let satisfied: Vec<_> = Verdict::ALL.into_iter().filter(|v| v.is_satisfied()).collect();
        assert_eq!(satisfied, [Verdict::Current, Verdict::Gone]);
    }
}
