//! What must be so before anything is changed. Each refusal is a sentence that says what to do.

use serde::Serialize;
use serde_json::Value;

use super::{Rebuild, Request, row};
use crate::collection::{self, Collection};
use crate::context::{Context, index_plan};
use crate::elastic::{self, IndexPlan, Room, Target};
use crate::{Error, crash, reindex};

/// What a rebuild would do.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    pub collection: String,
    pub alias: String,
    pub old_index: String,
    pub new_index: String,
    /// Keys that would be scheduled; none: more than could be counted.
    pub keys: Option<i64>,
    /// Has the view changed since the index was filled? Then everything is written again, to both.
    pub rewrite: bool,
    /// Null: the server does not tell how full its disks are.
    pub room: Option<Room>,
    #[serde(skip)]
    mapping: Value,
}

/// Looks at everything that could stand in the way, and changes nothing.
pub(crate) async fn plan_rebuild(context: &Context, request: &Request) -> Result<Plan, Error> {
    let (collection, plan) = rebuildable(context, request).await?;
    let Some(old) = collection.readers_target().cloned() else {
        return Err(Error::refused_with(format!("collection {} has no index yet", collection.name), "run: catchword migrate"));
    };
    check_alias(context, &collection, &plan, &old).await?;
    let room = room(context, &old).await?;
    if let Some(room) = room.filter(|room| !room.is_enough()) {
        return Err(Error::refused_with(
            format!(
                "a second copy of {old} takes {}, and {} can be written before the disks are full",
                bytes(room.needed),
                bytes(room.free)
            ),
            "make room, or add a node",
        ));
    }
    let rewrite = collection.view_changed;
    let keys = reindex::Request { collection: collection.name.clone(), hidden: true, ..reindex::Request::default() };
    Ok(Plan {
        keys: reindex::count(&context.pool, &keys).await?,
        new_index: context.elastic.next_index(&collection.alias, &old).await?.index().to_owned(),
        old_index: old.index().to_owned(),
        collection: collection.name,
        alias: collection.alias,
        rewrite,
        room,
        mapping: plan.mapping,
    })
}

/// None: this server does not tell, or not to us. Then nobody is kept from it: it is logged, and shown by a dry run.
async fn room(context: &Context, old: &Target) -> Result<Option<Room>, Error> {
    match context.elastic.room_beside(old).await {
        Ok(room) => Ok(Some(room)),
        Err(error) if error.is_not_offered() => {
            tracing::warn!("whether there is room for a second copy of {old} is not checked: {error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes a rebuild down, after the last look at what could stand in its way.
pub(super) async fn begin_rebuild(context: &Context, request: &Request) -> Result<Rebuild, Error> {
    let plan = plan_rebuild(context, request).await?;
    check_keys(context, &request.collection).await?;
    let id = row::begin(&context.pool, request, &Target::new(&plan.new_index), &plan.mapping).await?;
    crash::point("rebuild-begun");
    row::read(&context.pool, id).await
}

/// The collection, if it can be worked on, and its new index.
async fn rebuildable(context: &Context, request: &Request) -> Result<(Collection, IndexPlan), Error> {
    let config = context.config.collection(Some(&request.collection))?;
    let mut connection = context.pool.acquire().await?;
    let collection = collection::load(&mut connection, config, &context.prefix).await?;
    collection.check_targets()?;
    let name = &collection.name;
    if let Some(problem) = collection.problems.first() {
        return Err(Error::refused_with(format!("collection {name}: {problem}"), "run: catchword migrate"));
    }
    if let Some(why) = &collection.paused {
        return Err(Error::refused_with(format!("collection {name} is paused {why}"), format!("resume it first: catchword resume {name}")));
    }
    let mut plan = index_plan(context, config, collection.installation)?;
    if let Some(mapping) = &request.mapping {
        plan.mapping = mapping.clone();
    }
    plan.create_request()?;
    Ok((collection, plan))
}

/// The alias must lead to the index that the collection is kept in, which must be ours.
async fn check_alias(context: &Context, collection: &Collection, plan: &IndexPlan, old: &Target) -> Result<(), Error> {
    match context.elastic.readers_see(&collection.alias).await? {
        Some(seen) if seen == *old => {}
        Some(other) => {
            return Err(Error::refused_with(
                format!(
                    "the alias {} leads to {other}, and collection {} is kept in {old}: somebody moved it",
                    collection.alias, collection.name
                ),
                "move it back first",
            ));
        }
        None => return Err(elastic::Error::NoAlias { alias: collection.alias.clone(), index: old.index().to_owned() }.into()),
    }
    Ok(context.elastic.belongs(old, &collection.targets, &collection.alias, plan.installation).await?)
}

/// A view that returns a key twice has two documents for one place: which of them is in the index would be random.
async fn check_keys(context: &Context, name: &str) -> Result<(), Error> {
    let config = context.config.collection(Some(name))?;
    let mut connection = context.pool.acquire().await?;
    let collection = collection::load(&mut connection, config, &context.prefix).await?;
    match collection.doubled_key(&mut connection).await? {
        None => Ok(()),
        Some(key) => Err(Error::refused_with(
            format!("the view {} returns the key {key} more than once, and an index holds one document for it", config.view),
            "make its keys unique",
        )),
    }
}

/// For people.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
