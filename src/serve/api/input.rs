//! What a request says, taken apart. Whatever is wrong is told by the name of the part that is.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Query, RawPathParams, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;

use crate::serve::{Problem, guard};

/// Characters of what a parser says that are repeated.
const SHOWN: usize = 300;
/// Characters of a tag.
const MOST_TAG: usize = 100;

/// A body of JSON.
pub(super) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        match Json::<T>::from_request(request, state).await {
            Ok(Json(value)) => Ok(Body(value)),
            Err(rejection) => Err(no_body(&rejection)),
        }
    }
}

fn no_body(rejection: &JsonRejection) -> Problem {
    match rejection {
        JsonRejection::MissingJsonContentType(_) => Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not-json",
            "The body must be JSON",
            "the body is not declared to be JSON",
            "send the header Content-Type: application/json",
        ),
        JsonRejection::BytesRejection(_) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => guard::too_large(),
        _ => wrong("body", &rejection.body_text()),
    }
}

/// What stands behind the question mark.
pub(super) struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asked<T>, Problem> {
        let asked: Result<Query<T>, QueryRejection> = Query::from_request_parts(parts, state).await;
        asked.map(|Query(value)| Asked(value)).map_err(|rejection| wrong("query", &rejection.body_text()))
    }
}

/// What the parser says, under the name of what it is about.
fn wrong(all: &str, text: &str) -> Problem {
    let said = text.split_once(": ").map_or(text, |(_, said)| said);
    let quoted = || said.split('`').nth(1).filter(|_| said.starts_with("missing field") || said.starts_with("unknown field"));
    let is_path = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_.[]".contains(c));
    let named = said.split_once(": ").map(|(word, _)| word).filter(is_path);
    let field = quoted().or(named).unwrap_or(all).to_owned();
    let detail: String = said.chars().take(SHOWN).collect();
    Problem::bad(field, detail, "GET /api/v1/openapi.json says what it must be")
}

/// What stands in the path.
pub(super) struct Place(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Place {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Place, Problem> {
        let raw = RawPathParams::from_request_parts(parts, state).await;
        let raw = raw.map_err(|rejection| no_text(rejection.body_text().split('`').nth(1).unwrap_or("path")))?;
        Ok(Place(raw.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}

impl Place {
    pub fn collection(&self) -> Result<&str, Problem> {
        self.text("collection")
    }

    pub fn id(&self) -> Result<i64, Problem> {
        let wrong = || Problem::bad("id", "this is no number", "write a number, as lists have it");
        self.text("id")?.parse().map_err(|_| wrong())
    }

    fn text(&self, name: &str) -> Result<&str, Problem> {
        let found = self.0.iter().find(|(found, _)| found == name);
        found.map(|(_, text)| text.as_str()).ok_or_else(|| no_text(name))
    }
}

pub(super) fn no_text(field: &str) -> Problem {
    Problem::bad(field, "this is no text in UTF-8", "percent-encode it as UTF-8")
}

/// With its `%XX` as the bytes that they mean. None: that is no text.
pub(super) fn decoded(raw: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let hex = [rest.next()?, rest.next()?];
        let hex = hex.iter().all(u8::is_ascii_hexdigit).then_some(hex)?;
        bytes.push(u8::from_str_radix(str::from_utf8(&hex).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// A text that Postgres can keep, of 1 to `most` characters.
pub(super) fn text<'a>(field: &str, text: &'a str, most: usize) -> Result<&'a str, Problem> {
    match text.chars().count() {
        _ if text.contains('\0') => Err(Problem::bad(field, "it holds the character 0, which no text in Postgres has", "leave it out")),
        n if n == 0 || n > most => Err(Problem::bad(field, format!("it has {n} characters"), format!("write 1 to {most}"))),
        _ => Ok(text),
    }
}

pub(super) fn tag(given: Option<&str>) -> Result<Option<&str>, Problem> {
    given.map(|tag| text("tag", tag, MOST_TAG)).transpose()
}

/// A span of time, as in `5s`.
pub(super) fn span(field: &str, text: &str, most: Duration) -> Result<Duration, Problem> {
    let shown = humantime::format_duration(most);
    let wrong = || {
        Problem::bad(
            field,
            format!("{:?} is no span of time up to {shown}", text.chars().take(40).collect::<String>()),
            "write for instance 5s",
        )
    };
    // without a unit it is a number, and nobody knows of what
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    humantime::parse_duration(text).ok().filter(|span| has_unit && *span <= most).ok_or_else(wrong)
}

/// A moment, with its zone.
pub(super) fn time(field: &str, text: &str) -> Result<DateTime<Utc>, Problem> {
    let wrong = || Problem::bad(field, "this is no time", "write for instance 2026-11-16T12:30:00Z");
    DateTime::parse_from_rfc3339(text).map(|time| time.to_utc()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::{decoded, wrong};

    #[test]
    fn a_key_may_be_any_text() {
        assert_eq!(decoded("a%2Fb/c%20d+e").as_deref(), Some("a/b/c d+e"));
        assert_eq!(decoded("%C3%A9").as_deref(), Some("é"));
        for no_text in ["%", "%2", "%zz", "%ff", "%+1", "é%ff"] {
            assert_eq!(decoded(no_text), None, "{no_text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_its_name() {
        let field = |text: &str| wrong("body", text).field.unwrap().into_string();
        assert_eq!(field("Failed to deserialize the JSON body into the target type: keys[1]: invalid type: integer `1`"), "keys[1]");
        assert_eq!(field("Failed to deserialize the JSON body into the target type: missing field `keys` at line 1"), "keys");
        assert_eq!(field("Failed to deserialize the JSON body into the target type: x: unknown field `x`, expected `keys`"), "x");
        assert_eq!(field("Failed to parse the request body as JSON: EOF while parsing a value"), "body");
    }
}
