//! `catchword worker`

use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::{Args, Worker as Options};
use super::{End, probes};
use crate::Catchword;
use crate::elastic::Support;
use crate::gauges::Part;
use crate::telemetry::Telemetry;

/// Whoever stops a pod waits 30 s; a batch that is not through by then is released by the end of its connection.
const GRACE: Duration = Duration::from_secs(25);

pub(super) async fn run(args: &Args, options: &Options) -> anyhow::Result<End> {
    let catchword = args.open()?;
    let telemetry = Telemetry::start(&catchword, Part::Worker)?;
    super::check_database(&catchword).await?;
    catchword.serve_what_can_be_served().await?;
    let worker = catchword.worker(&options.name, &[]);
    let stop = CancellationToken::new();
    let listener = tokio::net::TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("cannot listen on {}; choose another address with --listen", options.listen))?;
    // before anybody is told that it runs: who is told may stop it
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tracing::info!(listen = %listener.local_addr()?, "the worker runs; it serves {}", names(&catchword));
    crate::worker::tell_what_is_unseen(&catchword.context).await;
    let server = tokio::spawn(probes::serve(listener, worker.clone(), telemetry.clone(), stop.clone()));
    tokio::spawn(log_engine(catchword.clone()));
    let mut running = tokio::spawn({
        let stop = stop.clone();
        async move { worker.run(stop).await }
    });

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        // the loop ends on its own only if it could not begin
        ended = &mut running => ended.context("the loop panicked")??,
    }
    tracing::info!("stopping: the current batch is finished first");
    stop.cancel();
    if !running.is_finished() {
        tokio::select! {
            ended = running => ended.context("the loop panicked")??,
            () = tokio::time::sleep(GRACE) => tracing::warn!("the batch was not finished after 25 s; its jobs are released"),
            _ = terminate.recv() => tracing::warn!("stopped at once"),
            _ = interrupt.recv() => tracing::warn!("stopped at once"),
        }
    }
    server.abort();
    telemetry.end().await;
    tracing::info!("stopped");
    Ok(End::Done)
}

/// Which server the documents are in. One that is down is asked when it is needed.
async fn log_engine(catchword: Catchword) {
    let Ok(engine) = catchword.elastic().engine().await else { return };
    match engine.support() {
        Support::Known => tracing::debug!("the documents are in {engine}"),
        Support::Newer => tracing::warn!("the documents are in {engine}, which catchword was not tested with; look for a newer catchword"),
        Support::No(why) => tracing::error!("the documents are in {engine}: {why}"),
    }
}

fn names(catchword: &Catchword) -> String {
    let names: Vec<&str> = catchword.config().collections.iter().map(|c| c.name.as_str()).collect();
    names.join(", ")
}
