//! The readers' alias moves from one index to the other, in one step.

use std::time::Duration;

use super::{Rebuild, Run, Stage, row};
use crate::elastic::{Has, Target};
use crate::{Error, collection, crash};

const LOOK: Duration = Duration::from_secs(10);
/// No collection has this key; asking for it says whether the index answers.
const NO_KEY: &str = "catchword-probe";

impl Run<'_> {
    /// Moves the alias from the first target to the second, and turns the list round.
    ///
    /// No reader may miss what was shown before. Whatever the first index has, the second was given before it (the readers' index is
    /// written last), but it may not show it yet. So the first shows nothing new for the blink in which the second is refreshed and the
    /// alias moves. Whoever is killed in that blink leaves that behind, written down: the next one to come, command or worker, ends it.
    /// What the second was given and did not take in time has a job; such keys are looked at in that blink (`lacks.rs`).
    pub(super) async fn swap(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let [from, to] = rebuild.targets.as_slice() else {
            return Err(Error::refused_with(
                format!("collection {} no longer has two indices", rebuild.collection),
                "see: catchword status",
            ));
        };
        let (from, to) = (Target::new(from), Target::new(to));
        let alias = self.alias(rebuild)?;
        match self.elastic().readers_see(&alias).await? {
            Some(seen) if seen == to => {}
            Some(seen) if seen == from => {
                // most of it before, so that the blink is short
                self.elastic().refresh(&to).await?;
                for attempt in 1.. {
                    let moved = self.held_and_moved(rebuild, &alias, &from, &to).await;
                    if !matches!(&moved, Ok(lacking) if lacking.is_empty()) {
                        self.set_free(rebuild.id, &from).await?;
                    }
                    let lacking = moved?;
                    if lacking.is_empty() {
                        break;
                    }
                    self.bring(rebuild, &to, &lacking, attempt).await?;
                }
            }
            other => {
                let leads = other.map_or("nowhere".to_owned(), |other| format!("to {other}"));
                return Err(Error::refused_with(
                    format!("the alias {alias} leads {leads}, not to {from}: somebody moved it"),
                    format!("move it back, then go on: catchword rebuild {}", rebuild.collection),
                ));
            }
        }
        self.set_free(rebuild.id, &from).await?;
        self.step(rebuild, Stage::Keep).await
    }

    /// Moves the alias; or returns the keys because of which it could not be moved.
    async fn held_and_moved(&self, rebuild: &Rebuild, alias: &str, from: &Target, to: &Target) -> Result<Vec<String>, Error> {
        if row::read(self.pool(), rebuild.id).await?.held_index.is_none() {
            let before = self.elastic().refresh_interval(from).await?;
            row::hold(self.pool(), rebuild.id, from, before.as_deref()).await?;
        }
        self.elastic().set_refresh_interval(from, Some("-1")).await?;
        crash::point("rebuild-held");
        // going back must be possible whatever the old index lacks
        if rebuild.stage == Stage::Swap {
            let lacking = self.lacks(rebuild, from, to).await?;
            if !lacking.is_empty() {
                return Ok(lacking);
            }
        }
        self.elastic().refresh(to).await?;
        let search_alias = collection::search_alias(&mut *self.pool().acquire().await?, &rebuild.collection).await?;
        let search_alias = search_alias.as_ref().map(|(alias, _)| alias.as_str());
        self.elastic().move_alias(alias, search_alias, from, to).await?;
        crash::point("rebuild-moved");
        Ok(Vec::new())
    }

    /// Lets an index show again what is written to it, as often as before.
    pub(super) async fn set_free(&self, id: i64, index: &Target) -> Result<(), Error> {
        let rebuild = row::read(self.pool(), id).await?;
        if rebuild.held_index.as_deref() == Some(index.index()) {
            self.elastic().set_refresh_interval(index, rebuild.held_refresh.as_deref()).await?;
            row::release(self.pool(), id).await?;
        }
        Ok(())
    }

    /// Is the index that readers do not see able to take over?
    pub(super) async fn check_kept(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let kept = Target::new(rebuild.kept_index());
        let plan = self.index_plan(rebuild).await?;
        let both = [rebuild.old_target(), rebuild.new_target()];
        self.elastic().belongs(&kept, &both, &self.alias(rebuild)?, plan.installation).await?;
        let seen = self.elastic().look(&kept, &[NO_KEY], LOOK).await;
        let why = match seen {
            Ok(seen) => seen.into_iter().find_map(|has| if let Has::Unknown(why) = has { Some(why) } else { None }),
            Err(answer) => Some(answer.to_string()),
        };
        why.map_or(Ok(()), |why| Err(Error::refused(format!("index {kept} does not answer as it should, nothing was changed: {why}"))))
    }

    pub(super) fn alias(&self, rebuild: &Rebuild) -> Result<String, Error> {
        let context = self.context;
        Ok(format!("{}{}", context.prefix, context.config.collection(Some(&rebuild.collection))?.index))
    }
}
