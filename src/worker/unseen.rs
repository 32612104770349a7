//! What the role may not see, as on many managed services. The work goes on without it.

use sqlx::Row;

use crate::Error;
use crate::context::Context;

/// Logs it, once at the start of a worker: nothing of it is an error later.
pub(crate) async fn tell_what_is_unseen(context: &Context) {
    match unseen(context).await {
        Ok(unseen) if unseen.is_empty() => {}
        Ok(unseen) => tracing::info!("this role may not see {}; catchword doctor says what that means", unseen.join(", nor ")),
        Err(error) => tracing::debug!("what this role may see is not known: {error}"),
    }
}

async fn unseen(context: &Context) -> Result<Vec<&'static str>, Error> {
    let row = sqlx::query(include_str!("unseen.sql")).fetch_one(&context.pool).await?;
    let sessions = (!row.try_get::<bool, _>("sees_sessions")?).then_some("whose sessions hold vacuum back");
    let server = (!row.try_get::<bool, _>("sees_server")?).then_some("whether another server answers than before");
    Ok(sessions.into_iter().chain(server).collect())
}
