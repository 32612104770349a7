//! Compares everything, both ways, while traffic flows. What differs goes through the queue, never around it.
//!
//! Three stages. *Rows*: pages of the table's keys, each looked at in every index in real time. *Records*: the same for the keys of
//! deletes. *Documents*: everything that an index shows to readers, from a point in time; what has neither row nor record is an orphan,
//! and what has one was looked at by the other stages. Tombstones need no walk: without row and record they are just what they should be.
//!
//! What differs at first sight is only suspected (`confirm.rs`): a difference counts if it is still there while nothing was written to the
//! key in between and no job is open for it. Such a job would heal it.

mod cause;
mod confirm;
mod content;
mod documents;
mod fields;
mod held;
mod keys;
mod kind;
mod ledger;
mod left_to_it;
mod lock;
mod look;
mod pace;
mod remedy;
mod repair;
mod report;
mod shown_deletes;
mod verified;

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

pub use cause::Cause;
pub(crate) use cause::Facts;
pub(crate) use content::is_same;
pub(crate) use fields::differing_fields;
pub use fields::{Field, Fields};
pub use kind::Kind;
pub use ledger::{Shown, Unfinished, shown, start, stop, unfinished};
pub use report::{Example, Report};
pub use verified::{Switched, Verified, verified};

use crate::collection::{self, Collection};
use crate::context::Context;
use crate::elastic::{Answer, Target};
use crate::{Error, elastic};
use held::Held;
use ledger::{Ledger, Stage};
use pace::Pacer;

/// What is to be compared.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub collection: String,
    /// Only this index; none: every index that must agree.
    pub target: Option<String>,
    /// Schedule what differs.
    pub repair: bool,
    /// Compare documents too where the versions agree.
    pub content: bool,
    /// Only rows of the period since then, and deletes; not what the index shows.
    pub since: Option<DateTime<Utc>>,
    /// Only this share of the keys, above 0 and up to 1.
    pub sample: Option<f64>,
    /// At most so many keys a second.
    pub rate: Option<u32>,
    /// Who asks: `operator`, `rebuild`, …
    pub reason: String,
}

/// Is told how far an audit has come, after each piece of it.
pub type Watch<'a> = &'a (dyn Fn(&Report) + Sync);

/// Compares, from the beginning to the end. The report says what differs; an error means that it could not be told, and that the
/// audit can be resumed.
pub(crate) async fn audit(context: &Context, request: &Request) -> Result<Report, Error> {
    audit_watched(context, request, &|_| (), &CancellationToken::new()).await
}

/// The same, watched and with a way to stop it between two pieces.
pub(crate) async fn audit_watched(
    context: &Context,
    request: &Request,
    watch: Watch<'_>,
    stop: &CancellationToken,
) -> Result<Report, Error> {
    let (collection, targets) = audited(context, &request.collection, request.target.as_deref()).await?;
    if request.content
        && let Err(error) = require_sources(context, &targets).await
    {
        return Err(with_remedy(context, &collection, &targets, error).await);
    }
    let ledger = Ledger::begin(&context.pool, request, &targets).await?;
    run(context, collection, targets, ledger, request.rate, watch, stop).await
}

/// Goes on with an audit that was cut short, where it was.
pub(crate) async fn resume_audit(
    context: &Context,
    id: i64,
    rate: Option<u32>,
    watch: Watch<'_>,
    stop: &CancellationToken,
) -> Result<Report, Error> {
    let ledger = Ledger::read(&context.pool, id).await?;
    let (collection, all) = audited(context, &ledger.collection, None).await?;
    let there = |index: &String| all.iter().any(|target| target.index() == index);
    if let Some(gone) = ledger.targets.iter().find(|index| !there(index)) {
        let name = &collection.name;
        return Err(Error::refused_with(
            format!("index {gone} is no longer one of {name}"),
            format!("begin again: catchword audit {name}"),
        ));
    }
    let targets = ledger.targets.iter().map(Target::new).collect();
    run(context, collection, targets, ledger, rate, watch, stop).await
}

/// The collection as it is attached now, and its indices that are to be compared.
async fn audited(context: &Context, name: &str, target: Option<&str>) -> Result<(Arc<Collection>, Vec<Target>), Error> {
    let config = context.config.collection(Some(name))?;
    let mut connection = context.pool.acquire().await?;
    let collection = collection::load(&mut connection, config, &context.prefix).await?;
    collection.check_targets()?;
    let targets = match target {
        None => collection.targets.clone(),
        Some(index) => collection.targets.iter().filter(|target| target.index() == index).cloned().collect(),
    };
    match (targets.is_empty(), target) {
        (false, _) => Ok((Arc::new(collection), targets)),
        (true, None) => Err(Error::refused_with(format!("collection {name} has no index yet"), "run: catchword migrate")),
        (true, Some(index)) => {
            let has: Vec<&str> = collection.targets.iter().map(Target::index).collect();
            Err(Error::refused(format!("{index} is no index of collection {name}; it has: {}", has.join(", "))))
        }
    }
}

