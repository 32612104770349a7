//! Makes the schema `catchword`, creates indices, attaches tables.

mod schema;

use uuid::Uuid;

use crate::collection::{self, Attached, Doubts, Lost, OfACopy};
use crate::config;
use crate::context::{Context, index_plan};
use crate::drift::drift;
use crate::elastic::{Ensured, IndexPlan, Shown, Target};
use crate::{Error, elastic};

pub(crate) use schema::UTF8;
pub use schema::{apply, apply_for_a_look, check_version, pending, refuse_encoding};

/// What was done for one collection.
#[derive(Clone, Debug)]
pub struct Done {
    pub collection: String,
    pub attached: Attached,
    /// Schemas of many that do not fit, each with what is wrong and the remedy.
    pub refused: Vec<String>,
    pub alias: String,
    pub index: Ensured,
    /// What was done so that it is found under its search alias.
    pub shown: Shown,
    /// Fields that were added to the index's mapping.
    pub added: Vec<String>,
    /// Settings of the index that were changed, in words.
    pub settings: Vec<String>,
    /// What is due because the mapping file or the view changed since the index was filled.
    pub due: Option<String>,
    /// What is doubtful about its view.
    pub doubts: Doubts,
    /// Related tables from which no index leads back.
    pub lost: Vec<Lost>,
}

/// Makes the schema, creates the indices with their aliases, attaches every configured table. Repeating it changes nothing. Both sides
/// are asked before a table is changed: a mapping that Elasticsearch refuses leaves no triggers that nobody works for.
pub(crate) async fn migrate(context: &Context) -> Result<(Vec<String>, Vec<Done>), Error> {
    migrate_copy(context, OfACopy::Refused).await
}

/// The same for a database that may be a copy of another one.
pub(crate) async fn migrate_copy(context: &Context, copy: OfACopy) -> Result<(Vec<String>, Vec<Done>), Error> {
    let pool = &context.pool;
    context.reach_postgres().await?;
    collection::refuse_standby(&mut *pool.acquire().await?).await?;
    schema::refuse_encoding(&mut *pool.acquire().await?).await?;
    // what the mapping files say is checked before anything is changed
    for config in context.config.served() {
        index_plan(context, config, Uuid::nil())?.create_request()?;
    }
    let applied = schema::apply(pool).await?;
    copy.settle(&mut *pool.acquire().await?).await?;
    take_over(context).await?;
    let installation = collection::installation(&mut *pool.acquire().await?).await?;
    // an index that is another's is refused before anything is made
    for config in context.config.served() {
        let (targets, _) = recorded(context, config).await?;
        context.elastic.check_index(&index_plan(context, config, installation)?, &targets).await.map_err(nothing_attached)?;
    }
    let mut indices = Vec::new();
    for config in context.config.served() {
        let (targets, former) = recorded(context, config).await?;
        if targets.is_empty() {
            collection::try_attach(pool, config).await?;
        }
        let plan = index_plan(context, config, installation)?;
        let index = context.elastic.ensure_index(&plan, &targets).await.map_err(nothing_attached)?;
        let shown = context.elastic.show_in_search_alias(&plan, former.as_deref(), &index.target, &targets).await;
        indices.push((index, shown.map_err(nothing_attached)?));
    }
    let mut done: Vec<Done> = Vec::new();
    for (config, (index, shown)) in context.config.served().zip(indices) {
        let (attached, refused) = collection::attach_what_fits(pool, config).await.map_err(|error| half_done(error, &done))?;
        collection::set_targets(pool, &config.name, index.target.index()).await?;
        let plan = index_plan(context, config, installation)?;
        collection::set_search_alias(pool, &config.name, plan.search_alias.as_deref()).await?;
        let (Brought { added, settings }, due) = bring_in_line(context, config, &plan).await?;
        let connection = &mut *pool.acquire().await?;
        let loaded = collection::load(connection, config, &context.prefix).await?;
        let (doubts, lost) = (loaded.doubts(connection).await?, loaded.ways_back(connection).await?);
        done.push(Done {
            collection: config.name.clone(),
            attached,
            refused,
            alias: plan.alias,
            index,
            shown,
            added,
            settings,
            due,
            doubts,
            lost,
        });
    }
    Ok((applied, done))
}

