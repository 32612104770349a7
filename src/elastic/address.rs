//! Where Elasticsearch is, and who asks.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use url::{Host, Url};

use super::{Error, percent};

/// An address that was checked: it can be printed, and no password crosses a network in the clear unless somebody said so.
#[derive(Debug, Clone)]
pub struct Address {
    /// The base URLs of the nodes, without user-info; one at least.
    pub urls: Vec<Url>,
    /// Who asks.
    pub credentials: Credentials,
    /// PEM certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Who we are to a server that wants a certificate.
    pub certificate: Option<Certificate>,
    /// How the connection is protected.
    pub transport: Transport,
}

/// The PEM files of a client's certificate and of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate, perhaps with those between it and the authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Who asks. `Debug` shows only the kind.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nobody in particular.
    None,
    /// A user of a realm.
    Basic {
        /// Its name.
        username: String,
        /// Its password.
        password: String,
    },
    /// An API key in its encoded form, as Elasticsearch hands it out.
    ApiKey(String),
    /// A token that somebody else handed out: a service account's, or one of an identity provider.
    Bearer(String),
}

/// How the connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TLS with a verified certificate, unless the host is this machine.
    Verified,
    /// Plain HTTP to any host, and any certificate.
    Insecure,
}

impl Address {
    /// Checks the address of a cluster with one node. User-info in the URL becomes the credentials, if there are no others.
    pub fn new(url: &str, credentials: Credentials, ca_file: Option<PathBuf>, transport: Transport) -> Result<Address, Error> {
        Address::of_nodes([url], credentials, ca_file, transport)
    }

    /// The same for one with several: each is asked as the same user.
    pub fn of_nodes<'a>(
        urls: impl IntoIterator<Item = &'a str>,
        mut credentials: Credentials,
        ca_file: Option<PathBuf>,
        transport: Transport,
    ) -> Result<Address, Error> {
        let mut checked = Vec::new();
        for url in urls {
            let (url, found) = Address::check(url, credentials, transport)?;
            checked.push(url);
            credentials = found;
        }
        if checked.is_empty() {
            return Err(refuse("there is no address of elasticsearch: write https://host:port"));
        }
        Ok(Address { urls: checked, credentials, ca_file, certificate: None, transport })
    }

    fn check(url: &str, credentials: Credentials, transport: Transport) -> Result<(Url, Credentials), Error> {
        // the text itself is never shown: it may hold a password
        let mut url = Url::parse(url)
            .map_err(|problem| refuse(format!("the address of elasticsearch is not a URL ({problem}): write https://host:port")))?;
        let credentials = take_user_info(&mut url, credentials)?;
        check_url(&url, transport)?;
        check_credentials(&credentials)?;
        Ok((url, credentials))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credentials::None => "None",
            Credentials::Basic { .. } => "Basic(…)",
            Credentials::ApiKey(_) => "ApiKey(…)",
            Credentials::Bearer(_) => "Bearer(…)",
        })
    }
}

fn take_user_info(url: &mut Url, given: Credentials) -> Result<Credentials, Error> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(given);
    }
    if given != Credentials::None {
        return Err(refuse("the address of elasticsearch has a user in it, and credentials are given beside it: keep one of them"));
    }
    let decoded = |part: &str| percent::decode(part).ok_or_else(|| refuse("the user-info in the address of elasticsearch is not UTF-8"));
    let username = decoded(url.username())?;
    let password = decoded(url.password().unwrap_or_default())?;
    // these fail only for URLs that cannot have a user, and this one has
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Ok(Credentials::Basic { username, password })
}

