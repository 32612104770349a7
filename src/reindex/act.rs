//! What operators do to a reindex. Each is written into the journal, in the same transaction.

use sqlx::PgConnection;

use crate::Error;

/// Ends it: no more of it is scheduled, and its jobs are deleted. Jobs of a reindex that rewrites stay, because the index needs them. False:
/// it was over already.
pub async fn cancel(connection: &mut PgConnection, id: i64, who: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("select catchword.cancel_reindex($1, $2)").bind(id).bind(who).fetch_one(connection).await?)
}

/// No more of it is scheduled, until it is resumed; what is open is still worked on. False: it was paused, or all of it was scheduled.
pub async fn pause(connection: &mut PgConnection, id: i64, who: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("select catchword.pause_reindex($1, $2)").bind(id).bind(who).fetch_one(connection).await?)
}

/// Goes on with it. False: it was not paused.
pub async fn resume(connection: &mut PgConnection, id: i64, who: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("select catchword.resume_reindex($1, $2)").bind(id).bind(who).fetch_one(connection).await?)
}

/// The most keys that are scheduled in a second; none: no limit. False: all of it was scheduled.
pub async fn set_rate(connection: &mut PgConnection, id: i64, rate: Option<i32>, who: &str) -> Result<bool, Error> {
    let set = sqlx::query_scalar("select catchword.set_reindex_rate($1, $2, $3)").bind(id).bind(rate).bind(who);
    Ok(set.fetch_one(connection).await?)
}
