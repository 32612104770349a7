//! What many ask for at the same time is read once: `status` and `check` each take a connection and some queries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::{Problem, Serve};
use crate::check::Report;
use crate::collection::{self, Collection};
use crate::config;
use crate::status::Status;

/// An answer is shared for so long.
const FRESH: Duration = Duration::from_secs(2);

/// The last answer, and since when it is so.
pub(super) struct Shared<T>(tokio::sync::Mutex<Option<(Instant, T)>>);

impl<T> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared(tokio::sync::Mutex::new(None))
    }
}

impl<T: Clone> Shared<T> {
    /// The last answer, if it is fresh; else a new one, which all who come meanwhile wait for.
    async fn get(&self, read: impl AsyncFnOnce() -> T) -> T {
        let mut last = self.0.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < FRESH
        {
            return answer.clone();
        }
        let answer = read().await;
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

/// A collection as it was read, or why it could not be.
type Attached = Result<Arc<Collection>, Problem>;

/// What is read for everybody.
#[derive(Default)]
pub(super) struct Readings {
    status: Shared<Result<Arc<Status>, Problem>>,
    check: Shared<Arc<Report>>,
    /// How each collection is attached, by its name: to read that takes Postgres twenty times as long as to look at a key.
    attached: Mutex<HashMap<String, Arc<Shared<Attached>>>>,
    /// The last status that Postgres had a part in.
    known: Mutex<Option<(DateTime<Utc>, Arc<Status>)>>,
}

impl Serve {
    /// How things stand, at most two seconds old.
    pub async fn status(&self) -> Result<Arc<Status>, Problem> {
        let read = async || match self.catchword.status().await {
            Ok(status) => Ok(Arc::new(status)),
            Err(error) => Err(Problem::from(error)),
        };
        let status = self.readings.status.get(read).await?;
        if status.postgres.is_none() {
            *self.readings.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((Utc::now(), status.clone()));
        }
        Ok(status)
    }

    /// What `check` says, at most two seconds old.
    pub async fn check(&self) -> Arc<Report> {
        self.readings.check.get(async || Arc::new(self.catchword.check().await)).await
    }

    /// How a collection is attached, at most two seconds ago.
    pub async fn attached(&self, config: &config::Collection) -> Result<Arc<Collection>, Problem> {
        let shared = self.readings.attached.lock().unwrap_or_else(PoisonError::into_inner).entry(config.name.clone()).or_default().clone();
        let read = async || {
            let loaded = collection::load(&mut *self.connection().await?, config, self.catchword.prefix()).await?;
            Ok(Arc::new(loaded))
        };
        shared.get(read).await
    }

    /// How things stood when Postgres last answered, and when that was. For somebody who looks while it does not.
    pub fn last_known(&self) -> Option<(DateTime<Utc>, Arc<Status>)> {
        self.readings.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