/// Refuses to compare documents that the index does not keep as they were written: all of them would differ.
async fn require_sources(context: &Context, targets: &[Target]) -> Result<(), Error> {
    for target in targets {
        if context.elastic.keeps_sources(target).await?.is_none() {
            let why = "its mapping or settings change _source, so documents are not kept as they were written";
            return Err(Error::refused_with(format!("index {target} cannot be compared by content: {why}"), "leave --content out"));
        }
    }
    Ok(())
}

async fn run(
    context: &Context,
    collection: Arc<Collection>,
    targets: Vec<Target>,
    ledger: Ledger,
    rate: Option<u32>,
    watch: Watch<'_>,
    stop: &CancellationToken,
) -> Result<Report, Error> {
    let _lock = lock::take(&context.pool, ledger.id).await?;
    let mut ledger = ledger;
    if ledger.content_share.is_some() && require_sources(context, &targets).await.is_err() {
        ledger.content_share = None;
    }
    let mut run = Run { context, collection, targets, ledger, pacer: Pacer::new(rate), expected: None, watch, stop };
    run.expected = run.estimate().await;
    match run.walk().await {
        Ok(()) => run.finish().await,
        Err(error) => Err(with_remedy(context, &run.collection, &run.targets, error).await),
    }
}

/// An index that is gone or lacks an alias is told as `status` tells it: with what to run.
async fn with_remedy(context: &Context, collection: &Collection, targets: &[Target], error: Error) -> Error {
    if !matches!(error, Error::Elastic(elastic::Error::Request { answer: Answer::Blocked(_), .. })) {
        return error;
    }
    for target in targets {
        match context.elastic.belongs(target, &collection.targets, &collection.alias, collection.installation).await {
            // it cannot say more
            Ok(()) | Err(elastic::Error::Request { .. }) => {}
            Err(found) => return found.into(),
        }
    }
    error
}

/// An audit under way.
struct Run<'a> {
    context: &'a Context,
    collection: Arc<Collection>,
    targets: Vec<Target>,
    ledger: Ledger,
    pacer: Pacer,
    /// About how many keys and documents it will have looked at in the end.
    expected: Option<u64>,
    watch: Watch<'a>,
    stop: &'a CancellationToken,
}

impl Run<'_> {
    /// All stages, from where it stands to the end.
    async fn walk(&mut self) -> Result<(), Error> {
        loop {
            match self.ledger.stage {
                Stage::Rows | Stage::Records => self.keys().await?,
                Stage::Documents(n) if n < self.targets.len() && self.ledger.since.is_none() => self.documents(n).await?,
                Stage::Documents(_) => return Ok(()),
            }
        }
    }

    fn check_stop(&self) -> Result<(), Error> {
        if self.stop.is_cancelled() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// About how much there is to look at; a guess is good enough for a progress bar, and none is no harm. How much there is of a period
    /// nobody knows.
    async fn estimate(&self) -> Option<u64> {
        if self.ledger.since.is_some() {
            return None;
        }
        let mut connection = self.context.pool.acquire().await.ok()?;
        let (rows, records) = self.collection.estimate(&mut connection).await.ok()?;
        drop(connection);
        let mut documents = 0;
        for target in &self.targets {
            documents += self.context.elastic.document_count(&target.write_alias()).await.ok()?;
        }
        let indices = self.targets.len() as u64;
        let rows = rows.unwrap_or(documents / indices.max(1));
        Some(((rows + records + documents) as f64 * self.ledger.sample.unwrap_or(1.0)).ceil() as u64)
    }

    fn report(&self) -> Report {
        let mut counts = self.ledger.counts.clone();
        for (name, count) in &self.ledger.stage_counts {
            *counts.entry(name.clone()).or_default() += count;
        }
        self.ledger.report(counts, self.expected)
    }

    async fn finish(mut self) -> Result<Report, Error> {
        let Held { paused, blocked } = self.held().await?;
        let likely_causes = if self.report().is_other_content() { self.likely_causes().await? } else { Vec::new() };
        self.ledger.finish(&self.context.pool).await?;
        let report = Report { paused, blocked, likely_causes, ..self.report() };
        (self.watch)(&report);
        Ok(report)
    }
}

impl Run<'_> {
    /// Asked at the end, of the view as it is then: an audit may take hours.
    async fn likely_causes(&self) -> Result<Vec<Cause>, Error> {
        let config = self.context.config.collection(Some(&self.collection.name))?;
        let mut connection = self.context.pool.acquire().await?;
        let now = collection::load(&mut connection, config, &self.context.prefix).await?;
        Ok(Facts::read(&now, &mut connection).await?.causes())
    }
}

/// How many of each kind, by its name; also `pending`, `left` and `unknown`.
type Counts = BTreeMap<String, u64>;
