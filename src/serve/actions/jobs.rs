//! Scheduling by hand. A producer that sends without end is told to wait, before it buries the queue.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::job;
use crate::serve::input_error;
use crate::serve::{Problem, Role, Serve, Who};

/// How many are due is asked so often; in between, what was scheduled here is added.
const COUNTED: Duration = Duration::from_secs(1);
/// In seconds: a worker does some thousands a second, so there is room again soon.
const AGAIN: u64 = 10;

/// Due jobs of collections, as they were last counted.
#[derive(Default)]
pub(crate) struct DueJobs(Mutex<HashMap<String, (Instant, i64)>>);

/// What was scheduled.
#[derive(Clone, Debug, Serialize)]
pub struct Scheduled {
    pub collection: String,
    /// How many jobs.
    pub scheduled: i64,
    /// Since when they stand in the queue, by Postgres' clock: `catchword.standing` takes it.
    pub since: DateTime<Utc>,
}

/// Schedules keys: a worker looks at each until both sides agree.
pub async fn schedule(
    serve: &Serve,
    who: &Who,
    collection: &str,
    keys: &[String],
    tag: Option<&str>,
    delay: Duration,
) -> Result<Scheduled, Problem> {
    serve.allow(who, Role::Writer)?;
    let name = &serve.collection(who, collection)?.name;
    let mut connection = serve.connection().await?;
    let due = match serve.due_jobs.counted(name) {
        Some(due) => due,
        None => {
            let due = job::census(&mut connection, name).await?.due;
            serve.due_jobs.note(name, due);
            due
        }
    };
    if due > serve.options.most_due {
        let most = serve.options.most_due;
        return Err(Problem::too_many(format!("{due} jobs of {name} are due, and the limit is {most} (--most-due)"), AGAIN));
    }
    let tag = tag.map_or_else(|| format!("api.{}", who.name), str::to_owned);
    let (scheduled, since) = job::schedule(&mut connection, name, keys, &tag, delay).await.map_err(input_error("keys"))?;
    serve.due_jobs.add(name, scheduled);
    Ok(Scheduled { collection: name.clone(), scheduled, since })
}

/// Has one key looked at now. The journal says who wanted it.
pub async fn look_again(serve: &Serve, who: &Who, collection: &str, key: &str) -> Result<Scheduled, Problem> {
    serve.allow(who, Role::Operator)?;
    let name = &serve.collection(who, collection)?.name;
    let mut connection = serve.connection().await?;
    let (scheduled, since) = job::look_again(&mut connection, name, key, &who.name).await.map_err(input_error("key"))?;
    Ok(Scheduled { collection: name.clone(), scheduled, since })
}

impl DueJobs {
    fn counted(&self, collection: &str) -> Option<i64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(collection).filter(|(at, _)| at.elapsed() < COUNTED).map(|(_, due)| *due)
    }

    fn note(&self, collection: &str, due: i64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(collection.to_owned(), (Instant::now(), due));
    }

    fn add(&self, collection: &str, scheduled: i64) {
        if let Some((_, due)) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(collection) {
            *due += scheduled;
        }
    }
}
