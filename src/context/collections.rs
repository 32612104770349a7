//! Reads the collections: how they are attached, and whose their indices are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Context, why_not_send};
use crate::Error;
use crate::collection::{Collection, Found};
use crate::elastic::{self, Answer, Target};
use crate::health::Fault;

/// How long the check of an index may hold up a start.
const OWNERSHIP: Duration = Duration::from_secs(3);

/// Reads the collections again: targets, pauses, triggers, and whose indices they are. What is wrong is remembered and logged; the other
/// collections go on. Returns those that cannot be served, and why.
pub(crate) async fn refresh(context: &Context) -> Result<BTreeMap<String, Error>, Error> {
    let mut connection = context.pool.acquire().await?;
    let found = Found::load(&mut connection, context.config.served().collect::<Vec<_>>(), &context.prefix).await?;
    drop(connection);
    Ok(load_collections(context, found).await)
}

/// The same beside a direct write, if nobody did for a while: a service may have no loop of its own. One at a time.
pub(crate) fn refresh_in_background(context: &Arc<Context>, older_than: Duration) {
    // asked before a task is made of it: every direct write comes here
    if context.refreshed.try_lock().is_ok_and(|refreshed| refreshed.elapsed() < older_than) {
        return;
    }
    let context = context.clone();
    tokio::spawn(async move {
        if let Ok(mut refreshed) = context.refreshed.try_lock()
            && refreshed.elapsed() >= older_than
        {
            if let Err(error) = refresh(&context).await {
                tracing::debug!("the collections could not be read again: {error}");
            }
            *refreshed = Instant::now();
        }
    });
}

/// Takes in how the collections were found: asks whose their indices are, and remembers it all. Returns
/// those that cannot be served, and why.
pub(crate) async fn load_collections(context: &Context, Found { collections, mut refused, .. }: Found) -> BTreeMap<String, Error> {
    let faults = &context.health.faults;
    let mut loaded: Vec<Arc<Collection>> = collections.into_iter().map(Arc::new).collect();
    let (mut unverified, mut withheld) = (BTreeMap::new(), BTreeMap::new());
    for collection in &loaded {
        let name = &collection.name;
        let Some((readers, others)) = collection.targets.split_first() else {
            unverified.insert(name.clone(), "it has no index yet; run: catchword migrate".into());
            continue;
        };
        // an outage does not make an index another's: what was verified before it stays so
        if let Some(why) = why_not_send(context, collection).await {
            if faults.why(name, Fault::Unverified).is_some() || context.collection(name).is_none() {
                unverified.insert(name.clone(), why);
            }
            continue;
        }
        for other in others {
            if let Err(error) = check_owner(context, other, collection).await {
                withheld.insert(other.index().to_owned(), error.to_string());
            }
        }
        match check_owner(context, readers, collection).await {
            Ok(()) => note_search_alias(context, collection, readers).await,
            Err(elastic::Error::Request { answer, .. }) => {
                context.health.breakers.note(name, &answer);
                unverified.insert(name.clone(), answer.to_string());
            }
            // a rebuild has gone on since the list was read: whoever claims a batch reads it again
            Err(error) if has_other_targets(context, collection).await => {
                tracing::debug!(collection = name, "its targets are others now: {error}")
            }
            Err(error) => _ = refused.insert(name.clone(), error.into()),
        }
    }
    for collection in &loaded {
        faults.note(&collection.name, Fault::Unmigrated, collection.not_migrated());
        faults.note(&collection.name, Fault::SchemaNotServed, collection.not_served());
        if collection.targets.len() < 2 {
            faults.note(&collection.name, Fault::Lagging, None);
        }
    }
    loaded.retain(|collection| !refused.contains_key(&collection.name));
    faults.note_all(Fault::NotServed, &refused.iter().map(|(name, why)| (name.clone(), why.to_string())).collect());
    faults.note_all(Fault::Unverified, &unverified);
    let mut known = context.known();
    known.collections = loaded.into_iter().map(|collection| (collection.name.clone(), collection)).collect();
    known.withheld = withheld;
    refused
}

/// Takes note whether it is found under its search alias. Nothing waits for that: its own readers do not need it.
async fn note_search_alias(context: &Context, collection: &Collection, readers: &Target) {
    let Collection { name, search_alias, installation, .. } = collection;
    let problem = match search_alias {
        Some(alias) => {
            let shown = context.elastic.is_shown_in_search_alias(alias, readers, name, *installation);
            match tokio::time::timeout(OWNERSHIP, shown).await {
                // no answer says nothing of the alias
                Err(_) | Ok(Err(elastic::Error::Request { .. })) => return,
                Ok(shown) => shown.err(),
            }
        }
        None => None,
    };
    context.health.faults.note(name, Fault::NotShown, problem.map(|problem| problem.to_string()));
}

/// Has its list of targets changed since it was read?
async fn has_other_targets(context: &Context, collection: &Collection) -> bool {
    let current = async { collection.targets_are_current(&mut *context.pool.acquire().await?).await };
    current.await.is_ok_and(|current| !current)
}

/// Is this index of the collection ours?
async fn check_owner(context: &Context, target: &Target, collection: &Collection) -> Result<(), elastic::Error> {
    let asked = context.elastic.belongs(target, &collection.targets, &collection.alias, collection.installation);
    tokio::time::timeout(OWNERSHIP, asked).await.unwrap_or_else(|_| {
        let doing = format!("ask whose index {} is", target.index());
        Err(elastic::Error::Request { doing, answer: Answer::Unknown("no answer within 3 s".into()) })
    })
}
