//! Passes on demand: one, or as many as it takes until nothing moves; and why something did not.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use super::pass::{Trial, pass};
use crate::Error;
use crate::collection::{Collection, refuse_standby};
use crate::context::{Context, refresh};
use crate::health::Turns;
use crate::job::{self, FirstDue};
use crate::outcome::Outcome;
use crate::reindex::{self, Fed};

/// What is known of due jobs that nobody could claim.
const LOCKED: &str = "another session has locked them, perhaps a worker; the runbook of CatchwordNoProgress has the query that names it";
/// How often a drain looks again at jobs that another session has locked, and how long it waits before each.
const TRIES: u32 = 10;
const PATIENCE: Duration = Duration::from_millis(300);
/// How long a drain waits at most for a reindex whose rate allows nothing now.
const RATE: Duration = Duration::from_secs(1);

/// One pass over the queues of these collections (none: of all that are configured). `name` is what its span and its log line are
/// called.
///
/// One bad document of 2,500 is a count in the [`Outcome`], never an error. An error means that Postgres could not be worked with;
/// whatever was claimed then is free again.
pub(crate) async fn sync(context: &Context, name: &str, collections: &[&str]) -> Result<Outcome, Error> {
    note_server(context).await?;
    refresh(context).await?;
    // what a clock that was ahead dated in the future, as a tick does
    let names: Vec<String> = context.collections(collections).iter().map(|collection| collection.name.clone()).collect();
    sqlx::query(include_str!("bring_back.sql")).bind(names).execute(&context.pool).await?;
    feed(context, collections).await?;
    let mut outcome = pass(context, name, collections, Trial::Allowed, &CancellationToken::new()).await?;
    outcome.stood = what_stood(context, collections, &outcome).await?.stood;
    Ok(outcome)
}

/// What a worker does beside its loop: the next pieces of reindexes are scheduled.
async fn feed(context: &Context, collections: &[&str]) -> Result<Fed, Error> {
    let served = context.collections(collections);
    let names: Vec<&str> = served.iter().map(|collection| collection.name.as_str()).collect();
    reindex::feed_all(&context.pool, &names).await
}

/// Passes until one neither writes nor settles anything, and nothing more of a reindex can be scheduled.
pub(crate) async fn drain(context: &Context, name: &str, collections: &[&str]) -> Result<Outcome, Error> {
    let mut all = sync(context, name, collections).await?;
    let mut turns = Turns { stood: std::mem::take(&mut all.stood), ..Turns::default() };
    let mut patience = TRIES;
    loop {
        let fed = feed(context, collections).await?;
        let outcome = pass(context, name, collections, Trial::Over, &CancellationToken::new()).await?;
        // what was postponed in one pass is not due in the next, and stood all the same; what moved in any of them did not stand
        turns.add(what_stood(context, collections, &outcome).await?);
        let moved = outcome.moved();
        all.add(outcome);
        if moved || fed.scheduled > 0 {
            continue;
        }
        if fed.limited {
            tokio::time::sleep(fed.next().unwrap_or(RATE).clamp(PATIENCE, RATE)).await;
            continue;
        }
        // a worker that is just at it is through in a moment
        if patience > 0 && turns.stood.values().any(|why| why == LOCKED) {
            patience -= 1;
            turns.stood.retain(|_, why| why != LOCKED);
            tokio::time::sleep(PATIENCE).await;
            continue;
        }
        all.stood = turns.stood;
        return Ok(all);
    }
}

/// Lets readers see what was written: a person who drains the queue looks next. Where it cannot be done, the index does it in a moment.
pub(crate) async fn show(context: &Context, collections: &[&str]) {
    for collection in context.collections(collections) {
        if let Some(target) = collection.readers_target()
            && let Err(error) = context.elastic.refresh(target).await
        {
            tracing::debug!("readers see it a little later: {error}");
        }
    }
}

/// Refuses a standby, and raises the sequence where numbers may be given twice: before anything is written.
pub(crate) async fn note_server(context: &Context) -> Result<(), Error> {
    let mut connection = context.pool.acquire().await?;
    refuse_standby(&mut connection).await?;
    if sqlx::query_scalar(include_str!("note_server.sql")).fetch_one(&mut *connection).await? {
        log_switched();
    }
    Ok(())
}

/// After a pass: collections of which jobs are due and none moved, and why. Those that the outcome names already are left out.
async fn what_stood(context: &Context, collections: &[&str], outcome: &Outcome) -> Result<Turns, Error> {
    let Turns { moved, mut stood } = context.health.turns.take();
    let mut connection = context.pool.acquire().await?;
    if !moved.is_empty() {
        let names: Vec<&String> = moved.iter().collect();
        sqlx::query(include_str!("note_moved.sql")).bind(names).execute(&mut *connection).await?;
    }
    let (mut found, mut failed) = (BTreeMap::new(), BTreeMap::new());
    for collection in context.collections(collections).iter().filter(|collection| !moved.contains(&collection.name)) {
        let name = &collection.name;
        let told = outcome.breaker.is_some() || outcome.blocked.contains_key(name) || outcome.refusing.contains_key(name);
        let claimed = stood.remove(name);
        if let Some(why) = claimed.as_ref().filter(|why| !why.is_empty() && collection.paused.is_none()) {
            failed.insert(name.clone(), why.clone());
        }
        if told || claimed.is_none() && job::first_due(&mut connection, name).await?.is_none() {
            continue;
        }
        found.insert(name.clone(), why_stood(context, &mut connection, collection, claimed).await?);
    }
    if !failed.is_empty() {
        sqlx::query(include_str!("note_stood.sql")).bind(json!(failed)).execute(&mut *connection).await?;
    }
    Ok(Turns { moved, stood: found })
}

async fn why_stood(
    context: &Context,
    connection: &mut PgConnection,
    collection: &Collection,
    claimed: Option<String>,
) -> Result<String, Error> {
    if let Some(why) = &collection.paused {
        return Ok(format!("it is paused {why}; resume it with: catchword resume {}", collection.name));
    }
    if let Some(why) = context.health.faults.worst().remove(&collection.name) {
        return Ok(why);
    }
    match claimed {
        Some(why) if !why.is_empty() => return Ok(why),
        Some(_) => return Ok("they were claimed and did not change; catchword explain shows what both sides have of one key".into()),
        None => {}
    }
    Ok(match job::first_due(connection, &collection.name).await? {
        Some(FirstDue { last_error: Some(error), .. }) => error,
        _ => LOCKED.into(),
    })
}

/// Numbers may be given twice, and commits may be lost.
pub(crate) fn log_switched() {
    tracing::error!(
        "this is another Postgres server or timeline than before: commits may be lost; an audit with content is requested, and a worker runs it"
    );
}
