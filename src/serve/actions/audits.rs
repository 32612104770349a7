//! Audits. A worker runs them: here they are asked for, shown and stopped.

use super::Changed;
use crate::audit::{self as library, Shown};
use crate::serve::{Problem, Role, Serve, Who};

/// Audits in one answer.
const MOST: i64 = 100;

/// The newest audits of a collection, or of all that exist for whoever asks.
pub async fn audits(serve: &Serve, who: &Who, collection: Option<&str>) -> Result<Vec<Shown>, Problem> {
    let names = serve.chosen(who, collection)?;
    let mut shown = library::shown(&mut *serve.connection().await?, &names, None, MOST).await?;
    shown.iter_mut().for_each(|shown| hide(serve, shown));
    Ok(shown)
}

/// One audit.
pub async fn audit(serve: &Serve, who: &Who, collection: &str, id: i64) -> Result<Shown, Problem> {
    let names = serve.chosen(who, Some(collection))?;
    let found = library::shown(&mut *serve.connection().await?, &names, Some(id), 1).await?.into_iter().next();
    let mut shown =
        found.ok_or_else(|| Problem::not_found(format!("there is no audit {id} of this collection"), "list them: GET …/audits"))?;
    hide(serve, &mut shown);
    Ok(shown)
}

/// Fields that differ are told with the beginning of their values.
fn hide(serve: &Serve, shown: &mut Shown) {
    if !serve.options.show_documents {
        shown.report.examples.iter_mut().for_each(|example| example.fields.hide_values());
    }
}

/// Asks for an audit of a whole collection; a worker begins it within a minute.
pub async fn audit_start(serve: &Serve, who: &Who, collection: &str, repair: bool, content: bool) -> Result<Shown, Problem> {
    serve.allow(who, Role::Operator)?;
    let name = &serve.collection(who, collection)?.name;
    let asked = library::start(&mut *serve.connection().await?, name, repair, content, &who.name).await?;
    let id = asked.ok_or_else(|| Problem::conflict(format!("collection {name} has no index yet"), "run: catchword migrate"))?;
    audit(serve, who, name, id).await
}

/// Stops an audit, whoever runs it.
pub async fn audit_stop(serve: &Serve, who: &Who, collection: &str, id: i64) -> Result<Changed, Problem> {
    serve.allow(who, Role::Operator)?;
    let shown = audit(serve, who, collection, id).await?;
    let changed = library::stop(&mut *serve.connection().await?, id, &who.name).await?;
    Ok(Changed { collection: shown.report.collection, changed })
}
