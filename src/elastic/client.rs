use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Response};
use tokio::time::{Instant, timeout_at};

use super::nodes::Nodes;
use super::{Address, Answer, Credentials, Engine, Error, Transport};

/// How long one of several nodes may take to take a connection: below the second that a direct write has, so that the next node gets a try.
const CONNECT: Duration = Duration::from_millis(700);

/// A client for one Elasticsearch. Cheap to clone; every clone shares its connections.
#[derive(Clone)]
pub struct Elastic {
    client: Client,
    nodes: Arc<Nodes>,
    credentials: Credentials,
    /// What the server said it is, and when.
    pub(super) engine: Arc<Mutex<Option<(Engine, Instant)>>>,
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
        let mut builder = Client::builder()
            .user_agent(concat!("catchword/", env!("CARGO_PKG_VERSION")))
            // a proxy from the environment would see, and could answer, every write
            .no_proxy()
            // another server would get the documents, perhaps in the clear, and could answer for this one
            .redirect(reqwest::redirect::Policy::none());
        if address.urls.len() > 1 {
            builder = builder.connect_timeout(CONNECT);
        }
        let client = with_certificates(builder, address)?.build().map_err(|error| Error::Client(error.to_string()))?;
        Ok(Elastic { client, nodes: Arc::new(Nodes::of(&address.urls)), credentials: address.credentials.clone(), engine: Arc::default() })
    }

    /// Sends a request and reads the whole answer, whatever its status, before the deadline.
    ///
    /// A connection that broke is tried once more, at once: balancers drop idle connections after 60 s, and a worker that
    /// wakes every minute meets that. Versions make a write that landed twice harmless. A node that is not there is not asked
    /// again, but each other node is, once. After one that does not answer in time nobody is asked; the next request goes to another.
    pub(super) async fn exchange(&self, request: &Request<'_>, deadline: Instant) -> Result<Reply, Answer> {
        if Instant::now() >= deadline {
            return Err(Answer::Unknown("not sent, no time was left".to_owned()));
        }
        let asked = self.nodes.asked();
        let sent_and_read = async {
            let response = self.send_to_a_node(asked, request, deadline).await?;
            if response.status().is_redirection() {
                return Ok::<_, reqwest::Error>(Err(of_redirect(&response)));
            }
            let status = response.status().as_u16();
            Ok(Ok(Reply { status, body: response.bytes().await? }))
        };
        match timeout_at(deadline, sent_and_read).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) if error.is_connect() || !error.is_timeout() => Err(of_failure(&error, self.nodes.count())),
            Ok(Err(_)) | Err(_) => {
                self.nodes.leave(asked);
                Err(Answer::Unknown("no answer in time".to_owned()))
            }
        }
    }

    async fn send_to_a_node(&self, first: usize, request: &Request<'_>, deadline: Instant) -> Result<Response, reqwest::Error> {
        let (mut at, mut absent, mut broken) = (first, 0, false);
        loop {
            let error = match self.send(at, request, deadline).await {
                Err(error) => error,
                sent => return sent,
            };
            if error.is_connect() {
                absent += 1;
            } else if is_broken_connection(&error) && !broken {
                broken = true;
            } else {
                return Err(error);
            }
            at = self.nodes.leave(at);
            if absent == self.nodes.count() {
                return Err(error);
            }
        }
    }

    async fn send(&self, at: usize, request: &Request<'_>, deadline: Instant) -> Result<Response, reqwest::Error> {
        let url = self.nodes.address(at, request.path).map_or_else(String::new, String::from);
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
            Credentials::ApiKey(encoded) => sent.header(AUTHORIZATION, authorization("ApiKey", encoded)),
            Credentials::Bearer(token) => sent.header(AUTHORIZATION, authorization("Bearer", token)),
        };
        match request.body.clone() {
            Some(body) => sent.body(body).send().await,
            None => sent.send().await,
        }
    }
}

impl fmt::Debug for Elastic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Elastic").field(&self.nodes.shown()).finish()
    }
}

/// Was checked with the address; what no header can hold is no key, and is refused by the server.
fn authorization(scheme: &'static str, secret: &str) -> HeaderValue {
    let mut value = HeaderValue::try_from(format!("{scheme} {secret}")).unwrap_or(HeaderValue::from_static(scheme));
    value.set_sensitive(true);
    value
}

/// Whom we trust: the authorities of the system, as for Postgres and the collector of telemetry, and those of the file. And who we are, if
/// the server wants a certificate.
fn with_certificates(builder: ClientBuilder, address: &Address) -> Result<ClientBuilder, Error> {
    // the system's take some milliseconds to read
    let is_encrypted = address.urls.iter().any(|url| url.scheme() == "https");
    let builder = builder.tls_built_in_webpki_certs(false).tls_built_in_native_certs(is_encrypted);
    let builder = match &address.certificate {
        None => builder,
        Some(files) => builder.identity(identity(&files.certificate, &files.key)?),
    };
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

/// Neither file is ever shown, only where it was looked for.
fn identity(certificate: &Path, key: &Path) -> Result<Identity, Error> {
    let unusable = |path: &Path, problem: String| Error::ClientCertificate { path: path.to_owned(), problem };
    let read = |path: &Path| fs::read(path).map_err(|error| unusable(path, error.to_string()));
    let mut pem = read(certificate)?;
    pem.push(b'\n');
    pem.extend(read(key)?);
    // its text says what is missing, and quotes nothing
    Identity::from_pem(&pem).map_err(|error| unusable(certificate, error.to_string()))
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
fn of_failure(error: &reqwest::Error, nodes: usize) -> Answer {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.is_connect() && nodes > 1 {
        Answer::Unreachable(format!("no connection to any of {nodes} nodes: {cause}"))
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
