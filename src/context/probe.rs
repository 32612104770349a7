//! One small request that finds out whether an open breaker can close. It never runs inside a caller's write.

use std::sync::Arc;
use std::time::Duration;

use super::Context;
use crate::collection::Collection;
use crate::elastic::{Answer, Elastic, Has, Target};
use crate::health::{Scope, State};

/// A probe that takes longer has failed.
const PROBE: Duration = Duration::from_secs(3);
/// No collection has this key; asking for it says whether the index answers.
const NO_KEY: &str = "catchword-probe";
/// Nor this one, by which the cluster is probed.
const NO_CLUSTER_KEY: &str = "catchword-cluster-probe";

/// Why nothing may be sent for this collection now. Runs the probe if one is due.
pub(crate) async fn why_not_send(context: &Context, collection: &Collection) -> Option<String> {
    let breakers = &context.health.breakers;
    for scope in [Scope::Cluster, Scope::Collection(&collection.name)] {
        match breakers.state(scope) {
            State::Closed => {}
            State::Open(why) => return Some(why),
            State::ProbeDue => {
                if !breakers.take_probe(scope) {
                    return Some("a probe is under way".into());
                }
                if let Err(why) = probe(context, scope, collection).await {
                    breakers.probe_failed(scope, &why);
                    return Some(why);
                }
                breakers.closed(scope);
            }
        }
    }
    None
}

/// Probes in the background, if a probe is due: for a direct write, which does not wait for it.
pub(crate) fn probe_in_background(context: &Arc<Context>, collection: &Arc<Collection>) {
    let due = |scope| context.health.breakers.state(scope) == State::ProbeDue;
    if due(Scope::Cluster) || due(Scope::Collection(&collection.name)) {
        let (context, collection) = (context.clone(), collection.clone());
        tokio::spawn(async move { why_not_send(&context, &collection).await });
    }
}

async fn probe(context: &Context, scope: Scope<'_>, collection: &Collection) -> Result<(), String> {
    match scope {
        Scope::Cluster => cluster_answers(&context.elastic, collection.readers_target()).await,
        Scope::Collection(_) => {
            let Some(target) = collection.readers_target() else { return Ok(()) };
            answers_to_a_look(&context.elastic, target).await
        }
    }
}

/// A look, which is what every user of ours may do on every server; whatever it tells of the index. Where the index alone gives no answer, the
/// cluster is asked for nothing at all: one sick index must not keep the others waiting.
async fn cluster_answers(elastic: &Elastic, target: Option<&Target>) -> Result<(), String> {
    let looked = match target {
        Some(target) => elastic.look(target, &[NO_CLUSTER_KEY], PROBE).await.map(|_| ()),
        None => elastic.is_there(PROBE).await,
    };
    match looked {
        Ok(()) | Err(Answer::Blocked(_) | Answer::Overloaded(_)) => Ok(()),
        Err(Answer::Unknown(_) | Answer::Unavailable(_)) => elastic.is_there(PROBE).await.map_err(|answer| answer.to_string()),
        Err(answer) => Err(answer.to_string()),
    }
}

/// What a request without an answer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Look,
    Bulk,
}

/// Does this index answer to a small request of the kind that it just gave no answer to? If it does, that request is why, and no outage.
pub(crate) async fn index_answers(context: &Context, target: &Target, asked: Asked) -> bool {
    match asked {
        Asked::Look => answers_to_a_look(&context.elastic, target).await.is_ok(),
        Asked::Bulk => context.elastic.answers_to_a_bulk(target, PROBE).await.is_ok(),
    }
}

async fn answers_to_a_look(elastic: &Elastic, target: &Target) -> Result<(), String> {
    let seen = elastic.look(target, &[NO_KEY], PROBE).await.map_err(|answer| answer.to_string())?;
    match seen.into_iter().next() {
        Some(Has::Unknown(why)) => Err(why),
        _ => Ok(()),
    }
}
