use std::error::Error as _;
use std::time::Duration;

use catchword::config::{ElasticsearchSettings, Tls};
use elasticsearch::auth::Credentials;
use elasticsearch::cert::{Certificate, CertificateValidation};
use elasticsearch::http::transport::{SingleNodeConnectionPool, TransportBuilder};
use elasticsearch::{Elasticsearch, SearchParts};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use url::Url;

use super::Ask;
use super::query::query;

/// How long a search may take, the connection included: a reader who waits longer has gone, and a
/// cluster that is down must be reported within two seconds.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// What was found.
#[derive(Debug, Serialize)]
pub struct Found {
    /// How many there are in all.
    pub total: u64,
    /// The part that was asked for, newest first; documents as they are in the index.
    pub rows: Vec<Box<RawValue>>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// Elasticsearch does not answer, or only to say that it cannot; ask again later.
    #[error("elasticsearch is down: {0}")]
    Away(String),
    /// Elasticsearch does not understand the question, or the service the answer: asking again will not help.
    #[error("elasticsearch and the service do not understand each other: {0}")]
    Misunderstood(String),
}

/// Asks Elasticsearch. Cheap to clone: clones share their connections.
#[derive(Clone)]
pub struct SearchClient {
    client: Elasticsearch,
    alias: String,
}

impl SearchClient {
    /// A client for the readers' alias. It connects with the first search, so the service starts
    /// also while Elasticsearch is down.
    pub fn new(settings: &ElasticsearchSettings, alias: String) -> anyhow::Result<Self> {
        let mut transport = TransportBuilder::new(SingleNodeConnectionPool::new(Url::parse(&settings.url)?))
            // a proxy from the environment would see every search
            .disable_proxy()
            .timeout(PATIENCE);
        if let (Some(username), Some(password)) = (&settings.username, &settings.password) {
            transport = transport.auth(Credentials::Basic(username.clone(), password.expose().to_owned()));
        }
        if let Some(api_key) = &settings.api_key {
            transport = transport.auth(Credentials::EncodedApiKey(api_key.expose().to_owned()));
        }
        if let Some(token) = &settings.bearer_token {
            transport = transport.auth(Credentials::Bearer(token.expose().to_owned()));
        }
        transport = match (&settings.ca_file, settings.tls) {
            (_, Tls::Insecure) => transport.cert_validation(CertificateValidation::None),
            (Some(file), Tls::Verified) => {
                let authority = Certificate::from_pem(&std::fs::read(file)?)?;
                transport.cert_validation(CertificateValidation::Full(authority))
            }
            (None, Tls::Verified) => transport,
        };
        Ok(Self { client: Elasticsearch::new(transport.build()?), alias })
    }

    /// Searches. What is saved is found after the index's `refresh_interval`.
    pub async fn search(&self, ask: &Ask) -> Result<Found, SearchError> {
        let (status, body) = self.exchange(ask).await?;
        match status {
            200 => read(&body),
            400 => Err(SearchError::Misunderstood(reason(&body))),
            // also 404: the alias is made by `catchword migrate`, and then the same question is answered
            _ => Err(SearchError::Away(format!("it answered {status}: {}", reason(&body)))),
        }
    }

    async fn exchange(&self, ask: &Ask) -> Result<(u16, String), SearchError> {
        let asked = async {
            let response = self
                .client
                .search(SearchParts::Index(&[&self.alias]))
                // half an answer would look like a whole one in which documents are missing
                .allow_partial_search_results(false)
                .filter_path(&["hits.total.value", "hits.hits._source", "error"])
                .body(query(ask))
                .send()
                .await?;
            let status = response.status_code().as_u16();
            Ok((status, response.text().await?))
        };
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(answer) => answer.map_err(|error: elasticsearch::Error| SearchError::Away(innermost(&error))),
            Err(_) => Err(SearchError::Away(format!("no answer within {PATIENCE:?}"))),
        }
    }
}

/// Reads an answer; `filter_path` leaves out what is empty.
fn read(body: &str) -> Result<Found, SearchError> {
    #[derive(Deserialize)]
    struct Answer {
        hits: Hits,
    }
    #[derive(Deserialize)]
    struct Hits {
        total: Total,
        #[serde(default)]
        hits: Vec<Hit>,
    }
    #[derive(Deserialize)]
    struct Total {
        value: u64,
    }
    #[derive(Deserialize)]
    struct Hit {
        #[serde(rename = "_source")]
        source: Box<RawValue>,
    }
    let answer: Answer = serde_json::from_str(body).map_err(|error| SearchError::Misunderstood(error.to_string()))?;
    Ok(Found { total: answer.hits.total.value, rows: answer.hits.hits.into_iter().map(|hit| hit.source).collect() })
}

/// Elasticsearch's own word for what went wrong: its kind, and not its text, which may quote what was searched for.
fn reason(body: &str) -> String {
    let kind =
        serde_json::from_str::<serde_json::Value>(body).ok().and_then(|answer| answer.pointer("/error/type")?.as_str().map(str::to_owned));
    kind.unwrap_or_else(|| "no reason given".to_owned())
}

/// The innermost cause says it best (`Connection refused`), and the outer ones repeat the address.
fn innermost(error: &elasticsearch::Error) -> String {
    let mut cause = error.source();
    let mut text = error.to_string();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_hits_is_an_empty_one() {
        let found = read(r#"{"hits":{"total":{"value":0}}}"#).unwrap();
        assert_eq!((found.total, found.rows.len()), (0, 0));
    }

    #[test]
    fn documents_are_passed_on_as_they_are() {
        let found = read(r#"{"hits":{"total":{"value":7},"hits":[{"_source":{"id" : "a"}}]}}"#).unwrap();
        assert_eq!(serde_json::to_string(&found).unwrap(), r#"{"total":7,"rows":[{"id" : "a"}]}"#);
    }

    #[test]
    fn what_is_no_answer_is_an_error_and_not_an_empty_one() {
        for body in ["", "{}", "<html>", r#"{"hits":{}}"#] {
            assert!(matches!(read(body), Err(SearchError::Misunderstood(_))), "{body}");
        }
    }

    #[test]
    fn a_reason_is_its_kind_alone() {
        assert_eq!(reason(r#"{"error":{"type":"parsing_exception","reason":"[secret]"}}"#), "parsing_exception");
        assert_eq!(reason("<html>"), "no reason given");
    }
}
