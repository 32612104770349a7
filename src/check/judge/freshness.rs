//! Whether the objective's allowance is spent too fast. Pure.

use super::super::Check;
use super::super::thresholds::*;
use super::words::{counted, span, unwell, well};
use crate::standing::Seen;

/// How fast is too fast: the share of slow changes in a long window, and in a short one that shows whether it goes on.
struct Burn {
    name: &'static str,
    share: f64,
    long: i64,
    short: i64,
}

const FAST: Burn =
    Burn { name: "CatchwordFreshnessBurnFast", share: BURN_FAST_SHARE, long: BURN_FAST_LONG_SECONDS, short: BURN_FAST_SHORT_SECONDS };
const SLOW: Burn =
    Burn { name: "CatchwordFreshnessBurnSlow", share: BURN_SLOW_SHARE, long: BURN_SLOW_LONG_SECONDS, short: BURN_SLOW_SHORT_SECONDS };

pub(super) fn judge(collection: &str, seen: &[Seen]) -> [Check; 2] {
    [FAST, SLOW].map(|burn| Check { collection: Some(collection.to_owned()), ..judge_one(&burn, collection, seen) })
}

fn judge_one(burn: &Burn, collection: &str, seen: &[Seen]) -> Check {
    let within = |seconds| {
        let counts = seen.iter().find(|seen| seen.collection == collection && seen.seconds == seconds);
        counts.map_or((0, 0), |seen| (seen.changes, seen.slow))
    };
    let is_too_much = |(changes, slow): (i64, i64)| slow as f64 > burn.share * changes as f64;
    let (long, short) = (within(burn.long), within(burn.short));
    let (changes, slow) = long;
    let lately = span(burn.long as f64);
    if is_too_much(long) && is_too_much(short) && slow >= BURN_CHANGES {
        let says = format!(
            "{slow} of {changes} changes of the last {lately} were seen in Elasticsearch after over {}, and it goes on",
            span(OBJECTIVE_SECONDS)
        );
        return unwell(
            burn.name,
            None,
            says,
            "catchword status says what is due and what is in the way; look at Elasticsearch's load and the worker's log",
        );
    }
    match changes {
        0 => well(burn.name, None, format!("no change was settled within {lately}")),
        _ => well(burn.name, None, format!("{slow} of {} of the last {lately} were seen late", counted(changes, "change"))),
    }
}
