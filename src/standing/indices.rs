//! What Elasticsearch says: whether it answers, how many documents readers see, whether the indices are ours and as they should be.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::{CollectionStanding, Standing};
use crate::collection::Collection;
use crate::context::Context;
use crate::drift::{self, Due};
use crate::elastic::{self, Answer};

/// Elasticsearch is not waited for longer: somebody looks at a screen, and cron and Nagios give up after ten seconds.
pub(crate) const ELASTICSEARCH: Duration = Duration::from_secs(3);

/// Why Elasticsearch does not answer; none: it does.
pub(crate) async fn why_silent(context: &Context) -> Option<String> {
    match context.elastic.is_there(ELASTICSEARCH).await {
        Ok(()) => None,
        Err(Answer::Unknown(why)) if why == "no answer in time" => Some("it does not answer within 3 s".into()),
        Err(answer) => Some(elastic::Error::Request { doing: "reach elasticsearch".into(), answer }.to_string()),
    }
}

/// How many documents readers of an alias see, or why that is not known.
pub(crate) async fn document_count(context: &Context, alias: &str) -> Result<u64, String> {
    match timeout(ELASTICSEARCH, context.elastic.document_count(alias)).await {
        Ok(counted) => counted.map_err(|error| error.to_string()),
        Err(_) => Err("elasticsearch does not answer within 3 s".into()),
    }
}

impl Standing {
    /// Asks what changed since the indices were filled, of all that are attached.
    pub async fn read_drift(&mut self, context: &Context, limit: Duration) {
        let asked = self.collections.iter().map(|collection| async {
            let shown = timeout(limit, not_shown(context, collection));
            let (due, shown) = tokio::join!(due(context, collection, limit), shown);
            (due, shown.ok().flatten())
        });
        let answers = join_all(asked).await;
        for (collection, (due, not_shown)) in self.collections.iter_mut().zip(answers) {
            (collection.drift, collection.not_shown) = (due, not_shown);
        }
    }

    /// The same as far as Postgres alone tells it.
    pub fn take_drift_of_views(&mut self) {
        for collection in &mut self.collections {
            collection.drift = collection.attached.as_ref().and_then(|attached| drift::of_view(attached).what_is_due());
        }
    }

    /// Asks what changed, and at the same time whether the indices and aliases are as they must be: a worker may have stopped before it
    /// could say so.
    pub async fn read_drift_and_indices(&mut self, context: &Context) {
        let asked = self.collections.iter().map(|collection| async {
            tokio::join!(due(context, collection, ELASTICSEARCH), trouble(context, collection), not_shown(context, collection))
        });
        let answers = join_all(asked).await;
        for (collection, (due, trouble, not_shown)) in self.collections.iter_mut().zip(answers) {
            (collection.drift, collection.not_shown) = (due, not_shown);
            collection.problem = collection.problem.take().or(trouble);
        }
    }
}

/// If Elasticsearch does not say how the index is mapped, what Postgres says of the view is told all the same.
async fn due(context: &Context, collection: &CollectionStanding, limit: Duration) -> Option<Due> {
    let attached = collection.attached.as_ref()?;
    let config = context.config.served().find(|config| config.name == collection.name)?;
    match timeout(limit, drift::of_attached(context, config, attached)).await {
        Ok(Ok(drift)) => drift.what_is_due(),
        _ => drift::of_view(attached).what_is_due(),
    }
}

async fn trouble(context: &Context, collection: &CollectionStanding) -> Option<String> {
    let Collection { targets, alias, installation, .. } = collection.attached.as_ref().filter(|_| collection.problem.is_none())?;
    for target in targets {
        match timeout(ELASTICSEARCH, context.elastic.belongs(target, targets, alias, *installation)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Some(error.to_string()),
            Err(_) => return Some(format!("elasticsearch does not say within 3 s whose index {} is", target.index())),
        }
    }
    targets.is_empty().then(|| "it has no index yet; run: catchword migrate".into())
}

/// Its own alias is told first: where that is lost, so is the index.
async fn not_shown(context: &Context, collection: &CollectionStanding) -> Option<String> {
    let Collection { name, targets, search_alias, installation, .. } =
        collection.attached.as_ref().filter(|_| collection.problem.is_none())?;
    let (alias, readers) = (search_alias.as_ref()?, targets.first()?);
    match timeout(ELASTICSEARCH, context.elastic.is_shown_in_search_alias(alias, readers, name, *installation)).await {
        Ok(Ok(())) => None,
        // no answer says nothing of the alias, and is told of the index
        Err(_) | Ok(Err(elastic::Error::Request { .. })) => None,
        Ok(Err(error)) => Some(error.to_string()),
    }
}
