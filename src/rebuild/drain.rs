//! Works the jobs that fill the new index, beside whatever workers run.

use std::time::Duration;

use tokio::time::Instant;

use super::{Rebuild, Run, Stage};
use crate::elastic::Has;
use crate::job::{self, Place};
use crate::look::{self, AtElasticsearch};
use crate::outcome::Outcome;
use crate::sync::{self, Trial};
use crate::{Error, collection, reindex};

/// How often pauses, triggers and targets are read again.
const LOOK_AROUND: Duration = Duration::from_secs(30);
/// Nothing has moved for this long: what is left is not only postponed (30 s at most), or in another worker's hands.
const STUCK: Duration = Duration::from_secs(60);
/// Keys looked at together.
const PAGE: i64 = 2_500;

impl Run<'_> {
    /// Runs passes, and schedules what there is room for, until no job of the filling is left. The command works the queue itself: then no
    /// worker has to run, and it hears at once what the new index refuses.
    pub(super) async fn drain(&self, rebuild: &Rebuild) -> Result<(), Error> {
        let name = rebuild.collection.as_str();
        let Some(id) = rebuild.reindex else { return self.step(rebuild, Stage::Verify).await };
        let (mut looked_around, mut moved, mut before): (Option<Instant>, Instant, u64) = (None, Instant::now(), u64::MAX);
        let mut refused = false;
        loop {
            if self.stop.is_cancelled() {
                return Err(Error::Stopped);
            }
            self.feed(rebuild, id).await?;
            let outcome = if looked_around.is_none_or(|at| at.elapsed() > LOOK_AROUND) {
                looked_around = Some(Instant::now());
                sync::sync(self.context, "rebuild", &[name]).await?
            } else {
                sync::pass(self.context, "rebuild", &[name], Trial::Over, self.stop).await?
            };
            let Some(filling) = reindex::show(&mut *self.pool().acquire().await?, id).await? else {
                return self.step(rebuild, Stage::Verify).await;
            };
            let keys = filling.total().unwrap_or(filling.scheduled).max(0) as u64;
            self.say(rebuild.stage, Some((filling.through(), keys)), self.waits_for(name, &outcome));
            if filling.state.is_over() {
                return self.step(rebuild, Stage::Verify).await;
            }
            if let Some(why) = filling.trouble {
                return Err(Error::refused_with(
                    format!("the keys of {name} cannot all be scheduled: {why}"),
                    "correct that, and repeat it",
                ));
            }
            refused |= outcome.pushed_back > 0 || !outcome.refusing.is_empty();
            let can_work = outcome.blocked.is_empty() && outcome.breaker.is_none();
            if outcome.moved() || filling.through() != before {
                (moved, before) = (Instant::now(), filling.through());
            } else if can_work && (refused || moved.elapsed() > STUCK) {
                let stands = moved.elapsed() > STUCK || outcome.refusing.contains_key(name);
                if self.has_the_rest(rebuild, &outcome, stands).await? {
                    if filling.all_scheduled {
                        return self.step(rebuild, Stage::Verify).await;
                    }
                    // what only the old index refuses holds up nothing: more than usual may be open
                    reindex::chunk(self.pool(), id, reindex::CHUNK).await?;
                }
            }
            if !outcome.moved() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    fn waits_for(&self, name: &str, outcome: &Outcome) -> Option<String> {
        let known = self.context.health.faults.worst().remove(name);
        known.or_else(|| outcome.breaker.clone()).or_else(|| outcome.blocked.get(name).cloned())
    }

    /// Does the new index have all that is left? Then it is the old one that refuses it, which only waits to be dropped. What the new
    /// one refused is an error; so is whatever it lacks, if nothing moves any more. Other jobs may be in a worker's hands.
    async fn has_the_rest(&self, rebuild: &Rebuild, outcome: &Outcome, stands: bool) -> Result<bool, Error> {
        let context = self.context;
        let config = context.config.collection(Some(&rebuild.collection))?;
        let mut connection = context.pool.acquire().await?;
        let collection = collection::load(&mut connection, config, &context.prefix).await?;
        let (new, mut place, mut lacking, mut example, mut waits) = (rebuild.new_target(), Place::TOP, 0, None, false);
        loop {
            let page = job::of_tag(&mut connection, &rebuild.collection, &rebuild.tag(), place, PAGE).await?;
            let Some(last) = page.last() else { break };
            place = Place::behind(last);
            let keys: Vec<&str> = page.iter().map(|job| job.key.as_str()).filter(|key| collection.key_type.fault(key).is_none()).collect();
            let mut look = AtElasticsearch::of(&collection, &context.pool, &keys).await?;
            look.ask(&context.elastic, &new, look::LIMIT)
                .await
                .map_err(|answer| Error::refused(format!("index {new} cannot be looked at: {answer}")))?;
            let seen = look.then_postgres(&collection, &mut connection).await?;
            for (n, key) in keys.iter().enumerate() {
                let seen = seen.key(n);
                if seen.agrees() || seen.has.iter().any(|has| matches!(has, Has::Unknown(_))) {
                    continue;
                }
                let Some(job) = page.iter().find(|job| job.key == **key) else { continue };
                if stands || job.attempts > 0 {
                    lacking += 1;
                    example = example.or_else(|| Some(job.clone()));
                } else {
                    waits = true;
                }
            }
        }
        let Some(example) = example else { return Ok(!waits) };
        let said = example.last_error.clone().or_else(|| outcome.refusing.get(&rebuild.collection).cloned());
        let said = said.map_or(String::new(), |said| format!(" ({said})"));
        Err(Error::refused_with(
            format!("{lacking} documents do not come into the new index {new}, such as {:?}{said}", example.key),
            format!(
                "correct the view or the rows and go on: catchword rebuild {name}, or undo it and correct the mapping: catchword rebuild {name} --abort",
                name = rebuild.collection
            ),
        ))
    }
}
