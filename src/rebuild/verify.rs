//! The new index is made fit for readers, and must be in step, key by key, both ways.

use super::{Rebuild, Run, Stage};
use crate::Error;
use crate::audit::{self, Report};

/// Audits before it is said that the new index does not come in step: what the first finds is scheduled, and the next one looks again.
const AUDITS: u32 = 3;

impl Run<'_> {
    /// Puts back what was off while it was filled, and audits it. Only an audit that finds nothing lets readers see it.
    pub(super) async fn verify(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let (plan, new) = (self.index_plan(rebuild).await?, rebuild.new_target());
        while !self.elastic().make_fit(&plan, &new, &rebuild.old_target()).await? {
            self.say(rebuild.stage, None, Some(format!("the copies of {new} are being made")));
            if self.stop.is_cancelled() {
                return Err(Error::Stopped);
            }
        }
        self.elastic().refresh(&new).await?;
        let mut found = self.audit(rebuild).await?;
        for _ in 1..AUDITS {
            if found.is_in_step() {
                break;
            }
            self.catchword.drain("rebuild", &[&rebuild.collection]).await?;
            found = self.audit(rebuild).await?;
        }
        match found.is_in_step() {
            true => self.step(rebuild, Stage::Swap).await,
            false => Err(out_of_step(rebuild, &found)),
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
        self.catchword.audit_watched(&request, &watch, self.stop).await
    }
}

fn out_of_step(rebuild: &Rebuild, found: &Report) -> Error {
    let name = &rebuild.collection;
    let kinds: Vec<String> = found.differences.iter().filter(|(_, n)| **n > 0).map(|(kind, n)| format!("{n} {kind}")).collect();
    let what = if kinds.is_empty() { format!("{} keys cannot be told", found.unknown) } else { kinds.join(", ") };
    let example = found.examples.first().map_or(String::new(), |example| format!(", {} for one", example.key));
    Error::Refused(format!(
        "the new index {} is not in step and is not swapped in: {what}{example}; look: catchword dead list; then go on: catchword rebuild {name}, or undo it: catchword rebuild {name} --abort",
        rebuild.new_index
    ))
}
