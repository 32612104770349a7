//! What a client is told when its wish cannot be met; the only place that knows status codes of failures.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::annotation::BadField;
use crate::search::SearchError;

/// When to ask again, in seconds: about as long as a breaker stays open at first.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Why a request was not served.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The client sent something that cannot be taken: 400, and which field.
    #[error(transparent)]
    BadField(#[from] BadField),
    /// There is nothing of this name: 404.
    #[error("there is no {0}")]
    NotFound(String),
    /// The path exists, the method does not: 405.
    #[error("this path has no such method")]
    Method,
    /// The body is larger than the limit in bytes: 413.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body could not be read to its end: 400.
    #[error("the body could not be read")]
    Unread,
    /// The same `Idempotency-Key` was used for another annotation: 422.
    #[error(
        "this Idempotency-Key was used for another annotation; take a new key for each annotation, and the same one only to repeat a request"
    )]
    KeyTaken,
    /// Elasticsearch is down: 503. Nothing is lost, and saving goes on.
    #[error("search is down for the moment; saving works, and what is saved will be found")]
    SearchAway(#[source] SearchError),
    /// Postgres is down: 503.
    #[error("the database is down for the moment")]
    DatabaseAway(#[source] sqlx::Error),
    /// Another transaction holds the row, or was before us in a deadlock: 503.
    #[error("somebody else is changing this at the moment")]
    Busy(#[source] sqlx::Error),
    /// The answer to a commit was lost: 500, and the client must look before it sends again.
    #[error(
        "the answer to the commit was lost: it may be saved or not; look before you send it again, or send it again with the same Idempotency-Key"
    )]
    CommitUnknown(#[source] sqlx::Error),
    /// Anything else: 500. What it was is in the log and not in the answer.
    #[error("something went wrong in the service")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<catchword::Error> for Problem {
    fn from(error: catchword::Error) -> Self {
        match error {
            catchword::Error::Postgres(error) => error.into(),
            catchword::Error::CommitUnknown(error) => Self::CommitUnknown(error),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => Self::DatabaseAway(error),
            sqlx::Error::Database(ref answer) if is_going_away(answer.code().as_deref()) => Self::DatabaseAway(error),
            sqlx::Error::Database(ref answer) if is_in_the_way(answer.code().as_deref()) => Self::Busy(error),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Misunderstood(_) => Self::Internal(error.into()),
            SearchError::Away(_) => Self::SearchAway(error),
        }
    }
}

/// SQLSTATE classes of a server that is stopping, starting or full: it will come back.
fn is_going_away(code: Option<&str>) -> bool {
    code.is_some_and(|code| ["08", "53", "57"].iter().any(|class| code.starts_with(class)))
}

/// SQLSTATEs of a lock that was not given up in time, and of a deadlock: the same request may succeed a little later.
fn is_in_the_way(code: Option<&str>) -> bool {
    matches!(code, Some("55P03" | "40P01"))
}

impl Problem {
    fn status(&self) -> StatusCode {
        match self {
            Self::BadField(_) | Self::Unread => StatusCode::BAD_REQUEST,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::KeyTaken => StatusCode::UNPROCESSABLE_ENTITY,
            Self::SearchAway(_) | Self::DatabaseAway(_) | Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::CommitUnknown(_) | Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn log(&self) {
        let cause = std::error::Error::source(self).map(ToString::to_string).unwrap_or_default();
        match self.status() {
            StatusCode::SERVICE_UNAVAILABLE => tracing::warn!(cause, "{self}"),
            StatusCode::INTERNAL_SERVER_ERROR => tracing::error!(cause, "{self}"),
            // the client's own mistakes are told to the client
            _ => {}
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.log();
        let status = self.status();
        let body = match &self {
            Self::BadField(BadField { field, .. }) => json!({ "error": self.to_string(), "field": field }),
            Self::TooLarge(_) | Self::Unread => json!({ "error": self.to_string(), "field": "body" }),
            Self::KeyTaken => json!({ "error": self.to_string(), "field": "Idempotency-Key" }),
            _ => json!({ "error": self.to_string() }),
        };
        let mut response = (status, Json(body)).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_is_away_says_when_to_ask_again() {
        let down = Problem::from(SearchError::Away("connection refused".to_owned())).into_response();
        assert_eq!(down.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(down.headers().contains_key(header::RETRY_AFTER));
        let down = Problem::from(sqlx::Error::PoolTimedOut).into_response();
        assert_eq!(down.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(down.headers().contains_key(header::RETRY_AFTER));
    }

    #[test]
    fn a_fault_of_the_service_is_not_shown_to_the_client() {
        let problem = Problem::from(sqlx::Error::ColumnNotFound("secret_column".to_owned()));
        assert_eq!(problem.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!problem.to_string().contains("secret_column"));
    }

    #[test]
    fn a_server_that_stops_or_is_full_comes_back() {
        assert!(is_going_away(Some("57P01")) && is_going_away(Some("53300")));
        assert!(!is_going_away(Some("23505")) && !is_going_away(None));
    }
}
