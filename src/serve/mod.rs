//! `catchword serve`: the API, and the ground under the console. Who asks, what that one may do, and what every answer carries is decided
//! here, once; what is done is done by the library.

pub mod actions;
mod api;
mod guard;
mod keys;
mod network;
mod origin;
mod problem;
mod rate;
mod session;
mod shared;
mod sign;
mod who;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderName;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::api_key::Role;
pub use network::Network;
pub use problem::Problem;
pub(crate) use problem::input_error;
pub use who::{Via, Who};

use crate::Catchword;
use crate::accept::{self, Limits};
use crate::config::Environment;

/// The largest body of a request, in bytes.
pub(crate) const BODY_BYTES: usize = 64 * 1024;
/// A connection to Postgres is not waited for longer: somebody waits for the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections at a time.
const CONNECTIONS: usize = 512;
/// The head of the next request must be here by then.
const HEAD: Duration = Duration::from_secs(15);
/// The largest head, in bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// After this a connection is closed behind its request: so nobody keeps one for ever.
const LIFE: Duration = Duration::from_secs(120);

/// What a server of ours works with. Cheap to clone.
#[derive(Clone)]
pub struct Serve {
    pub catchword: Catchword,
    pub environment: Arc<Environment>,
    pub options: Arc<Options>,
    pages: Pages,
    keys: Arc<keys::Keys>,
    sessions: Arc<session::Sessions>,
    rates: Arc<rate::Rates>,
    readings: Arc<shared::Readings>,
    due_jobs: Arc<actions::DueJobs>,
    rebuilds: Arc<actions::Rebuilds>,
}

/// How a server was started.
#[derive(Clone, Debug)]
pub struct Options {
    /// What stands before every path: `/catchword`, or nothing.
    pub base: String,
    /// Is whoever is on this machine a reader, without a key?
    pub open: bool,
    /// Is nobody more than a reader?
    pub read_only: bool,
    /// Are the bodies of documents shown?
    pub show_documents: bool,
    /// Due jobs of a collection above which nobody may schedule more by the API.
    pub most_due: i64,
    /// Does it listen on this machine only? Then requests must be meant for this machine.
    pub loopback: bool,
    /// Other names that requests may be meant for.
    pub hosts: Vec<String>,
    pub proxy: Option<Proxy>,
}

/// A proxy that says who asks.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// The header that names the user.
    pub header: HeaderName,
    /// Where it is believed from.
    pub networks: Vec<Network>,
    /// What its users may do.
    pub role: Role,
}

/// The pages for people, which are the console's.
#[derive(Clone)]
pub struct Pages {
    pub routes: fn() -> Router<Serve>,
    /// A page that tells of a problem. Status and headers are put on it afterwards.
    pub problem: fn(&Serve, Option<&Who>, &Problem) -> Response,
}

impl Serve {
    pub fn new(catchword: Catchword, environment: Environment, options: Options, pages: Pages) -> Serve {
        Serve {
            catchword,
            environment: Arc::new(environment),
            options: Arc::new(options),
            pages,
            keys: Arc::default(),
            sessions: Arc::default(),
            rates: Arc::default(),
            readings: Arc::default(),
            due_jobs: Arc::default(),
            rebuilds: Arc::default(),
        }
    }

    /// A connection for a few statements of one request.
    pub(crate) async fn connection(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Postgres>, Problem> {
        let acquired = tokio::time::timeout(PATIENCE, self.catchword.context.pool.acquire()).await;
        Ok(acquired.map_err(|_| Problem::unavailable("Postgres gives no connection"))??)
    }
}

/// Everything that is answered, behind everything that guards it.
pub fn router(serve: Serve) -> Router {
    Router::new()
        .merge((serve.pages.routes)())
        .merge(sign::routes())
        .route("/healthz", get(async || "alive\n"))
        .nest("/api/v1", api::routes())
        .fallback(async || Problem::not_found("there is nothing at this address", "GET /api/v1/openapi.json says what there is"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                axum::http::StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "This method is not allowed here",
                "this address does not take the method of the request",
                "the header Allow of this answer says which it takes",
            )
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(from_fn_with_state(serve.clone(), guard::identify))
        .layer(from_fn_with_state(serve.clone(), guard::admit))
        .layer(from_fn_with_state(serve.clone(), guard::finish))
        .with_state(serve)
}

/// Serves until `stop`, and then what is under way.
pub async fn serve(listener: TcpListener, serve: Serve, stop: CancellationToken) {
    let limits = Limits {
        connections: CONNECTIONS,
        head: HEAD,
        head_bytes: HEAD_BYTES,
        life: LIFE,
        grace: guard::WHOLE,
        keep: true,
        base: serve.options.base.clone(),
    };
    accept::serve(listener, router(serve), limits, stop).await
}
