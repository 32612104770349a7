//! Who asks, and what that one may see and do.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::{Problem, Role, Serve};
use crate::config;

/// Who asks. The middleware puts it on each request that it lets through.
#[derive(Clone, Debug)]
pub struct Who {
    /// For the journal: the name of the key, `proxy:USER`, or `open`.
    pub name: String,
    pub role: Role,
    /// The only collections that exist for this one; none: all.
    pub collections: Option<Vec<String>>,
    pub via: Via,
    /// Postgres did not confirm the key just now: then it may look, and for nothing else.
    pub unconfirmed: bool,
}

/// How it is known who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A key in the header of the request.
    Key,
    /// A session of somebody who signed in with a key.
    Session,
    /// A proxy that is trusted says so.
    Proxy,
    /// Nobody said so: whoever is on this machine may look (`--open`).
    Open,
}

impl Who {
    /// Does this collection exist for whoever asks?
    pub fn sees(&self, collection: &str) -> bool {
        self.collections.as_ref().is_none_or(|all| all.iter().any(|name| name == collection))
    }

    /// Refuses if the role is too small.
    pub fn needs(&self, role: Role) -> Result<(), Problem> {
        match () {
            () if self.role >= role => Ok(()),
            () if self.unconfirmed => Err(Problem::unavailable("Postgres does not answer, so nothing can be changed")),
            () => Err(Problem::needs(role, self.role)),
        }
    }
}

impl Serve {
    /// May this one do what the role may? On a server that is read-only nobody is more than a reader.
    pub fn allow(&self, who: &Who, role: Role) -> Result<(), Problem> {
        if self.options.read_only && role > Role::Reader {
            return Err(Problem::forbidden(
                "this server is read-only (--read-only)",
                "use the command line, or a server without --read-only",
            ));
        }
        who.needs(role)
    }

    /// A configured collection that exists for whoever asks.
    pub fn collection(&self, who: &Who, name: &str) -> Result<&config::Collection, Problem> {
        let known = self.catchword.config().collections.iter().find(|known| known.name == name);
        known.filter(|known| who.sees(&known.name)).ok_or_else(|| Problem::unknown_collection(name))
    }

    /// The configured collections that exist for whoever asks.
    pub fn collections<'a>(&'a self, who: &'a Who) -> impl Iterator<Item = &'a config::Collection> {
        self.catchword.config().collections.iter().filter(|known| who.sees(&known.name))
    }
}

/// For handlers. Where nobody is known the middleware has answered already.
impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Who, Problem> {
        parts.extensions.get::<Who>().cloned().ok_or_else(Problem::unauthorized)
    }
}
