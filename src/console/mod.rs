//! The pages for people: server-rendered, and every action one call of `serve::actions`.

use axum::Router;
use axum::response::{IntoResponse, Response};

use crate::serve::{Pages, Problem, Serve, Who};

/// What `serve` needs to know of the pages.
pub fn pages() -> Pages {
    Pages { routes, problem }
}

/// The pages. Everything under `/assets/`, `/sign-in` and `/favicon.ico` is answered without a key; all else is for a [`Who`].
pub fn routes() -> Router<Serve> {
    Router::new()
}

/// A page that tells of a problem.
fn problem(_: &Serve, _: Option<&Who>, problem: &Problem) -> Response {
    format!("{}: {}; {}\n", problem.title, problem.detail, problem.remedy).into_response()
}