/// Claims the indices of the database that this one was copied from, if that was asked for. Cut short, the next one goes on.
async fn take_over(context: &Context) -> Result<(), Error> {
    let connection = &mut *context.pool.acquire().await?;
    let Some(previous) = collection::previous_installation(connection).await? else { return Ok(()) };
    let installation = collection::installation(connection).await?;
    for config in context.config.served() {
        let targets = collection::load(connection, config, &context.prefix).await.map(|attached| attached.targets);
        for target in targets.unwrap_or_default() {
            context.elastic.claim(&target, previous, installation).await?;
        }
    }
    collection::taken_over(connection).await
}

/// Asks Elasticsearch whether the indices that are wanted can be had, and makes nothing: for a dry run.
pub(crate) async fn check_indices(context: &Context, installation: Uuid) -> Result<(), Error> {
    for config in context.config.served() {
        let plan = index_plan(context, config, installation)?;
        context.elastic.check_index(&plan, &recorded(context, config).await?.0).await.map_err(nothing_attached)?;
    }
    Ok(())
}

/// Undoes an attachment; the sentence says what stays. Elasticsearch first: who searches several collections must not go on finding
/// what nobody keeps in step, and afterwards nobody knows the alias any more.
pub(crate) async fn detach(context: &Context, name: &str) -> Result<String, Error> {
    let connection = &mut *context.pool.acquire().await?;
    if let Some((alias, targets)) = collection::search_alias(connection, name).await? {
        let installation = collection::installation(connection).await?;
        context.elastic.hide_from_search_alias(&alias, &targets, installation).await.map_err(|error| {
            Error::refused_with(
                format!("{name} is still found under the search alias {alias}, and nothing was changed: {error}"),
                format!("repeat this when elasticsearch answers; if it is gone for good, run in psql: select catchword.detach('{name}')"),
            )
        })?;
    }
    collection::detach(&context.pool, name).await
}

/// The indices that were recorded for a collection, and its search alias; none: it is not attached yet.
async fn recorded(context: &Context, config: &config::Collection) -> Result<(Vec<Target>, Option<String>), Error> {
    match collection::load(&mut *context.pool.acquire().await?, config, &context.prefix).await {
        Ok(attached) => {
            attached.check_targets()?;
            Ok((attached.targets, attached.search_alias))
        }
        Err(_) => Ok((Vec::new(), None)),
    }
}

/// What of a mapping file was done to the index that readers see.
#[derive(Default)]
struct Brought {
    added: Vec<String>,
    settings: Vec<String>,
}

/// Changes settings, and adds the fields that the mapping file has and the index lacks. What an existing index cannot take is reported, and
/// not changed.
async fn bring_in_line(context: &Context, config: &config::Collection, plan: &IndexPlan) -> Result<(Brought, Option<String>), Error> {
    let found = drift(context, config).await?;
    if found.rebuilding || !found.mapping.changed.is_empty() {
        return Ok((Brought::default(), found.due()));
    }
    let attached = collection::load(&mut *context.pool.acquire().await?, config, &context.prefix).await?;
    let mut brought = Brought::default();
    for target in &attached.targets {
        let found = context.elastic.bring_in_line(plan, target).await?;
        if Some(target) == attached.readers_target() {
            brought = Brought { added: found.added, settings: found.settings };
        }
    }
    Ok((brought, drift(context, config).await?.due()))
}

/// Elasticsearch could not be asked, or refuses the index: said with what that leaves.
fn nothing_attached(error: elastic::Error) -> Error {
    match error {
        elastic::Error::Request { .. } => Error::refused_with(
            format!("{error}; the schema catchword is in place, and no table was attached or changed"),
            "correct that, then run catchword migrate again",
        ),
        other => other.into(),
    }
}

/// A table could not be attached after others were.
fn half_done(error: Error, done: &[Done]) -> Error {
    let attached: Vec<&str> = done.iter().map(|done| done.collection.as_str()).collect();
    match attached.as_slice() {
        [] => error,
        attached => Error::refused_with(
            format!("{error}; attached before that: {}", attached.join(", ")),
            "run catchword migrate again for the rest",
        ),
    }
}
