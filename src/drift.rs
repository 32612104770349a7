//! What changed since an index was filled: its mapping file, the view that its documents are built by, or what that reads; and what is due.

use std::fmt;

use serde::Serialize;

use crate::collection::Collection;
use crate::context::{Context, index_plan};
use crate::elastic::Difference;
use crate::health::Fault;
use crate::rebuild::unfinished_rebuild;
use crate::{Error, collection, config};

/// What changed since the index of a collection was filled.
#[derive(Clone, Debug, Serialize)]
pub struct Drift {
    pub collection: String,
    /// How the index that readers see differs from the mapping file.
    pub mapping: Difference,
    /// The view, or something that it is made of, has another definition than documents were built with.
    pub view_changed: bool,
    /// What is wrong, if the view reads a table that nobody watches.
    pub unwatched: Option<String>,
    /// Is a rebuild under way? It takes care of both.
    pub rebuilding: bool,
}

/// What changed in the mapping file or the view of a collection since its index was filled. It changes nothing.
pub(crate) async fn drift(context: &Context, config: &config::Collection) -> Result<Drift, Error> {
    let mut connection = context.pool.acquire().await?;
    let attached = collection::load(&mut connection, config, &context.prefix).await?;
    drop(connection);
    drift_of(context, config, &attached).await
}

async fn drift_of(context: &Context, config: &config::Collection, attached: &Collection) -> Result<Drift, Error> {
    let rebuilding =
        attached.rebuilding && unfinished_rebuild(context, &config.name).await?.is_some_and(|rebuild| rebuild.is_before_the_swap());
    let mapping = match attached.readers_target() {
        Some(target) if !rebuilding => context.elastic.difference(&index_plan(context, config, attached.installation)?, target).await?,
        _ => Difference::default(),
    };
    let unwatched = attached.unwatched_sentence();
    Ok(Drift { collection: config.name.clone(), mapping, view_changed: attached.view_changed, unwatched, rebuilding })
}

/// Says once what drifted, and once that nothing does any more: a worker, at its ticks. What cannot be asked is another's to say.
pub(crate) async fn note_drift(context: &Context) {
    for config in &context.config.collections {
        let Some(attached) = context.collection(&config.name) else { continue };
        if attached.view_changed {
            // it may change back, and documents that were built meanwhile do not
            let noted = sqlx::query(include_str!("note_view_changed.sql")).bind(&config.name).execute(&context.pool).await;
            if let Err(error) = noted {
                tracing::debug!(collection = config.name, "that the view changed could not be noted: {error}");
            }
        }
        if let Ok(drift) = drift_of(context, config, &attached).await {
            context.health.faults.note(&config.name, Fault::Drifted, drift.due());
        }
    }
}

impl Drift {
    /// What is due, in a sentence; none: nothing.
    pub fn due(&self) -> Option<String> {
        let name = &self.collection;
        if let Some(unwatched) = &self.unwatched {
            return Some(format!("{unwatched}; then: catchword migrate"));
        }
        match (&self.mapping, self.view_changed) {
            _ if self.rebuilding => None,
            (mapping, _) if !mapping.changed.is_empty() => {
                let first = mapping.changed[0].as_str();
                let more = if mapping.changed.len() > 1 { format!(" and {} more", mapping.changed.len() - 1) } else { String::new() };
                Some(format!(
                    "the mapping file changed, and an index that is there cannot take it ({first}{more}): catchword rebuild {name}"
                ))
            }
            (mapping, _) if !mapping.added.is_empty() => {
                Some(format!("the mapping file has new fields ({}): catchword migrate", mapping.added.join(", ")))
            }
            (_, true) => Some(format!("the view changed since documents were built by it: catchword reindex {name} --all --anew")),
            _ => None,
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.due().as_deref().unwrap_or("as it was filled"))
    }
}
