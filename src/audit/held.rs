//! Whether anybody works on the collection: what is pending is looked at by nobody while it is paused or blocked.

use super::Run;
use crate::heartbeat::workers;
use crate::{Error, collection};

/// What holds the work on a collection up.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Since when, by whom and why.
    pub paused: Option<String>,
    /// Why it cannot be worked on: found now, or said by a living worker.
    pub blocked: Option<String>,
}

impl Run<'_> {
    /// Asks at the end: an audit may take hours.
    pub(super) async fn held(&self) -> Result<Held, Error> {
        let name = &self.collection.name;
        let mut connection = self.context.pool.acquire().await?;
        let now = collection::load(&mut connection, self.context.config.collection(Some(name))?, &self.context.prefix).await?;
        let problem = now.problems.into_iter().next().map(|problem| format!("{problem}; run: catchword migrate"));
        let workers = workers(&mut connection).await?;
        let mut serving = workers.iter().filter(|worker| worker.is_alive() && worker.collections.contains(name));
        let said = serving.find_map(|worker| worker.blocked.get(name)?.as_str().map(str::to_owned));
        Ok(Held { paused: now.paused, blocked: problem.or(said) })
    }
}
