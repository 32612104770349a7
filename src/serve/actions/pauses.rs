//! Pause and resume.

use super::Changed;
use crate::pause as library;
use crate::serve::{Problem, Role, Serve, Who};

/// Characters of a reason.
pub const MOST_REASON: usize = 300;

/// Stops the work on a collection.
pub async fn pause(serve: &Serve, who: &Who, collection: &str, reason: &str) -> Result<Changed, Problem> {
    serve.allow(who, Role::Operator)?;
    let name = &serve.collection(who, collection)?.name;
    let reason = reason.trim();
    if reason.is_empty() || reason.chars().count() > MOST_REASON {
        let remedy = "say why, for whoever finds it: \"the mapping is being changed\"";
        return Err(Problem::bad("reason", format!("a pause needs a reason of 1 to {MOST_REASON} characters"), remedy));
    }
    let changed = library::pause(&mut *serve.connection().await?, name, &who.name, reason).await?;
    Ok(Changed { collection: name.clone(), changed })
}

/// Goes on with the work on a collection.
pub async fn resume(serve: &Serve, who: &Who, collection: &str) -> Result<Changed, Problem> {
    serve.allow(who, Role::Operator)?;
    let name = &serve.collection(who, collection)?.name;
    let changed = library::resume(&mut *serve.connection().await?, name, &who.name).await?;
    Ok(Changed { collection: name.clone(), changed })
}
