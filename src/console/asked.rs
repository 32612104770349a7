//! What a request asks for, behind the question mark or in a form: names and values, as they were sent.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use url::form_urlencoded;

use crate::serve::Problem;

/// Names and values. A name that is there twice has its first value.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked(Vec<(String, String)>);

impl Asked {
    fn of(text: &[u8]) -> Asked {
        Asked(form_urlencoded::parse(text).map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// What was said, if it is more than nothing.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// What was said as it is, spaces and all.
    pub fn exactly(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// A box that was ticked.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// What must be there.
    pub fn must(&self, name: &str) -> Result<&str, Problem> {
        self.get(name).ok_or_else(|| Problem::bad(name, format!("{name} is missing"), "fill it in"))
    }

    /// A number, if something was said.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Problem> {
        let parsed = |value: &str| value.replace([',', ' '], "").parse();
        let bad = |value: &str| Problem::bad(name, format!("{name} is no number: {}", super::text::line(value)), "write a whole number");
        self.get(name).map(|value| parsed(value).map_err(|_| bad(value))).transpose()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Asked, Self::Rejection> {
        Ok(Asked::of(parts.uri.query().unwrap_or_default().as_bytes()))
    }
}

/// A form that was sent.
#[derive(Debug)]
pub(super) struct Form(pub Asked);

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Form, Problem> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|_| Problem::bad("body", "the form could not be read", "send it again; it may have 64 KB"))?;
        Ok(Form(Asked::of(&bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::Asked;

    #[test]
    fn values_are_decoded_trimmed_and_empty_ones_are_none() {
        let asked = Asked::of(b"key=%20a%2Fb+c%20&empty=&n=12%2C000&key=second");
        assert_eq!(asked.get("key"), Some("a/b c"));
        assert_eq!(asked.exactly("key"), Some(" a/b c "));
        assert_eq!((asked.get("empty"), asked.get("absent")), (None, None));
        assert_eq!(asked.number::<i64>("n").unwrap(), Some(12_000));
        assert!(asked.number::<i64>("key").is_err() && asked.must("empty").is_err());
    }
}
