//! Where one signs in with an API key.

use askama::Template;
use axum::response::Response;

use super::Console;
use super::asked::Asked;
use super::frame::{Frame, page};
use crate::serve::Problem;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    frame: Frame,
    refused: bool,
    next: String,
}

pub(super) async fn sign_in(console: Console, asked: Asked) -> Result<Response, Problem> {
    let frame = Frame::without_anybody(&console.serve, "Sign in");
    page(&SignIn { frame, refused: asked.is_on("refused"), next: asked.get("next").unwrap_or("/").to_owned() })
}
