//! What is around every page: who looks, where one can go, the search box, the command that shows the same.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use chrono::Utc;

use super::files::{Files, files};
use super::state::State;
use super::text;
use super::words::{Moment, exactly};
use crate::serve::{Problem, Serve, Via, Who};

/// How often a page asks for its numbers, in milliseconds.
const EVERY: u32 = 4_000;

/// Around a page.
pub(super) struct Frame {
    pub base: String,
    pub files: Files,
    pub title: String,
    pub who: Option<Signed>,
    pub tab: Tab,
    /// For the search box.
    pub collections: Vec<String>,
    pub chosen: Option<String>,
    pub typed: String,
    pub command: String,
    pub notice: Option<Notice>,
    pub at: Moment,
    /// Where the numbers of the page come from, if they move.
    pub renew: Option<String>,
}

/// Who looks.
pub(super) struct Signed {
    pub name: String,
    pub role: &'static str,
    pub may_sign_out: bool,
    pub may_sign_in: bool,
}

/// A word about what was done.
pub(super) struct Notice {
    pub state: State,
    pub word: String,
    pub text: String,
}

/// The pages that can be reached from each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Overview,
    Dead,
    Reindexes,
    Audits,
    Rebuilds,
    Journal,
    Checks,
    Doctor,
    None,
}

/// A way to a page.
pub(super) struct Way {
    pub name: &'static str,
    pub href: &'static str,
    pub here: bool,
}

const TABS: [(Tab, &str, &str); 8] = [
    (Tab::Overview, "Overview", "/"),
    (Tab::Dead, "Dead letters", "/dead"),
    (Tab::Reindexes, "Reindexes", "/reindexes"),
    (Tab::Audits, "Audits", "/audits"),
    (Tab::Rebuilds, "Rebuilds", "/rebuilds"),
    (Tab::Journal, "Journal", "/journal"),
    (Tab::Checks, "Checks", "/checks"),
    (Tab::Doctor, "Doctor", "/doctor"),
];

impl Frame {
    /// Around a page that somebody sees.
    pub fn of(serve: &Serve, who: &Who, tab: Tab, title: impl Into<String>) -> Frame {
        Frame {
            who: Some(Signed {
                name: text::line(&who.name),
                role: who.role.name(),
                may_sign_out: who.via == Via::Session,
                may_sign_in: who.via == Via::Open,
            }),
            collections: serve.collections(who).map(|collection| collection.name.clone()).collect(),
            tab,
            ..Frame::without_anybody(serve, title)
        }
    }

    /// Around a page that anybody sees.
    pub fn without_anybody(serve: &Serve, title: impl Into<String>) -> Frame {
        Frame {
            base: serve.options.base.clone(),
            files: files(),
            title: title.into(),
            who: None,
            tab: Tab::None,
            collections: Vec::new(),
            chosen: None,
            typed: String::new(),
            command: String::new(),
            notice: None,
            at: exactly(Utc::now()),
            renew: None,
        }
    }

    /// The command that shows the same.
    pub fn command(mut self, command: impl Into<String>) -> Frame {
        self.command = command.into();
        self
    }

    /// The collection that the page is about.
    pub fn about(mut self, collection: &str) -> Frame {
        self.chosen = Some(collection.to_owned());
        self
    }

    /// Its numbers move: they are asked for here.
    pub fn renewed_by(mut self, path: impl Into<String>) -> Frame {
        self.renew = Some(path.into());
        self
    }

    pub fn is_chosen(&self, name: &str) -> bool {
        self.chosen.as_deref() == Some(name)
    }

    pub fn tabs(&self) -> Vec<Way> {
        if self.who.is_none() {
            return Vec::new();
        }
        TABS.into_iter().map(|(tab, name, href)| Way { name, href, here: tab == self.tab }).collect()
    }

    pub fn every(&self) -> u32 {
        EVERY
    }
}

/// The page, or why it could not be made.
pub(super) fn page(template: &impl askama::Template) -> Result<Response, Problem> {
    page_with(StatusCode::OK, template)
}

pub(super) fn page_with(status: StatusCode, template: &impl askama::Template) -> Result<Response, Problem> {
    match template.render() {
        Ok(html) => Ok((status, Html(html)).into_response()),
        Err(error) => Err(Problem::internal(format!("the page could not be made: {error}"), "tell the makers of catchword")),
    }
}
