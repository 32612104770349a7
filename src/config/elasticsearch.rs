use std::path::PathBuf;

use url::{Host, Url};

use super::database_url::{spills, unescaped};
use super::environment::Tls;
use super::error::{Error, Fault};
use super::login;
use super::secret::Secret;
use super::variable::Variables;

/// How to reach Elasticsearch, and as whom: nobody, a user with a password, an API key, or a bearer token; perhaps with a certificate.
#[derive(Debug, Clone)]
pub struct ElasticsearchSettings {
    /// `http` or `https`, without user and password.
    pub url: String,
    /// Other nodes of the same cluster, which are asked when that one is down.
    pub other_urls: Vec<String>,
    /// Comes with a password.
    pub username: Option<String>,
    /// Comes with a username.
    pub password: Option<Secret>,
    /// Instead of username and password.
    pub api_key: Option<Secret>,
    /// Instead of those.
    pub bearer_token: Option<Secret>,
    /// The client's own certificate, in PEM. Comes with its key.
    pub client_cert_file: Option<PathBuf>,
    /// The key of that certificate, in PEM.
    pub client_key_file: Option<PathBuf>,
    /// Certificates, in PEM, of an authority that the system does not know.
    pub ca_file: Option<PathBuf>,
    /// Whether certificates are checked.
    pub tls: Tls,
}

impl ElasticsearchSettings {
    /// Does a connection leave this machine?
    pub fn is_remote(&self) -> bool {
        self.urls().any(|url| Url::parse(url).is_ok_and(|url| !is_local(&url)))
    }

    /// All nodes, the first first.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.url).chain(&self.other_urls).map(String::as_str)
    }
}

const URL: &str = "ELASTICSEARCH_URL";
const CA_FILE: &str = "ELASTICSEARCH_CA_FILE";
const CLIENT_CERT_FILE: &str = "ELASTICSEARCH_CLIENT_CERT_FILE";
const CLIENT_KEY_FILE: &str = "ELASTICSEARCH_CLIENT_KEY_FILE";

const EXAMPLE: &str = "http://127.0.0.1:9200";

pub(super) fn read<G>(variables: &Variables<G>, tls: Tls) -> Result<ElasticsearchSettings, Error>
where
    G: Fn(&str) -> Option<String>,
{
    let text = variables.required_secret(URL, EXAMPLE)?;
    let urls: Result<Vec<Url>, Fault> = nodes(&text).into_iter().map(|text| parse(text, tls)).collect();
    let mut urls = urls.map_err(|fault| fault.of_variable(URL))?;
    let login = login::read(&mut urls, variables)?;
    let mut urls = urls.into_iter().map(String::from);
    let (client_cert_file, client_key_file) = (pem_file(variables, CLIENT_CERT_FILE)?, pem_file(variables, CLIENT_KEY_FILE)?);
    match (&client_cert_file, &client_key_file) {
        (Some(_), None) => return Err(login::alone(CLIENT_CERT_FILE, CLIENT_KEY_FILE)),
        (None, Some(_)) => return Err(login::alone(CLIENT_KEY_FILE, CLIENT_CERT_FILE)),
        _ => {}
    }
    Ok(ElasticsearchSettings {
        url: urls.next().unwrap_or_default(),
        other_urls: urls.collect(),
        username: login.username,
        password: login.password,
        api_key: login.api_key,
        bearer_token: login.bearer_token,
        client_cert_file,
        client_key_file,
        ca_file: pem_file(variables, CA_FILE)?,
        tls,
    })
}

