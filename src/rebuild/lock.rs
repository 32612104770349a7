//! One process at a time works on the rebuild of a collection. The lock is its connection's: a kill frees it at once.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::Error;
use crate::alone::{Alone, Holder};
use crate::context::Context;

/// So long a command waits for the lock. A process that was killed has it until Postgres notices, and a worker that looks whether
/// something is left to do has it for as short a moment; on a busy machine that is a second. Whoever really works has it for longer.
const PATIENCE: Duration = Duration::from_secs(10);
const TRY_AGAIN: Duration = Duration::from_millis(200);

pub(super) async fn take(context: &Context, collection: &str) -> Result<Alone, Error> {
    let began = Instant::now();
    loop {
        match take_or_see(context, collection).await? {
            Ok(alone) => return Ok(alone),
            Err(_) if began.elapsed() < PATIENCE => sleep(TRY_AGAIN).await,
            Err(holder) => {
                return Err(Error::refused_with(
                    format!("a rebuild of {collection} is being worked on by another process: {holder}"),
                    "wait for it, or stop it first; see: catchword status",
                ));
            }
        }
    }
}

/// None: another process has it. A stranger's lock is an error.
pub(super) async fn try_take(context: &Context, collection: &str) -> Result<Option<Alone>, Error> {
    match take_or_see(context, collection).await? {
        Ok(alone) => Ok(Some(alone)),
        Err(holder) => holder.refuse_stranger(&format!("the rebuild of {collection}")).map(|()| None),
    }
}

async fn take_or_see(context: &Context, collection: &str) -> Result<Result<Alone, Holder>, Error> {
    // taken out of the pool: whoever borrowed it next would hold the lock
    let connection = context.pool.acquire().await?.detach();
    Alone::take(connection, &format!("catchword.rebuild {collection}")).await
}
