//! The service from its first connection to its last answer.

use std::time::Duration;

use anyhow::Context;
use catchword::Catchword;
use catchword::Part;
use catchword::config::{Config, Environment};
use catchword::telemetry::Telemetry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::routes::{COLLECTION, Service, router};
use crate::search::SearchClient;

/// How long requests that are under way may take to end after the stop was asked for. A write takes
/// a second or two; longer than this is a client that does not read.
pub const FAREWELL: Duration = Duration::from_secs(10);

/// Opens everything the routes need. Elasticsearch may be down meanwhile. `part` says whether this process runs the loop as well.
pub async fn open(config: Config, environment: &Environment, part: Part) -> anyhow::Result<Service> {
    config.collection(Some(COLLECTION)).context("the service needs its collection")?;
    let catchword = Catchword::connect(config, environment).await?;
    let alias = catchword.readers_alias(COLLECTION).context("the collection has no alias for readers")?;
    let search = SearchClient::new(&environment.elasticsearch, alias).context("cannot make a client for search")?;
    let telemetry = Telemetry::start(&catchword, part)?;
    Ok(Service { catchword, search, telemetry })
}

/// Serves until `stop` comes, then lets requests that are under way end.
pub async fn serve(listener: TcpListener, service: Service, stop: CancellationToken) -> std::io::Result<()> {
    let served = axum::serve(listener, router(service)).with_graceful_shutdown(stop.clone().cancelled_owned());
    let too_long = async {
        stop.cancelled().await;
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        served = served.into_future() => served,
        () = too_long => {
            tracing::warn!("some requests did not end within {FAREWELL:?} and were cut off");
            Ok(())
        }
    }
}
