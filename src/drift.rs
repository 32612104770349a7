//! What changed since an index was filled: its mapping file, the view that its documents are built by, or what that reads; and what is due.

use std::fmt;

use serde::Serialize;

use crate::collection::Collection;
use crate::context::{Context, index_plan};
use crate::elastic::Difference;
use crate::health::Fault;
use crate::{Error, collection, config, rebuild};

/// What changed since the index of a collection was filled.
#[derive(Clone, Debug, Serialize)]
pub struct Drift {
    pub collection: String,
    /// How the index that readers see differs from the mapping file.
    pub mapping: Difference,
    /// The view, or something that it is made of, has another definition than documents were built with; or touches notice more now than
    /// they did then.
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
    of_attached(context, config, &attached).await
}

/// The same of a collection that was just read.
pub(crate) async fn of_attached(context: &Context, config: &config::Collection, attached: &Collection) -> Result<Drift, Error> {
    let rebuilding = attached.rebuilding && is_being_rebuilt(context, &config.name).await?;
    let mapping = match attached.readers_target() {
        Some(target) if !rebuilding => context.elastic.difference(&index_plan(context, config, attached.installation)?, target).await?,
        _ => Difference::default(),
    };
    Ok(Drift { mapping, rebuilding, ..of_view(attached) })
}

/// The part of it that Postgres alone tells.
pub(crate) fn of_view(attached: &Collection) -> Drift {
    Drift {
        collection: attached.name.clone(),
        mapping: Difference::default(),
        view_changed: attached.view_changed,
        unwatched: attached.unwatched_sentence(),
        rebuilding: attached.rebuilding,
    }
}

async fn is_being_rebuilt(context: &Context, collection: &str) -> Result<bool, Error> {
    let mut connection = context.pool.acquire().await?;
    Ok(rebuild::unfinished(&mut connection, &[collection]).await?.first().is_some_and(|rebuild| rebuild.is_before_the_swap()))
}

/// Logs once what drifted, and once that nothing does any more: a worker, at its ticks. What cannot be asked is logged elsewhere.
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
        if let Ok(drift) = of_attached(context, config, &attached).await {
            context.health.faults.note(&config.name, Fault::Drifted, drift.due());
        }
    }
}

/// What is due because something drifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// What is so.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // a remedy that is the second step goes on from the first
        let joined = if self.remedy.starts_with("then: ") { "; " } else { ": " };
        write!(f, "{}{joined}{}", self.what, self.remedy)
    }
}

impl Drift {
    /// What is due, in a sentence; none: nothing.
    pub fn due(&self) -> Option<String> {
        self.what_is_due().map(|due| due.to_string())
    }

    /// The same, with the remedy apart.
    pub(crate) fn what_is_due(&self) -> Option<Due> {
        let name = &self.collection;
        let due = |what: String, remedy: String| Some(Due { what, remedy });
        if let Some(unwatched) = &self.unwatched {
            return due(unwatched.clone(), "then: catchword migrate".into());
        }
        match (&self.mapping, self.view_changed) {
            _ if self.rebuilding => None,
            (mapping, _) if !mapping.changed.is_empty() => {
                let first = mapping.changed[0].as_str();
                let more = if mapping.changed.len() > 1 { format!(" and {} more", mapping.changed.len() - 1) } else { String::new() };
                due(
                    format!("the mapping file changed, and an existing index cannot take it ({first}{more})"),
                    format!("catchword rebuild {name}"),
                )
            }
            (mapping, _) if !mapping.added.is_empty() => {
                due(format!("the mapping file has new fields ({})", mapping.added.join(", ")), "catchword migrate".into())
            }
            (mapping, _) if !mapping.settings.is_empty() => {
                due(format!("the mapping file has other settings ({})", mapping.settings.join(", ")), "catchword migrate".into())
            }
            (_, true) => due(
                "the view or touches changed since the documents were built".into(),
                format!("catchword reindex {name} --all --rewrite"),
            ),
            _ => None,
        }
    }
}
