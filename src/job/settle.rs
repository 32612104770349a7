//! Deletes jobs that a look has satisfied, and counts what the batch did.

use sqlx::PgConnection;

use crate::{Error, crash};

/// Where the buckets begin, in seconds; each reaches √2 times as far as the one before. `catchword.percentile` reads them.
const FIRST_BUCKET: f64 = 0.01;
/// The last one has whatever took longer than about three hours.
const LAST_BUCKET: usize = 40;

/// Of settled jobs, those that say how fresh search is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fresh {
    /// Live writes.
    pub changes: i64,
    /// Live writes that were seen later than the objective says.
    pub slow: i64,
    /// All of them, by how long it took.
    pub buckets: Vec<i64>,
}

impl Fresh {
    /// Counts a change that was seen after so many seconds.
    pub fn count(&mut self, seconds: f64, objective: f64) {
        let bucket = bucket(seconds);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.changes += 1;
        self.slow += i64::from(seconds > objective);
    }
}

fn bucket(seconds: f64) -> usize {
    // a number that is none, or below the first, is in the first
    let place = (2.0 * (seconds / FIRST_BUCKET).log2()).ceil();
    (place.max(0.0) as usize).min(LAST_BUCKET)
}

/// What else a batch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Did {
    /// Documents and tombstones that Elasticsearch applied.
    pub written: i64,
    pub pushed_back: i64,
    pub buried: i64,
    pub fresh: Fresh,
}

/// Deletes these claimed jobs of a collection, and the dead letters of their keys, and counts what the batch did.
pub async fn settle(connection: &mut PgConnection, collection: &str, ids: &[i64], did: &Did) -> Result<(), Error> {
    if !ids.is_empty() || did.written + did.pushed_back + did.buried > 0 {
        let Did { written, pushed_back, buried, fresh } = did;
        let settling = sqlx::query(include_str!("settle.sql")).bind(ids).bind(collection).bind(fresh.changes).bind(fresh.slow);
        settling.bind(&fresh.buckets).bind(written).bind(pushed_back).bind(buried).execute(connection).await?;
    }
    if !ids.is_empty() {
        crash::point("settled-before-commit");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_counted_in_the_first_bucket_that_reaches_as_far() {
        for (seconds, place) in
            [(-1.0, 0), (0.0, 0), (0.01, 0), (0.011, 1), (0.014, 1), (0.015, 2), (0.02, 2), (0.04, 4), (1.0, 14), (300.0, 30), (1e9, 40)]
        {
            assert_eq!(bucket(seconds), place, "{seconds}");
        }
        let mut fresh = Fresh::default();
        [0.04, 0.015, 0.04].into_iter().for_each(|seconds| fresh.count(seconds, 0.03));
        assert_eq!(fresh, Fresh { changes: 3, slow: 2, buckets: vec![0, 0, 1, 0, 2] });
    }
}
