use std::error::Error as _;
use std::fmt;
use std::fs;

use bytes::Bytes;
use elasticsearch::Elasticsearch;
use elasticsearch::auth::Credentials as ClientCredentials;
use elasticsearch::cert::{Certificate, CertificateValidation};
use elasticsearch::http::Method;
use elasticsearch::http::headers::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use elasticsearch::http::response::Response;
use elasticsearch::http::transport::{SingleNodeConnectionPool, TransportBuilder};
use tokio::time::{Instant, timeout_at};

use super::{Address, Answer, Credentials, Error, Transport};

/// A client for one Elasticsearch. Cheap to clone; every clone shares its connections.
#[derive(Clone)]
pub struct Elastic {
    client: Elasticsearch,
    shown: String,
}

/// A request, ready to be sent more than once.
pub(super) struct Request<'a> {
    pub method: Method,
    pub path: &'a str,
    pub query: &'a [(&'a str, &'a str)],
    pub content_type: &'static str,
    pub body: Option<Bytes>,
}

/// What came back, read to its end.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub status: u16,
    pub body: Bytes,
}

impl Elastic {
    /// Makes a client. Nothing is sent yet.
    pub fn open(address: &Address) -> Result<Elastic, Error> {
        let mut builder = TransportBuilder::new(SingleNodeConnectionPool::new(address.url.clone()))
            // a proxy from the environment would see, and could answer, every write
            .disable_proxy()
            .cert_validation(cert_validation(address)?);
        builder = match address.credentials.clone() {
            Credentials::None => builder,
            Credentials::Basic { username, password } => builder.auth(ClientCredentials::Basic(username, password)),
            Credentials::ApiKey(encoded) => builder.auth(ClientCredentials::EncodedApiKey(encoded)),
        };
        let transport = builder.build().map_err(|error| Error::Client(error.to_string()))?;
        Ok(Elastic { client: Elasticsearch::new(transport), shown: address.url.to_string() })
    }

    /// Sends a request and reads the whole answer, whatever its status, before the deadline.
    ///
    /// A connection that broke is tried once more, at once: balancers drop idle connections after 60 s, and a worker that
    /// wakes every minute meets that. Versions make a write that landed twice harmless. A server that is not there or
    /// does not answer in time is not asked again.
    pub(super) async fn exchange(&self, request: &Request<'_>, deadline: Instant) -> Result<Reply, Answer> {
        if Instant::now() >= deadline {
            return Err(Answer::Unknown("not sent, no time was left".to_owned()));
        }
        let sent_and_read = async {
            let response = match self.send(request, deadline).await {
                Err(error) if is_broken_connection(&error) => self.send(request, deadline).await?,
                sent => sent?,
            };
            let status = response.status_code().as_u16();
            Ok(Reply { status, body: response.bytes().await? })
        };
        match timeout_at(deadline, sent_and_read).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(of_failure(&error)),
            Err(_) => Err(Answer::Unknown("no answer in time".to_owned())),
        }
    }

    async fn send(&self, request: &Request<'_>, deadline: Instant) -> Result<Response, elasticsearch::Error> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(request.content_type));
        // answers are filtered and small: packing and unpacking them took a tenth of our processor time
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let left = deadline.saturating_duration_since(Instant::now());
        let body = request.body.clone();
        self.client.send(request.method, request.path, headers, Some(request.query), body, Some(left)).await
    }
}

impl fmt::Debug for Elastic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Elastic").field(&self.shown).finish()
    }
}

fn cert_validation(address: &Address) -> Result<CertificateValidation, Error> {
    match (address.transport, &address.ca_file) {
        (Transport::Insecure, _) => Ok(CertificateValidation::None),
        (Transport::Verified, None) => Ok(CertificateValidation::Default),
        (Transport::Verified, Some(path)) => {
            let unusable = |problem: String| Error::CaFile { path: path.clone(), problem };
            let pem = fs::read(path).map_err(|error| unusable(error.to_string()))?;
            let authority = Certificate::from_pem(&pem).map_err(|error| unusable(error.to_string()))?;
            Ok(CertificateValidation::Full(authority))
        }
    }
}

fn is_broken_connection(error: &elasticsearch::Error) -> bool {
    as_reqwest(error).is_some_and(|error| !error.is_timeout() && !error.is_connect() && !error.is_builder())
}

fn as_reqwest(error: &elasticsearch::Error) -> Option<&reqwest::Error> {
    error.source().and_then(|source| source.downcast_ref())
}

/// The innermost cause says it best (`Connection refused`), and the outer ones repeat the address.
fn of_failure(error: &elasticsearch::Error) -> Answer {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match as_reqwest(error) {
        Some(error) if error.is_timeout() => Answer::Unknown("no answer in time".to_owned()),
        Some(error) if error.is_connect() => Answer::Unreachable(format!("no connection: {cause}")),
        Some(error) if error.is_decode() => Answer::Unknown("the answer was cut short".to_owned()),
        _ => Answer::Unreachable(format!("the connection broke: {cause}")),
    }
}

#[cfg(test)]
mod tests;