fn check_url(url: &Url, transport: Transport) -> Result<(), Error> {
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(refuse(format!("the address of elasticsearch begins with {}: write https://host:port", url.scheme())));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("the address of elasticsearch has a query or a fragment: write https://host:port, with a path at most"));
    }
    if url.scheme() == "http" && transport == Transport::Verified && !is_loopback(url) {
        return Err(refuse(format!(
            "{url} is another machine and not encrypted: use https (ELASTICSEARCH_CA_FILE names your own authority), or pass --insecure"
        )));
    }
    Ok(())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(ip)) => Ipv4Addr::is_loopback(&ip),
        Some(Host::Ipv6(ip)) => Ipv6Addr::is_loopback(&ip),
        None => false,
    }
}

/// The client library panics on a header that cannot be sent, so it never sees one.
fn check_credentials(credentials: &Credentials) -> Result<(), Error> {
    match credentials {
        Credentials::None => Ok(()),
        Credentials::Basic { username, .. } if username.contains(':') => {
            Err(refuse("the user name for elasticsearch has a colon in it, which basic authentication cannot carry"))
        }
        Credentials::Basic { .. } => Ok(()),
        Credentials::ApiKey(key) if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(refuse("the API key for elasticsearch is empty or has characters that no key has: give its `encoded` form"))
        }
        Credentials::Bearer(token) if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(refuse("the bearer token for elasticsearch is empty or has characters that no token has"))
        }
        Credentials::ApiKey(_) | Credentials::Bearer(_) => Ok(()),
    }
}

fn refuse(problem: impl Into<String>) -> Error {
    Error::Address(problem.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str, transport: Transport) -> Result<Address, Error> {
        Address::new(url, Credentials::None, None, transport)
    }

    #[test]
    fn user_info_becomes_credentials_and_is_never_shown() {
        let address = open("https://eva:p%40ss@es.example:9243/base", Transport::Verified).unwrap();
        assert_eq!(address.urls[0].as_str(), "https://es.example:9243/base");
        assert_eq!(address.credentials, Credentials::Basic { username: "eva".into(), password: "p@ss".into() });
        let shown = format!("{address:?}");
        assert!(!shown.contains("p@ss") && !shown.contains("p%40ss") && !shown.contains("eva"), "{shown}");
    }

    #[test]
    fn an_error_never_holds_the_password() {
        for url in [
            "http://eva:s3cret@es.example:9200",
            "https://eva:s3cret@:9200",
            "ftp://eva:s3cret@es.example",
            "https://eva:s3cret@es.example?a",
        ] {
            let error = open(url, Transport::Verified).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn another_machine_needs_https_unless_insecure_is_said() {
        for near in ["http://localhost:9200", "http://127.0.0.1:9200", "http://[::1]:9200"] {
            assert!(open(near, Transport::Verified).is_ok(), "{near}");
        }
        let error = open("http://es.example:9200", Transport::Verified).unwrap_err().to_string();
        assert!(error.contains("https") && error.contains("--insecure"), "{error}");
        assert!(open("https://es.example:9200", Transport::Verified).is_ok());
        assert!(open("http://es.example:9200", Transport::Insecure).is_ok());
        assert!(open("http://127.0.0.1.example:9200", Transport::Verified).is_err());
    }

    #[test]
    fn credentials_are_given_once_and_can_be_sent() {
        let key = |key: &str| Address::new("http://localhost", Credentials::ApiKey(key.into()), None, Transport::Verified);
        assert!(key("VnVhQ2ZHY0JDZGJrUW0tZTVhT3g6dWkybHAyYXhUTm1zeWFrdzl0dk5udw==").is_ok());
        assert!(key("a\nb").is_err() && key("").is_err() && key("schlüssel").is_err());
        let both = Address::new("http://eva:x@localhost", Credentials::ApiKey("k".into()), None, Transport::Verified);
        assert!(both.unwrap_err().to_string().contains("keep one"));
        let token = |token: &str| Address::new("http://localhost", Credentials::Bearer(token.into()), None, Transport::Verified);
        assert!(token("AAEAAWVsYXN0aWM6").is_ok() && token("a b").is_err() && token("").is_err());
    }
}
