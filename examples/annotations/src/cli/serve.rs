use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;

use annotations::serve::{FAREWELL, open, serve};
use annotations::sync::schedule_sync_annotations;
use anyhow::Context;
use catchword::Part;
use catchword::config::{Config, Environment};
use catchword::telemetry::traces;
use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use super::Security;

/// Serve the HTTP interface: save, read, change, delete and search annotations.
///
/// Needs the tables (`annotation-api migrate`) and catchword's triggers and index (`catchword
/// migrate`). Elasticsearch may be down: saving goes on, search answers 503 meanwhile, and what was
/// saved is indexed when it is back. Stops on SIGTERM or SIGINT after the requests under way.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; port 0 takes a free one and prints it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5000")]
    listen: SocketAddr,
    /// What is kept in step: the same file that `catchword` reads
    #[arg(long, env = "CATCHWORD_CONFIG", value_name = "FILE", default_value = "catchword.toml")]
    config: PathBuf,
    /// Run the periodic task here, instead of beside it with `catchword worker`
    #[arg(long)]
    sync: bool,
    #[command(flatten)]
    security: Security,
}

impl Serve {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        log_to_stderr()?;
        let config = Config::read(&self.config)?;
        let environment = Environment::from_process(self.security.tls())?;
        let listener = TcpListener::bind(self.listen).await.with_context(|| format!("cannot listen on {}", self.listen))?;
        let part = if self.sync { Part::Worker } else { Part::Application };
        let service = open(config, &environment, part).await?;
        let stop = stop_on_signal()?;
        let syncing = self.sync.then(|| tokio::spawn(schedule_sync_annotations(service.catchword.clone(), stop.clone())));
        println!("listening on http://{}", listener.local_addr()?);
        let telemetry = service.telemetry.clone();
        serve(listener, service, stop.clone()).await.context("cannot serve any longer")?;
        stop.cancel();
        let ended = match syncing {
            Some(syncing) => end(syncing).await,
            None => Ok(()),
        };
        telemetry.end().await;
        ended
    }
}

/// RUST_LOG says how much; without it what a person wants to know, and not the chatter of the clock and of exports. Spans go to a
/// collector, if OTEL_EXPORTER_OTLP_ENDPOINT names one.
fn log_to_stderr() -> anyhow::Result<()> {
    let usual = "info,tokio_cron_scheduler=warn,opentelemetry=off,opentelemetry_sdk=off,opentelemetry-otlp=off";
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let lines = tracing_subscriber::fmt::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(traces()?).init();
    Ok(())
}

/// Lets the batch under way be finished; one that takes too long is released with its connection,
/// and its jobs are free again.
async fn end(syncing: JoinHandle<Result<(), catchword::Error>>) -> anyhow::Result<()> {
    match tokio::time::timeout(FAREWELL, syncing).await {
        Ok(ended) => Ok(ended??),
        Err(_) => Ok(()),
    }
}

/// Cancelled by the first SIGTERM or SIGINT.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stopped.cancel();
    });
    Ok(stop)
}
