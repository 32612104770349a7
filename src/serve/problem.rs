//! What went wrong with a request, as RFC 9457 has it, with a remedy beside it.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::Role;
use crate::{Error, config, elastic};

/// Why a request was refused or failed, and what to do about it. It never holds a secret.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// Names the kind of problem for programs: `urn:catchword:problem:unknown-collection`.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// The same for people, in a few words.
    pub title: &'static str,
    #[serde(serialize_with = "number")]
    pub status: StatusCode,
    /// What is so, this time.
    pub detail: String,
    /// What to do about it.
    pub remedy: String,
    /// Which part of the request is wrong, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Box<str>>,
    /// After how many seconds it is worth trying again.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

fn number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

/// In seconds: a server that is down is worth another try so soon.
const SOON: u64 = 5;

impl Problem {
    pub fn new(status: StatusCode, kind: &str, title: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Problem {
        let kind = format!("urn:catchword:problem:{kind}").into();
        Problem { kind, title, status, detail: detail.into(), remedy: remedy.into(), field: None, retry_after: None }
    }

    /// Part of the request is not as it must be.
    pub fn bad(field: impl Into<Box<str>>, detail: impl Into<String>, remedy: impl Into<String>) -> Problem {
        let problem = Problem::new(StatusCode::BAD_REQUEST, "bad-request", "The request is not as it must be", detail, remedy);
        Problem { field: Some(field.into()), ..problem }
    }

    /// Nobody said who asks, or what was said is not believed. Which of these is not told: it would help whoever tries.
    pub fn unauthorized() -> Problem {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "An API key is needed",
            "there is no API key in the request, or it is unknown, revoked or expired",
            "send a valid one in the header Authorization: Bearer cwk_…; an operator makes one with: catchword key create NAME --role reader",
        )
    }

    /// Whoever asks may not do this.
    pub fn forbidden(detail: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "forbidden", "This is not allowed", detail, remedy)
    }

    /// The role is too small.
    pub fn needs(role: Role, has: Role) -> Problem {
        let (role, has) = (role.name(), has.name());
        Problem::forbidden(format!("this needs the role {role}, and the key has the role {has}"), format!("use a key with the role {role}"))
    }

    /// There is no such thing, or it is not for this key: which of the two is not told.
    pub fn not_found(detail: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing", detail, remedy)
    }

    /// There is no such collection for whoever asks.
    pub fn unknown_collection(name: &str) -> Problem {
        let shown: String = name.chars().take(100).collect();
        Problem::new(
            StatusCode::NOT_FOUND,
            "unknown-collection",
            "There is no such collection",
            format!("there is no collection {shown:?} here for this key"),
            "GET /api/v1/collections lists them",
        )
    }

    /// It cannot be done as things stand.
    pub fn conflict(detail: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, "conflict", "It cannot be done as things stand", detail, remedy)
    }

    /// Too much was asked within a second, or too much is queued.
    pub fn too_many(detail: impl Into<String>, seconds: u64) -> Problem {
        let remedy = format!("try again in {seconds} s");
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests", detail, remedy);
        Problem { retry_after: Some(seconds), ..problem }
    }

    /// A server behind this one does not answer.
    pub fn unavailable(detail: impl Into<String>) -> Problem {
        let remedy = "see whether it is up (catchword check); nothing is lost meanwhile, try again in a moment";
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "A server does not answer", detail, remedy);
        Problem { retry_after: Some(SOON), ..problem }
    }

    /// It is our own fault, or that of the setup. What exactly is in the log.
    pub fn internal(detail: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Something is wrong with the server", detail, remedy)
    }
}

/// What the library says, as an answer.
impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let remedy = error.remedy();
        match &error {
            Error::Config(config::Error::NoSuchCollection { name, .. }) => Problem::unknown_collection(name),
            Error::Postgres(_) if error.is_absence() => Problem::unavailable(error.to_string()),
            Error::Postgres(_) => of_postgres(&error),
            Error::Elastic(inner) => match inner {
                elastic::Error::Request { .. } => Problem::unavailable(error.to_string()),
                _ => Problem::conflict(error.what(), remedy.unwrap_or_else(|| "see: catchword doctor".into())),
            },
            Error::Refused { .. } | Error::Held(_) => {
                Problem::conflict(error.what(), remedy.unwrap_or_else(|| "see: catchword status".into()))
            }
            Error::Stopped => Problem::unavailable("this server is stopping"),
            _ => Problem::internal(error.what(), remedy.unwrap_or_else(|| "see: catchword doctor".into())),
        }
    }
}

/// What Postgres answered: a refusal of our own functions has a hint that says what to do.
fn of_postgres(error: &Error) -> Problem {
    match error.sqlstate().as_deref() {
        Some(Error::INSUFFICIENT_PRIVILEGE) => Problem::forbidden(
            "the database role of this server may not do this",
            "run catchword serve as an operator of migrations/grants.sql; run that script again after each migrate",
        ),
        Some(Error::LOCK_NOT_AVAILABLE | Error::DEADLOCK_DETECTED | Error::QUERY_CANCELED | Error::TRANSACTION_TIMEOUT) => {
            Problem::unavailable(format!("it took too long, or somebody held a lock: {error}"))
        }
        _ => {
            let text = error.to_string();
            let (detail, remedy) = text.split_once("; ").unwrap_or((&text, "correct the request"));
            Problem::conflict(detail.trim_start_matches("postgres says: "), remedy)
        }
    }
}

/// What the library refuses because of this part of the request.
pub(crate) fn input_error(field: &'static str) -> impl Fn(Error) -> Problem {
    move |error| {
        let is_gone = error.what().starts_with("there is no collection");
        let by_value = !is_gone && error.sqlstate().is_some_and(|code| code == "CW001" || code.starts_with("22"));
        let by_key = matches!(&error, Error::Refused { what, .. } if what.contains("cannot be"));
        if !by_value && !by_key {
            return error.into();
        }
        let (sentence, remedy) = (error.what(), error.remedy());
        let (what, hint) = sentence.split_once("; ").map_or((sentence.as_str(), None), |(what, hint)| (what, Some(hint)));
        let remedy = remedy.or(hint.map(str::to_owned)).unwrap_or_else(|| "correct it".into());
        Problem::bad(field, what.trim_start_matches("postgres says: "), remedy)
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Problem {
        Problem::from(Error::from(error))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // so that a page can be made of it, where somebody looks at pages
        response.extensions_mut().insert(self);
        response
    }
}
