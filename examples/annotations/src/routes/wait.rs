use std::time::Duration;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use catchword::{Catchword, Until};
use uuid::Uuid;

use super::COLLECTION;
use crate::annotation::BadField;

/// How long an answer waits for search at most: twice the usual `refresh_interval`.
const LIMIT: Duration = Duration::from_secs(2);

/// What a client wants to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// The commit, and the direct write.
    No,
    /// That search shows it: `?wait=searchable`.
    Searchable,
}

impl Wait {
    pub fn read(parameters: Result<Query<Vec<(String, String)>>, QueryRejection>) -> Result<Wait, BadField> {
        let Query(parameters) = parameters.map_err(|_| BadField::new("query", "cannot be read"))?;
        let mut wait = Wait::No;
        for (name, value) in parameters {
            wait = match (name.as_str(), value.as_str()) {
                ("wait", "searchable") => Wait::Searchable,
                ("wait", _) => return Err(BadField::new("wait", "must be searchable, or left out: wait=searchable")),
                _ => return Err(BadField::new(name, "is not a parameter; what can be given is wait=searchable")),
            };
        }
        Ok(wait)
    }
}

/// Does search show it within the limit? It is saved: whatever goes wrong here, it is only not known to be found.
pub(super) async fn is_searchable(catchword: &Catchword, id: Uuid) -> bool {
    match catchword.wait_until(COLLECTION, [id], Until::Searchable, LIMIT).await {
        Ok(waited) => waited.iter().all(|key| key.has_come(Until::Searchable)),
        Err(error) => {
            tracing::warn!("not known whether a saved annotation is found: {error}");
            false
        }
    }
}
