//! Reindexes, until `serve::actions` has them.
use crate::reindex::{self as library, Progress, Request};
use crate::serve::actions::Changed;
use crate::serve::{Problem, Role, Serve, Who};
pub async fn reindexes(serve: &Serve, who: &Who, collection: Option<&str>) -> Result<Vec<Progress>, Problem> {
    let names = serve.chosen(who, collection)?;
    let all = library::list(&mut *serve.connection().await?, collection, 100).await?;
    Ok(all.into_iter().filter(|p| names.contains(&p.collection)).collect())
}
pub async fn reindex(serve: &Serve, who: &Who, id: i64) -> Result<Progress, Problem> {
    let f = library::show(&mut *serve.connection().await?, id).await?;
    f.filter(|p| who.sees(&p.collection)).ok_or_else(|| Problem::not_found("no reindex", "list"))
}
pub async fn reindex_count(serve: &Serve, who: &Who, request: &Request) -> Result<Option<i64>, Problem> {
    serve.allow(who, Role::Operator)?;
    Ok(library::count(&serve.catchword.context.pool, request).await?)
}
pub async fn reindex_start(serve: &Serve, who: &Who, request: &Request) -> Result<Progress, Problem> {
    serve.allow(who, Role::Operator)?;
    let id = library::start(&serve.catchword.context.pool, request).await?;
    reindex(serve, who, id).await
}
pub async fn reindex_pause(serve: &Serve, who: &Who, id: i64) -> Result<Changed, Problem> {
    let p = reindex(serve, who, id).await?;
    Ok(Changed { collection: p.collection, changed: library::pause(&mut *serve.connection().await?, id, &who.name).await? })
}
pub async fn reindex_resume(serve: &Serve, who: &Who, id: i64) -> Result<Changed, Problem> {
    let p = reindex(serve, who, id).await?;
    Ok(Changed { collection: p.collection, changed: library::resume(&mut *serve.connection().await?, id, &who.name).await? })
}
pub async fn reindex_cancel(serve: &Serve, who: &Who, id: i64) -> Result<Changed, Problem> {
    let p = reindex(serve, who, id).await?;
    Ok(Changed { collection: p.collection, changed: library::cancel(&mut *serve.connection().await?, id, &who.name).await? })
}
pub async fn reindex_rate(serve: &Serve, who: &Who, id: i64, rate: Option<i32>) -> Result<Changed, Problem> {
    let p = reindex(serve, who, id).await?;
    Ok(Changed { collection: p.collection, changed: library::set_rate(&mut *serve.connection().await?, id, rate, &who.name).await? })
}
