//! The console: pages for people on call. They are made here, on the server, and work without a script; a small one renews the numbers of
//! the first screen. What is done goes through [`crate::serve::actions`], as in the API, under the same rights and into the same journal.

mod act;
mod asked;
mod audits;
mod checks;
mod collection;
mod dead;
mod doctor;
mod down;
mod files;
mod first;
mod frame;
mod graph;
mod journal;
mod key;
mod problem;
mod rebuilds;
mod reindexes;
mod running;
mod seen;
mod sign_in;
mod state;
mod text;
mod verdict;
mod words;

use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::routing::get;
use axum::{Extension, Router};
use sqlx::Postgres;
use sqlx::pool::PoolConnection;

use crate::serve::{Pages, Problem, Serve};
use seen::{Known, Seen};

/// What `catchword serve` shows to people.
pub fn pages() -> Pages {
    Pages { routes, problem: problem::problem }
}

fn routes() -> Router<Serve> {
    Router::new()
        .route("/", get(first::first))
        .route("/checks", get(checks::checks))
        .route("/doctor", get(doctor::doctor))
        .route("/journal", get(journal::journal))
        .route("/key", get(key::key))
        .route("/dead", get(dead::groups))
        .route("/dead/group/{example}", get(dead::group))
        .route("/dead/letter/{id}", get(dead::letter))
        .route("/collections/{collection}", get(collection::collection))
        .route("/reindexes", get(reindexes::all))
        .route("/reindexes/new", get(reindexes::new))
        .route("/reindexes/{id}", get(reindexes::one))
        .route("/audits", get(audits::audits))
        .route("/rebuilds", get(rebuilds::rebuilds))
        .route("/do/{act}", get(act::ask).post(act::act))
        .route("/sign-in", get(sign_in::sign_in))
        .route("/assets/{name}", get(files::file))
        .layer(Extension(Shared::default()))
}

/// What all pages of a server share. It begins with the first page.
type Shared = Arc<OnceLock<Shown>>;

struct Shown {
    seen: Seen,
    examined: doctor::Examined,
}

/// What a page is made with.
struct Console {
    serve: Serve,
    shared: Shared,
}

impl FromRequestParts<Serve> for Console {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, serve: &Serve) -> Result<Console, Problem> {
        let shared = parts.extensions.get::<Shared>().cloned().unwrap_or_default();
        Ok(Console { serve: serve.clone(), shared })
    }
}

impl Console {
    fn shown(&self) -> &Shown {
        self.shared.get_or_init(|| Shown { seen: Seen::begin(self.serve.clone()), examined: doctor::Examined::default() })
    }

    /// What is known of both servers, at most a second old if they answer.
    async fn known(&self) -> Result<Known, Problem> {
        let known = self.shown().seen.look().await;
        known.ok_or_else(|| Problem::unavailable("neither Postgres nor Elasticsearch has answered yet"))
    }

    async fn connection(&self) -> Result<PoolConnection<Postgres>, Problem> {
        self.serve.connection().await
    }
}
