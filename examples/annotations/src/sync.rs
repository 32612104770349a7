//! The periodic task, for a service that runs it itself instead of leaving it to `catchword worker`.

use catchword::{Catchword, Outcome};
use tokio_util::sync::CancellationToken;

use crate::routes::COLLECTION;

/// What the pass is called in spans, in its log line and on graphs.
const SYNC_ANNOTATIONS: &str = "sync_annotations";

/// One pass over the due jobs of the annotations: claims them, looks at both sides, writes what
/// differs, and deletes the jobs whose both sides agreed.
pub async fn sync_annotations(catchword: &Catchword) -> Result<Outcome, catchword::Error> {
    catchword.sync(SYNC_ANNOTATIONS, &[COLLECTION]).await
}

/// The same at every tick of `catchword.toml`, each time until nothing moves, until `stop` comes.
///
/// It is the loop of `catchword worker` inside this process. Any number of both may run side by
/// side: a job is claimed by one of them.
pub async fn schedule_sync_annotations(catchword: Catchword, stop: CancellationToken) -> Result<(), catchword::Error> {
    catchword.worker(SYNC_ANNOTATIONS, &[COLLECTION]).run(stop).await
}
