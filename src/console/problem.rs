//! A page that tells what went wrong, and what to do.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

use super::frame::{Frame, Tab};
use super::state::State;
use super::text::{Text, text};
use super::words::capital;
use crate::serve::{Problem, Serve, Who};

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    state: State,
    title: &'static str,
    detail: Text,
    remedy: Text,
    status: u16,
}

/// The page. Status and headers are the caller's.
pub(super) fn problem(serve: &Serve, who: Option<&Who>, problem: &Problem) -> Response {
    let frame = match who {
        Some(who) => Frame::of(serve, who, Tab::None, problem.title),
        None => Frame::without_anybody(serve, problem.title),
    };
    let state = match problem.status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::INTERNAL_SERVER_ERROR => State::NotWell,
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => State::Paused,
        _ => State::Behind,
    };
    let (detail, remedy) = (text(&capital(&problem.detail)), text(&capital(&problem.remedy)));
    let page = ProblemPage { frame, state, title: problem.title, detail, remedy, status: problem.status.as_u16() };
    // the plain words, should the page itself fail
    page.render().map_or_else(|_| problem.detail.clone().into_response(), |html| Html(html).into_response())
}
