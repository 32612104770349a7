//! `catchword serve`

use std::time::Duration;

use anyhow::{Context, bail};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::End;
use super::args::{Args, Serve as Words};
use crate::serve::{self, Options, Proxy, Serve};
use crate::{Catchword, api_key, console};

/// Postgres is not waited for longer at the start.
const START: Duration = Duration::from_secs(5);
/// How often it is read which collections can be served. Whoever waits for a key needs it.
const REFRESH: Duration = Duration::from_secs(30);

pub(super) async fn run(args: &Args, words: &Words) -> anyhow::Result<End> {
    let catchword = args.open()?;
    let loopback = words.listen.ip().to_canonical().is_loopback();
    let proxy =
        words.trust_user_header.clone().map(|header| Proxy { header, networks: words.trusted_proxies.clone(), role: words.proxy_role });
    may_start(&catchword, loopback || proxy.is_some(), words).await?;
    let listener = tokio::net::TcpListener::bind(words.listen)
        .await
        .with_context(|| format!("cannot listen on {}; choose another address with --listen", words.listen))?;
    let options = Options {
        base: words.base_path.clone(),
        open: words.open,
        read_only: words.read_only,
        show_documents: words.show_documents,
        most_due: words.most_due,
        loopback,
        hosts: words.hosts.clone(),
        proxy,
    };
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (address, base, stop) = (listener.local_addr()?, &options.base, CancellationToken::new());
    tracing::info!(listen = %address, "the API is at http://{address}{base}/api/v1, the console at http://{address}{base}/");
    let serve = Serve::new(catchword.clone(), args.environment()?, options, console::pages());
    let refreshing = tokio::spawn(refresh(catchword));
    let mut running = tokio::spawn(serve::serve(listener, serve.clone(), stop.clone()));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        ended = &mut running => ended.context("the server panicked")?,
    }
    tracing::info!("stopping: requests that are under way are answered first");
    stop.cancel();
    refreshing.abort();
    serve.stop_driving().await;
    if !running.is_finished() {
        tokio::select! {
            ended = running => ended.context("the server panicked")?,
            _ = terminate.recv() => tracing::warn!("stopped at once"),
            _ = interrupt.recv() => tracing::warn!("stopped at once"),
        }
    }
    Ok(End::Done)
}

/// Where others can reach it, somebody must be able to say who asks. Where Postgres is down, a server for this machine starts all the
/// same: its pages say so.
async fn may_start(catchword: &Catchword, is_guarded: bool, words: &Words) -> anyhow::Result<()> {
    let asked = tokio::time::timeout(START, async {
        super::check_database(catchword).await?;
        let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
        Ok::<bool, anyhow::Error>(api_key::is_there_one(&mut connection).await?)
    });
    let down = match asked.await {
        Ok(Ok(has_keys)) if has_keys || is_guarded => return Ok(()),
        Ok(Ok(_)) => bail!(
            "{} can be reached by others, and there is no API key; make one with: catchword key create NAME --role operator, \
             or let a proxy say who asks (--trust-user-header), or listen on 127.0.0.1",
            words.listen
        ),
        Ok(Err(error)) if !error.downcast_ref::<crate::Error>().is_some_and(crate::Error::is_absence) => return Err(error),
        Ok(Err(error)) => super::sentence(&error),
        Err(_) => "postgres does not answer within 5 s".into(),
    };
    if !is_guarded {
        bail!(
            "{down}; so it is not known whether there is an API key, and {} can be reached by others: start it when Postgres is up",
            words.listen
        );
    }
    tracing::warn!("{down}; it is served what is known");
    Ok(())
}

/// Keeps what is known of the collections fresh. What is wrong with one is told where somebody asks for it.
async fn refresh(catchword: Catchword) {
    loop {
        if let Err(error) = catchword.serve_what_can_be_served().await {
            tracing::debug!("the collections cannot be read: {error}");
        }
        tokio::time::sleep(REFRESH).await;
    }
}
