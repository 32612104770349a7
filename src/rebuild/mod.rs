//! A new index, filled through the queue and swapped in, while writes and readers go on.
//!
//! Each stage is written down in `catchword.rebuild` before it begins, and what it does can be done twice: whoever is killed at any line
//! is followed by whoever types the same command again. What keeps the promises is not here but in the loop: from `fill` on the
//! collection has two targets, and a job is satisfied only when both agree.

mod check;
mod create;
mod drain;
mod end;
mod fill;
mod lacks;
mod lock;
mod row;
mod swap;
mod tend;
mod under_way;
mod verify;

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use check::Plan;
use check::begin_rebuild;
pub(crate) use check::plan_rebuild;
pub(crate) use row::unfinished_rebuild;
pub use row::{LONGEST_KEEP, Rebuild, Stage, unfinished};
pub(crate) use tend::tend_rebuilds;
pub use under_way::{UnderWay, under_way};

use crate::context::Context;
use crate::{Error, crash};

/// What is to be rebuilt.
#[derive(Clone, Debug)]
pub struct Request {
    pub collection: String,
    /// Settings and mappings of the new index; none: the file that the configuration names.
    pub mapping: Option<Value>,
    /// How long the old index is kept in step.
    pub keep: Duration,
    /// Who asks, for the journal.
    pub who: String,
}

/// How far a rebuild has come.
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    pub stage: Stage,
    /// Keys that are through, and how many there are; none: the stage has no count.
    pub done: Option<(u64, u64)>,
    /// What it waits for, if it does.
    pub waits_for: Option<String>,
}

/// Is told how far a rebuild has come.
pub type Watch<'a> = &'a (dyn Fn(&Progress) + Sync);

/// A rebuild under way, and who follows it.
struct Run<'a> {
    context: &'a Context,
    who: &'a str,
    watch: Watch<'a>,
    stop: &'a CancellationToken,
}

/// Rebuilds the index of a collection, or goes on with a rebuild that was cut short. It works the queue itself, so no worker has to
/// run; those that do help. Returns when readers see the new index, and the old one is kept (or dropped, if it is to be kept for no
/// time).
pub(crate) async fn rebuild(context: &Context, request: &Request, watch: Watch<'_>, stop: &CancellationToken) -> Result<Rebuild, Error> {
    let _lock = lock::take(context, &request.collection).await?;
    let found = unfinished_rebuild(context, &request.collection).await?;
    let rebuild = match found {
        Some(found) => found.goes_on(request)?,
        None => begin_rebuild(context, request).await?,
    };
    Run { context, who: &request.who, watch, stop }.to_the_end(rebuild).await
}

/// Swaps back to the index that readers saw before, which was kept in step; once more, and they see the new one again.
pub(crate) async fn rebuild_back(context: &Context, collection: &str, who: &str) -> Result<Rebuild, Error> {
    let _lock = lock::take(context, collection).await?;
    let rebuild = need_rebuild(context, collection).await?;
    let run = Run { context, who, watch: &|_| (), stop: &CancellationToken::new() };
    match rebuild.stage {
        Stage::Keep => run.check_kept(&rebuild).await?,
        Stage::Back => {}
        stage => return Err(stage.cannot("go back", collection)),
    }
    if rebuild.stage == Stage::Keep {
        run.step(&rebuild, Stage::Back).await?;
    }
    run.swap(&need_rebuild(context, collection).await?).await?;
    need_rebuild(context, collection).await
}

/// Undoes a rebuild that is not swapped in yet: the new index is dropped.
pub(crate) async fn rebuild_abort(context: &Context, collection: &str, who: &str) -> Result<Rebuild, Error> {
    let _lock = lock::take(context, collection).await?;
    let rebuild = need_rebuild(context, collection).await?;
    let run = Run { context, who, watch: &|_| (), stop: &CancellationToken::new() };
    run.abort(&rebuild).await?;
    Ok(rebuild)
}

/// Drops the index that is kept and that readers do not see, before its time. It cannot be undone.
pub(crate) async fn rebuild_drop(context: &Context, collection: &str, who: &str) -> Result<Rebuild, Error> {
    let _lock = lock::take(context, collection).await?;
    let rebuild = need_rebuild(context, collection).await?;
    let run = Run { context, who, watch: &|_| (), stop: &CancellationToken::new() };
    match rebuild.stage {
        Stage::Keep | Stage::Drop => run.drop_kept(&rebuild).await?,
        stage => return Err(stage.cannot("drop the old index", collection)),
    }
    Ok(rebuild)
}

async fn need_rebuild(context: &Context, collection: &str) -> Result<Rebuild, Error> {
    let found = unfinished_rebuild(context, collection).await?;
    found.ok_or_else(|| {
        Error::refused_with(format!("no rebuild of {collection} is under way, and no old index of it is kept"), "see: catchword status")
    })
}

impl Run<'_> {
    /// The whole story. It ends where the old index is kept: dropping it is the worker's, when its time has come.
    async fn to_the_end(&self, mut rebuild: Rebuild) -> Result<Rebuild, Error> {
        loop {
            if self.stop.is_cancelled() {
                return Err(Error::Stopped);
            }
            self.say(rebuild.stage, None, None);
            match rebuild.stage {
                Stage::Create => self.create(&rebuild).await?,
                Stage::Fill => self.fill(&rebuild).await?,
                Stage::Drain => self.drain(&rebuild).await?,
                Stage::Verify => self.verify(&rebuild).await?,
                _ => return self.finish(rebuild).await,
            }
            rebuild = row::read(self.pool(), rebuild.id).await?;
        }
    }

    /// From the swap on. A worker does this too, for whoever was killed on the way.
    async fn finish(&self, mut rebuild: Rebuild) -> Result<Rebuild, Error> {
        loop {
            self.say(rebuild.stage, None, None);
            match rebuild.stage {
                Stage::Swap | Stage::Back => self.swap(&rebuild).await?,
                Stage::Keep if !rebuild.is_kept() => self.drop_kept(&rebuild).await?,
                Stage::Drop => self.drop_kept(&rebuild).await?,
                Stage::Abort => self.abort(&rebuild).await?,
                _ => return Ok(rebuild),
            }
            rebuild = row::read(self.pool(), rebuild.id).await?;
        }
    }

    /// From one stage to the next, with the list of targets and the journal, in one transaction.
    async fn step(&self, rebuild: &Rebuild, to: Stage) -> Result<(), Error> {
        let moved = row::step(self.pool(), rebuild.id, rebuild.stage, to, self.who).await?;
        crash::point(match to {
            Stage::Fill => "rebuild-recorded",
            Stage::Drain => "rebuild-filled",
            Stage::Verify => "rebuild-drained",
            Stage::Swap => "rebuild-verified",
            Stage::Keep => "rebuild-swapped",
            Stage::Drop | Stage::Abort => "rebuild-taken-off",
            _ => "rebuild-ended",
        });
        // the same step, asked for by somebody who was killed, may have come late: Postgres ends what it has begun
        if moved || row::read(self.pool(), rebuild.id).await?.stage == to {
            return Ok(());
        }
        Err(Error::refused_with(format!("somebody else moved the rebuild of {}", rebuild.collection), "see: catchword status"))
    }

    fn say(&self, stage: Stage, done: Option<(u64, u64)>, waits_for: Option<String>) {
        (self.watch)(&Progress { stage, done, waits_for });
    }

    fn pool(&self) -> &sqlx::PgPool {
        &self.context.pool
    }

    fn elastic(&self) -> &crate::elastic::Elastic {
        &self.context.elastic
    }
}
