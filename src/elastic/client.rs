use std::fmt;
use std::fs;

use bytes::Bytes;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Certificate, Client, ClientBuilder, Response};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{Address, Answer, Credentials, Error, Transport};

/// A client for one Elasticsearch. Cheap to clone; every clone shares its connections.
#[derive(Clone)]
pub struct Elastic {
    client: Client,
    /// Ends with a slash, and holds no user-info.
    base: Url,
    credentials: Credentials,
}

/// What is done to what the path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl From<Method> for reqwest::Method {
    fn from(method: Method) -> reqwest::Method {
        use Method::{Delete, Get, Post, Put};
        match method {
            Get => reqwest::Method::GET,
            Post => reqwest::Method::POST,
            Put => reqwest::Method::PUT,
            Delete => reqwest::Method::DELETE,
        }
    }
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
        let builder = Client::builder()
            .user_agent(concat!("catchword/", env!("CARGO_PKG_VERSION")))
            // a proxy from the environment would see, and could answer, every write
            .no_proxy()
            // another server would get the documents, perhaps in the clear, and could answer for this one
            .redirect(reqwest::redirect::Policy::none());
        let client = with_certificates(builder, address)?.build().map_err(|error| Error::Client(error.to_string()))?;
        let mut base = address.url.clone();
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Elastic { client, base, credentials: address.credentials.clone() })
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
            if response.status().is_redirection() {
                return Ok(Err(of_redirect(&response)));
            }
            let status = response.status().as_u16();
            Ok(Ok(Reply { status, body: response.bytes().await? }))
        };
        match timeout_at(deadline, sent_and_read).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => Err(of_failure(&error)),
            Err(_) => Err(Answer::Unknown("no answer in time".to_owned())),
        }
    }

    async fn send(&self, request: &Request<'_>, deadline: Instant) -> Result<Response, reqwest::Error> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{}", self.base.path(), request.path.trim_start_matches('/')));
        let mut sent = self
            .client
            .request(request.method.into(), url)
            .query(request.query)
            .timeout(deadline.saturating_duration_since(Instant::now()))
            .header(CONTENT_TYPE, HeaderValue::from_static(request.content_type))
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            // answers are filtered and small: packing and unpacking them took a tenth of our processor time
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        sent = match &self.credentials {
            Credentials::None => sent,
            Credentials::Basic { username, password } => sent.basic_auth(username, Some(password)),
            Credentials::ApiKey(encoded) => sent.header(AUTHORIZATION, api_key(encoded)),
        };
        match request.body.clone() {
            Some(body) => sent.body(body).send().await,
            None => sent.send().await,
        }
    }
}

impl fmt::Debug for Elastic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Elastic").field(&self.base.as_str()).finish()
    }
}

/// Was checked with the address; what no header can hold is no key, and is refused by the server.
fn api_key(encoded: &str) -> HeaderValue {
    let mut value = HeaderValue::try_from(format!("ApiKey {encoded}")).unwrap_or(HeaderValue::from_static("ApiKey"));
    value.set_sensitive(true);
    value
}

fn with_certificates(builder: ClientBuilder, address: &Address) -> Result<ClientBuilder, Error> {
    match (address.transport, &address.ca_file) {
        (Transport::Insecure, _) => Ok(builder.danger_accept_invalid_certs(true)),
        (Transport::Verified, None) => Ok(builder),
        (Transport::Verified, Some(path)) => {
            let unusable = |problem: String| Error::CaFile { path: path.clone(), problem };
            let pem = fs::read(path).map_err(|error| unusable(error.to_string()))?;
            let authorities = Certificate::from_pem_bundle(&pem).map_err(|error| unusable(error.to_string()))?;
            if authorities.is_empty() {
                return Err(unusable("it holds no certificate".to_owned()));
            }
            Ok(authorities.into_iter().fold(builder, ClientBuilder::add_root_certificate))
        }
    }
}

fn is_broken_connection(error: &reqwest::Error) -> bool {
    !error.is_timeout() && !error.is_connect() && !error.is_builder()
}

/// Where it leads is shown without user-info, path and query: these may hold secrets.
fn of_redirect(response: &Response) -> Answer {
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let target = location.and_then(|location| response.url().join(location).ok());
    let target = target.map_or("another address".to_owned(), |url| url.origin().ascii_serialization());
    Answer::Unreachable(format!("it redirects to {target}, which is not followed; set ELASTICSEARCH_URL to the server itself"))
}

/// The innermost cause says it best (`Connection refused`), and the outer ones repeat the address.
fn of_failure(error: &reqwest::Error) -> Answer {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.is_timeout() {
        Answer::Unknown("no answer in time".to_owned())
    } else if error.is_connect() {
        Answer::Unreachable(format!("no connection: {cause}"))
    } else if error.is_decode() {
        Answer::Unknown("the answer was cut short".to_owned())
    } else {
        Answer::Unreachable(format!("the connection broke: {cause}"))
    }
}

#[cfg(test)]
mod tests;
