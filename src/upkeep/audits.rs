//! Audits that are due or were asked for. One runs in a process at a time, beside everything else, and slowly if nothing is wrong.

use tokio_util::sync::CancellationToken;

use super::Upkeep;
use super::round::Asked;
use crate::Error;
use crate::audit::{self, Report};
use crate::context::Context;

/// Keys a second of an audit that nothing is wrong with: a million takes about half an hour, and nobody notices.
const SLOWLY: u32 = 1_000;
/// Keys a second where an index lost writes, or commits were lost: readers miss something now.
const QUICKLY: u32 = 20_000;

impl Upkeep {
    pub(super) fn is_auditing(&self) -> bool {
        self.audit.as_ref().is_some_and(|audit| !audit.is_finished())
    }

    /// Starts one of these, if none runs in this process.
    pub(super) fn start_audit(&mut self, asked: Vec<Asked>, stop: &CancellationToken) {
        if !asked.is_empty() && !self.is_auditing() {
            let (context, stop) = (self.context.clone(), stop.clone());
            self.audit = Some(tokio::spawn(async move { first_that_is_free(&context, &asked, &stop).await }));
        }
    }
}

/// Runs the first audit that no other process runs.
async fn first_that_is_free(context: &Context, asked: &[Asked], stop: &CancellationToken) {
    for Asked { id, reason } in asked {
        let rate = if reason == "schedule" { SLOWLY } else { QUICKLY };
        match audit::resume_audit(context, *id, Some(rate), &|_| (), stop).await {
            Ok(report) => {
                say(&report, reason);
                if report.is_other_content() && report.content_share.is_some_and(|share| share < 1.0) {
                    ask_for_all(context, &report.collection).await;
                }
                return;
            }
            // another process runs it, or has just finished it
            Err(refused @ Error::Refused { .. }) => tracing::debug!("{refused}"),
            Err(Error::Held(why)) => tracing::error!("{why}"),
            Err(Error::Stopped) => return,
            Err(error) => return tracing::warn!("audit {id} goes on in a minute: {error}"),
        }
    }
}

/// What a share of the documents showed concerns all of them.
async fn ask_for_all(context: &Context, collection: &str) {
    let asked = sqlx::query(include_str!("ask_content.sql")).bind(collection).execute(&context.pool).await;
    if let Err(error) = asked {
        tracing::warn!(
            collection,
            "an audit with content could not be requested; run it by hand: catchword audit {collection} --content --repair: {error}"
        );
    }
}

/// One line, as an error where something was wrong.
fn say(report: &Report, reason: &str) {
    let (collection, looked, differ) = (&report.collection, report.looked, report.differ());
    if report.is_in_step() {
        tracing::info!(collection, looked, "audit ({reason}): {collection} is in step, {looked} looked at");
    } else {
        let (kinds, scheduled) = (&report.differences, report.scheduled);
        tracing::error!(
            collection,
            looked,
            differ,
            scheduled,
            ?kinds,
            "audit ({reason}): {differ} of {collection} differ, {scheduled} are scheduled for repair{}",
            report.likely_causes.first().map_or(String::new(), |likely| {
                format!("; other content under equal numbers, likely cause: {}; {}", likely.what, likely.remedy)
            })
        );
    }
}