/// Each node is a whole URL. A comma alone does not part two of them: it may stand in a password.
fn nodes(text: &str) -> Vec<&str> {
    let mut nodes = Vec::new();
    let mut rest = text;
    while let Some(at) = ["http://", "https://"].iter().filter_map(|scheme| rest.find(&format!(",{scheme}"))).min() {
        nodes.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    nodes.push(rest);
    nodes
}

fn parse(text: &str, tls: Tls) -> Result<Url, Fault> {
    let wrong = |problem: &str| Err(Fault::new(problem, unescaped(EXAMPLE)));
    let Ok(url) = Url::parse(text) else {
        return wrong("is not a URL");
    };
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("does not begin with http:// or https://");
    }
    if spills(&url) || url.query().is_some() {
        return wrong("has an @, ? or # after the host");
    }
    if url.host_str().is_none_or(|host| host.contains(',')) {
        return Err(Fault::new("names several hosts in one URL", "write each node whole: https://a:9200,https://b:9200"));
    }
    if url.scheme() == "http" && !is_local(&url) && tls == Tls::Verified {
        let host = url.host_str().unwrap_or_default();
        return Err(Fault::new(
            format!("is plain http to {host}, which anybody in between can read and answer"),
            format!(
                "write https:// (with {CA_FILE} for an authority of your own), \
                 or pass --insecure if you trust the network"
            ),
        ));
    }
    Ok(url)
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn pem_file<G>(variables: &Variables<G>, name: &str) -> Result<Option<PathBuf>, Error>
where
    G: Fn(&str) -> Option<String>,
{
    match variables.path(name) {
        // somebody may have put the key itself there
        Some(path) if !path.is_file() && name == CLIENT_KEY_FILE => {
            Err(Fault::new("does not name a file", "give the path of a PEM file").of_variable(name))
        }
        Some(path) if !path.is_file() => {
            let problem = format!("names {}, which is not a file", path.display());
            Err(Fault::new(problem, "give the path of a PEM file").of_variable(name))
        }
        path => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::{Scratch, lookup};
    use super::*;

    fn settings(pairs: &[(&str, &str)], tls: Tls) -> Result<ElasticsearchSettings, String> {
        let settings = read(&Variables(lookup(pairs)), tls);
        settings.map_err(|error| error.to_string())
    }

    fn url(url: &str, tls: Tls) -> Result<String, String> {
        settings(&[(URL, url)], tls).map(|settings| settings.url)
    }

    #[test]
    fn this_machine_may_be_plain_and_others_need_https() {
        for local in ["http://127.0.0.1:9200/", "http://127.1.2.3/", "http://localhost/", "http://[::1]:9200/"] {
            assert_eq!(url(local, Tls::Verified), Ok(local.to_owned()));
        }
        for remote in ["http://es.example/", "http://10.0.0.1/", "http://localhost.example/", "http://[::2]/"] {
            let error = url(remote, Tls::Verified).unwrap_err();
            assert!(error.contains("https://") && error.contains("--insecure"), "{error}");
            assert_eq!(url(remote, Tls::Insecure), Ok(remote.to_owned()));
            let https = remote.replace("http:", "https:");
            assert_eq!(url(&https, Tls::Verified), Ok(https.clone()));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_in_words() {
        for (given, problem) in [
            ("es.example", "is not a URL"),
            ("es.example:9200", "does not begin with http:// or https://"),
            ("ftp://es.example", "does not begin with http:// or https://"),
            ("https://a:9200,b:9200", "is not a URL"),
            ("https://a,b", "names several hosts in one URL"),
            ("https://a:9200,https://b:x", "is not a URL"),
            ("https://a:9200,http://b:9200", "is plain http to b, which anybody in between can read and answer"),
            ("https://es.example/?a=b", "has an @, ? or # after the host"),
            ("https://es.example/#a", "has an @, ? or # after the host"),
            ("https://elastic@es.example/", "has a user without a password"),
            ("https://:x@es.example/", "has a password without a user"),
            ("https://elastic:%ff@es.example/", "has a user or password that is not UTF-8"),
        ] {
            let error = url(given, Tls::Verified).unwrap_err();
            assert!(error.starts_with(&format!("ELASTICSEARCH_URL {problem}; ")), "{given}: {error}");
        }
        assert!(settings(&[], Tls::Verified).unwrap_err().starts_with("ELASTICSEARCH_URL is not set; for instance"));
    }

    #[test]
    fn several_nodes_are_whole_urls_with_a_comma_between_them() {
        let given = settings(&[(URL, "https://u:a,b@x:9200,https://y:9201/base,https://z")], Tls::Verified).unwrap();
        assert_eq!(given.urls().collect::<Vec<_>>(), ["https://x:9200/", "https://y:9201/base", "https://z/"]);
        assert_eq!((given.username.as_deref(), given.password.as_ref().map(Secret::expose)), (Some("u"), Some("a,b")));
        assert!(given.is_remote());
        let near = settings(&[(URL, "http://127.0.0.1:1,http://localhost:2")], Tls::Verified).unwrap();
        assert!(!near.is_remote());
    }

    #[test]
    fn a_certificate_comes_with_its_key() {
        let scratch = Scratch::new();
        let there = scratch.file("client.pem", "");
        let there = there.to_str().unwrap();
        let with = |pairs: &[(&str, &str)]| settings(&[&[(URL, EXAMPLE)], pairs].concat(), Tls::Verified);
        assert!(with(&[(CLIENT_CERT_FILE, there), (CLIENT_KEY_FILE, there)]).unwrap().client_key_file.is_some());
        assert!(with(&[(CLIENT_CERT_FILE, there)]).unwrap_err().starts_with("ELASTICSEARCH_CLIENT_CERT_FILE is set without"));
        assert!(with(&[(CLIENT_KEY_FILE, there)]).unwrap_err().starts_with("ELASTICSEARCH_CLIENT_KEY_FILE is set without"));
        let error = with(&[(CLIENT_CERT_FILE, there), (CLIENT_KEY_FILE, "hunter2")]).unwrap_err();
        assert!(error.starts_with("ELASTICSEARCH_CLIENT_KEY_FILE does not name a file") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_authoritys_file_must_be_there() {
        let scratch = Scratch::new();
        let there = scratch.file("ca.pem", "");
        let with = |path: &str| settings(&[(URL, EXAMPLE), (CA_FILE, path)], Tls::Verified);
        assert_eq!(with(there.to_str().unwrap()).unwrap().ca_file, Some(there));
        assert_eq!(
            with("/nowhere.pem").unwrap_err(),
            "ELASTICSEARCH_CA_FILE names /nowhere.pem, which is not a file; give the path of a PEM file"
        );
    }
}
