//! The canary: a row that is changed each minute and followed until search shows it, beside the loop that carries it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::collection::Collection;
use crate::config::CANARY;
use crate::context::Context;
use crate::elastic::Has;
use crate::{Error, metrics};

/// Its key.
const KEY: &str = "1";
/// Somebody stirs it this often; just below a minute, so that a tick that comes early does not miss its turn.
pub(super) const EVERY: Duration = Duration::from_secs(55);
/// A beat that is not seen by then counts as this late, so that each minute of an outage is a bad sample and not none.
const GIVEN_UP: Duration = Duration::from_secs(61);
/// The limit of one question.
const ASK: Duration = Duration::from_secs(3);

/// How far a beat has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Elasticsearch has it.
    Indexed,
    /// Search shows it.
    Searchable,
}

impl Stage {
    /// In their order.
    const ALL: [Stage; 2] = [Stage::Indexed, Stage::Searchable];

    /// As metrics show it.
    fn name(self) -> &'static str {
        match self {
            Stage::Indexed => "indexed",
            Stage::Searchable => "searchable",
        }
    }
}

/// Changes the canary, if nobody did within the minute, and follows it in a task of its own.
pub(super) async fn stir_canary(context: &Arc<Context>) -> Result<(), Error> {
    let Some(collection) = context.collection(CANARY).filter(|canary| canary.paused.is_none()) else {
        return Ok(());
    };
    let stirred: Option<i64> = sqlx::query_scalar(include_str!("stir_canary.sql")).fetch_one(&context.pool).await?;
    if let Some(revision) = stirred {
        let (context, committed) = (context.clone(), Instant::now());
        tokio::spawn(async move { follow_canary(&context, &collection, revision, committed).await });
    }
    Ok(())
}

async fn follow_canary(context: &Context, collection: &Arc<Collection>, revision: i64, committed: Instant) {
    for stage in Stage::ALL {
        while !canary_is(context, stage, collection, revision).await && committed.elapsed() < GIVEN_UP {
            // so that what is measured is at most a tenth too long
            sleep((committed.elapsed() / 10).clamp(Duration::from_millis(2), Duration::from_secs(5))).await;
        }
        metrics::record_canary(stage.name(), committed.elapsed());
    }
}

/// An open breaker is respected: a canary is no probe.
async fn canary_is(context: &Context, stage: Stage, collection: &Arc<Collection>, revision: i64) -> bool {
    if context.health.breakers.why(CANARY).is_some() {
        return false;
    }
    match stage {
        Stage::Indexed => match collection.targets.first() {
            Some(target) => {
                let seen = context.elastic.look(target, &[KEY], ASK).await;
                seen.is_ok_and(|seen| matches!(seen.first(), Some(Has::Present(version)) if *version >= revision))
            }
            None => false,
        },
        Stage::Searchable => {
            let found = tokio::time::timeout(ASK, context.elastic.searchable_version(&collection.alias, KEY)).await;
            matches!(found, Ok(Ok(Some(version))) if version >= revision)
        }
    }
}
