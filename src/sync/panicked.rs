//! A panic in a batch ends that batch alone. The key that causes it is found as one that gets no answer is.

use std::any::Any;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use sqlx::{Postgres, Transaction};

use super::batch::batch;
use super::fate::{Fate, Finding, fate};
use super::search::Group;
use super::walk::Look;
use crate::collection::Collection;
use crate::context::Context;
use crate::job::{self, Job};
use crate::outcome::Measured;
use crate::outcome::Outcome;
use crate::{Error, database, metrics};

/// Which keys are being worked on, for whoever has to say what went wrong. None: all of the batch.
#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<Option<(HashSet<String>, bool)>>);

impl UnderWay {
    pub fn begins(&self, group: &Group<'_>) {
        self.set(Some((group.keys.iter().map(|key| key.to_string()).collect(), group.suspected)));
    }

    pub fn ended(&self) {
        self.set(None);
    }

    fn set(&self, now: Option<(HashSet<String>, bool)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// Works a claimed batch. A panic rolls it back, and its keys are tried again in smaller groups.
pub(super) async fn guarded(
    context: &Context,
    collection: &Collection,
    transaction: Transaction<'static, Postgres>,
    jobs: &[Job],
    when: Look,
) -> Result<(Outcome, Measured), Error> {
    let under_way = UnderWay::default();
    let ended = AssertUnwindSafe(batch(context, collection, transaction, jobs, when, &under_way)).catch_unwind().await;
    match ended {
        Ok(done) => done,
        Err(panic) => {
            metrics::record_panic();
            let why = format!("catchword panicked: {}", text(&*panic));
            tracing::error!(collection = collection.name, "a batch of {} jobs is rolled back: {why}", jobs.len());
            let group = under_way.0.into_inner().unwrap_or_else(PoisonError::into_inner);
            suspect(context, &collection.name, jobs, group, why).await
        }
    }
}

/// Suspects the keys that were being worked on; one that was suspected before and was alone is charged.
async fn suspect(
    context: &Context,
    collection: &str,
    jobs: &[Job],
    group: Option<(HashSet<String>, bool)>,
    why: String,
) -> Result<(Outcome, Measured), Error> {
    let (keys, suspected) = group.unwrap_or_else(|| (jobs.iter().map(|job| job.key.clone()).collect(), false));
    let concerned: Vec<&Job> = jobs.iter().filter(|job| keys.contains(&job.key)).collect();
    let mut outcome = Outcome { claimed: jobs.len() as u64, ..Outcome::default() };
    let mut measured = Measured::default();
    let (mut charges, mut burials, mut suspects) = (vec![], vec![], vec![]);
    let among = i32::try_from(keys.len()).unwrap_or(i32::MAX);
    for job in concerned {
        if job.unanswered.is_none_or(|before| among < before) {
            suspects.push((job.id, Some(among)));
        }
        if !suspected || among > 1 {
            continue;
        }
        match fate(job, &Finding::Unanswered(why.clone())) {
            Fate::PushBack { error, due } => {
                measured.pushed_back(job);
                charges.push(job::Charge { id: job.id, error, due });
            }
            Fate::Bury { reason, error } => {
                measured.buried(job, reason);
                burials.push(job::Burial { id: job.id, reason, error });
            }
            Fate::Settle | Fate::Leave | Fate::Postpone => {}
        }
    }
    let mut transaction = database::begin(&context.pool).await?;
    job::suspect(&mut transaction, &suspects).await?;
    job::push_back(&mut transaction, &charges).await?;
    job::bury(&mut transaction, &burials).await?;
    let did = job::Did { pushed_back: charges.len() as i64, buried: burials.len() as i64, ..job::Did::default() };
    job::settle(&mut transaction, collection, &[], &did).await?;
    transaction.commit().await?;
    outcome.suspected = suspects.len().max(charges.len()) as u64;
    outcome.pushed_back = charges.len() as u64;
    outcome.buried = burials.len() as u64;
    Ok((outcome, measured))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
