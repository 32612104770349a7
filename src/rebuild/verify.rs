//! The new index is made fit for readers, and must be in step, key by key, both ways.

use super::{Rebuild, Run, Stage};
use crate::audit::{self, Kind, Report};
use crate::{Error, collection, job, sync};

/// Audits before it is reported that the new index is not in step: what the first finds is scheduled, and the next one looks again.
const AUDITS: u32 = 3;

impl Run<'_> {
    /// Puts back what was off while it was filled, and audits it. Readers see it only if it lacks nothing that an index can have.
    pub(super) async fn verify(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let (plan, new) = (self.index_plan(rebuild).await?, rebuild.new_target());
        while !self.elastic().make_fit(&plan, &new, &rebuild.old_target()).await? {
            self.say(rebuild.stage, None, Some(format!("the copies of {new} are being made")));
            if self.stop.is_cancelled() {
                return Err(Error::Stopped);
            }
        }
        self.refuse_two_views(rebuild).await?;
        self.elastic().refresh(&new).await?;
        let mut found = self.audit(rebuild).await?;
        for audit in 1.. {
            if self.is_fit(rebuild, &found).await? {
                return self.step(rebuild, Stage::Swap).await;
            }
            if audit == AUDITS {
                break;
            }
            sync::drain(self.context, "rebuild", &[&rebuild.collection]).await?;
            found = self.audit(rebuild).await?;
        }
        Err(out_of_step(rebuild, &found))
    }

    /// In step; or it lacks only what no index can have: the old one lacks it too. While a document is refused, by whichever of them, it
    /// is not told which of the dead letters are whose.
    async fn is_fit(&self, rebuild: &Rebuild, found: &Report) -> Result<bool, Error> {
        let dead = found.differences.get(Kind::Dead.name()).copied().unwrap_or(0);
        match found.is_in_step() || dead < found.differ() || found.unknown > 0 {
            true => Ok(found.is_in_step()),
            false => job::unindexable_alone(&mut *self.pool().acquire().await?, &rebuild.collection).await,
        }
    }

    /// A view that changed while the new index was filled has left documents of both definitions in it, under numbers that agree.
    async fn refuse_two_views(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let context = self.context;
        let config = context.config.collection(Some(&rebuild.collection))?;
        let changed = collection::load(&mut *context.pool.acquire().await?, config, &context.prefix).await?.view_changed;
        let (name, new) = (&rebuild.collection, &rebuild.new_index);
        match changed {
            false => Ok(()),
            true => Err(Error::refused_with(
                format!("the view changed while {new} was filled, so it has documents of both definitions"),
                format!("write all of them again: catchword reindex {name} --all --rewrite; then go on: catchword rebuild {name}"),
            )),
        }
    }

    async fn audit(&self, rebuild: &Rebuild) -> Result<Report, Error> {
        let request = audit::Request {
            collection: rebuild.collection.clone(),
            target: Some(rebuild.new_index.clone()),
            repair: true,
            reason: "rebuild".into(),
            ..audit::Request::default()
        };
        let watch = |report: &Report| self.say(rebuild.stage, report.expected.map(|expected| (report.looked, expected)), None);
        audit::audit_watched(self.context, &request, &watch, self.stop).await
    }
}

fn out_of_step(rebuild: &Rebuild, found: &Report) -> Error {
    let name = &rebuild.collection;
    let kinds: Vec<String> = found.differences.iter().filter(|(_, n)| **n > 0).map(|(kind, n)| format!("{n} {kind}")).collect();
    let what = if kinds.is_empty() { format!("{} keys cannot be told", found.unknown) } else { kinds.join(", ") };
    let example = found.examples.first().map_or(String::new(), |example| format!(", such as {:?}", example.key));
    Error::refused_with(
        format!("the new index {} is not in step and is not swapped in: {what}{example}", rebuild.new_index),
        format!("look: catchword dead list; then go on: catchword rebuild {name}, or undo it: catchword rebuild {name} --abort"),
    )
}
