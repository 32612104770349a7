//! Buries the jobs of one key because a person says so.

use sqlx::PgConnection;

use crate::Error;

/// How often a lock is waited for, five seconds each: longer than a worker holds a batch.
const TRIES: u32 = 12;

/// How many jobs there are of this key, or of the touch that has it.
pub async fn open_to_bury(connection: &mut PgConnection, collection: &str, key: &str) -> Result<i64, Error> {
    Ok(sqlx::query_scalar(include_str!("open_to_bury.sql")).bind(collection).bind(key).fetch_one(connection).await?)
}

/// Moves the jobs of this key to the dead letters; how many. A worker that is just working on the key is waited for. The journal says
/// who did it and why. `waiting` is called when it has to wait for long.
pub async fn bury_by_hand(
    connection: &mut PgConnection,
    [collection, key]: [&str; 2],
    [why, who]: [&str; 2],
    waiting: impl FnOnce(),
) -> Result<i64, Error> {
    let mut waiting = Some(waiting);
    let mut tries = 0;
    loop {
        tries += 1;
        let bury = sqlx::query_scalar("select catchword.bury($1, $2, $3, $4)").bind(collection).bind(key).bind(why).bind(who);
        match bury.fetch_one(&mut *connection).await.map_err(Error::from) {
            Err(error) if tries < TRIES && error.sqlstate().as_deref() == Some(Error::LOCK_NOT_AVAILABLE) => {
                if let Some(waiting) = waiting.take() {
                    waiting();
                }
            }
            buried => return buried,
        }
    }
}
