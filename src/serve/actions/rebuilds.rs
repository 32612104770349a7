//! The rebuild of a collection. It is driven by this process, beside its requests; if this one is killed, the same request to another one,
//! or `catchword rebuild`, goes on with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::rebuild::{self as library, Plan, Progress, Rebuild, Request, Stage, UnderWay};
use crate::serve::{Problem, Role, Serve, Who};

/// Rebuilds that this process drives, by collection, and how the last one ended.
#[derive(Default)]
pub(crate) struct Rebuilds(Mutex<HashMap<String, Driven>>);

struct Driven {
    task: Option<JoinHandle<()>>,
    stop: CancellationToken,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Clone, Default)]
struct Seen {
    progress: Option<Progress>,
    failed: Option<String>,
}

/// How the rebuild of a collection stands.
#[derive(Clone, Debug, Serialize)]
pub struct Rebuilding {
    pub collection: String,
    /// None: none is under way, and no old index is kept.
    pub rebuild: Option<UnderWay>,
    /// Does this very process work on it?
    pub driven_here: bool,
    /// How far that has come.
    pub progress: Option<Progress>,
    /// Why the last one that this process drove did not come to its end.
    pub failed: Option<String>,
}

/// How the rebuild of a collection stands.
pub async fn rebuild(serve: &Serve, who: &Who, collection: &str) -> Result<Rebuilding, Problem> {
    let name = &serve.collection(who, collection)?.name;
    let rebuild = library::under_way(&mut *serve.connection().await?, &[name]).await?.into_iter().next();
    let (driven_here, Seen { progress, failed }) = serve.rebuilds.seen(name);
    Ok(Rebuilding { collection: name.clone(), rebuild, driven_here, progress: progress.filter(|_| driven_here), failed })
}

/// What a rebuild would do, and whether anything prevents it.
pub async fn rebuild_plan(serve: &Serve, who: &Who, collection: &str) -> Result<Plan, Problem> {
    serve.allow(who, Role::Admin)?;
    let request = request(serve, who, collection, Duration::ZERO)?;
    if let Some(found) = serve.catchword.unfinished_rebuild(&request.collection).await? {
        return Err(Problem::conflict(
            format!("a rebuild of {} is at its stage {}", request.collection, found.stage),
            "see it: GET …/rebuild; start it again to go on with it, or abort it",
        ));
    }
    Ok(serve.catchword.plan_rebuild(&request).await?)
}

/// Begins a rebuild, or goes on with one that was cut short. It uses the mapping file of the configuration.
pub async fn rebuild_start(serve: &Serve, who: &Who, collection: &str, keep: Duration) -> Result<Rebuilding, Problem> {
    serve.allow(who, Role::Admin)?;
    let request = request(serve, who, collection, keep)?;
    let found = serve.catchword.unfinished_rebuild(&request.collection).await?;
    match &found {
        Some(found) if found.stage == Stage::Keep && !found.overdue => {
            return Err(Problem::conflict(
                format!("the last rebuild of {} still keeps {}", request.collection, found.kept_index()),
                format!("wait until it is dropped, or run: catchword rebuild {} --drop", request.collection),
            ));
        }
        Some(found) if found.driven => {
            return Err(Problem::conflict(
                format!("a rebuild of {} is being worked on, at its stage {}", request.collection, found.stage),
                "see it: GET …/rebuild",
            ));
        }
        // whatever stands in the way is told now, and not by a task that nobody sees fail
        None => _ = serve.catchword.plan_rebuild(&request).await?,
        Some(_) => {}
    }
    serve.drive(request);
    rebuild(serve, who, collection).await
}

/// Lets readers see the index again that they saw before.
pub async fn rebuild_back(serve: &Serve, who: &Who, collection: &str) -> Result<Rebuild, Problem> {
    serve.allow(who, Role::Admin)?;
    let name = &serve.collection(who, collection)?.name;
    Ok(serve.catchword.rebuild_back(name, &who.name).await?)
}

/// Undoes a rebuild before readers see the new index.
pub async fn rebuild_abort(serve: &Serve, who: &Who, collection: &str) -> Result<Rebuild, Problem> {
    serve.allow(who, Role::Admin)?;
    let name = &serve.collection(who, collection)?.name;
    // if it is driven here, it would be in its own way
    if let Some(task) = serve.rebuilds.stop(name) {
        _ = task.await;
    }
    Ok(serve.catchword.rebuild_abort(name, &who.name).await?)
}

fn request(serve: &Serve, who: &Who, collection: &str, keep: Duration) -> Result<Request, Problem> {
    let collection = serve.collection(who, collection)?.name.clone();
    Ok(Request { collection, mapping: None, keep, who: who.name.clone() })
}

impl Serve {
    /// Works on a rebuild beside the requests, to its end.
    fn drive(&self, request: Request) {
        let mut all = self.rebuilds.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&request.collection).is_some_and(Driven::is_running) {
            return;
        }
        let (stop, seen, catchword) = (CancellationToken::new(), Arc::<Mutex<Seen>>::default(), self.catchword.clone());
        let name = request.collection.clone();
        let task = tokio::spawn({
            let (stop, seen) = (stop.clone(), seen.clone());
            async move {
                let watch = |progress: &Progress| locked(&seen).progress = Some(progress.clone());
                match catchword.rebuild(&request, &watch, &stop).await {
                    Ok(rebuilt) => {
                        tracing::info!(collection = rebuilt.collection, "{} is rebuilt, stage {}", rebuilt.collection, rebuilt.stage)
                    }
                    Err(Error::Stopped) => {
                        tracing::info!(collection = request.collection, "the rebuild of {} was stopped", request.collection)
                    }
                    Err(error) => {
                        tracing::error!(
                            collection = request.collection,
                            "the rebuild of {} did not come to its end: {error}",
                            request.collection
                        );
                        locked(&seen).failed = Some(error.to_string());
                    }
                }
            }
        });
        all.insert(name, Driven { task: Some(task), stop, seen });
    }

    /// Ends what this process drives, between two steps: whoever comes next goes on with it.
    pub async fn stop_driving(&self) {
        let all: Vec<JoinHandle<()>> = {
            let mut all = self.rebuilds.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.values_mut().filter_map(Driven::end).collect()
        };
        for task in all {
            _ = task.await;
        }
    }
}

impl Rebuilds {
    fn seen(&self, collection: &str) -> (bool, Seen) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(collection).map_or((false, Seen::default()), |driven| (driven.is_running(), locked(&driven.seen).clone()))
    }

    fn stop(&self, collection: &str) -> Option<JoinHandle<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(collection)?.end()
    }
}

impl Driven {
    fn is_running(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }

    fn end(&mut self) -> Option<JoinHandle<()>> {
        self.stop.cancel();
        self.task.take()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
