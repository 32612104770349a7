use std::path::PathBuf;

use url::{Host, Url};

use super::database_url::{spills, unescaped};
use super::environment::Tls;
use super::error::{Error, Fault};
use super::login;
use super::secret::Secret;
use super::variable::Variables;

/// How to reach Elasticsearch, and as whom: nobody, a user with a password, or an API key.
#[derive(Debug, Clone)]
pub struct ElasticsearchSettings {
    /// `http` or `https`, without user and password.
    pub url: String,
    /// Comes with a password.
    pub username: Option<String>,
    /// Comes with a username.
    pub password: Option<Secret>,
    /// Instead of username and password.
    pub api_key: Option<Secret>,
    /// Certificates, in PEM, of an authority that the system does not know.
    pub ca_file: Option<PathBuf>,
    /// Whether certificates are checked.
    pub tls: Tls,
}

impl ElasticsearchSettings {
    /// Does the connection leave this machine?
    pub fn is_remote(&self) -> bool {
        Url::parse(&self.url).is_ok_and(|url| !is_local(&url))
    }
}

const URL: &str = "ELASTICSEARCH_URL";
const CA_FILE: &str = "ELASTICSEARCH_CA_FILE";

const EXAMPLE: &str = "http://127.0.0.1:9200";

pub(super) fn read<G>(variables: &Variables<G>, tls: Tls) -> Result<ElasticsearchSettings, Error>
where
    G: Fn(&str) -> Option<String>,
{
    let text = variables.required_secret(URL, EXAMPLE)?;
    let mut url = parse(&text, tls).map_err(|fault| fault.of_variable(URL))?;
    let login = login::read(&mut url, variables)?;
    Ok(ElasticsearchSettings {
        url: url.into(),
        username: login.username,
        password: login.password,
        api_key: login.api_key,
        ca_file: ca_file(variables)?,
        tls,
    })
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
        return Err(Fault::new("names several hosts", "name one, or what balances between them"));
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

fn ca_file<G>(variables: &Variables<G>) -> Result<Option<PathBuf>, Error>
where
    G: Fn(&str) -> Option<String>,
{
    match variables.path(CA_FILE) {
        Some(path) if !path.is_file() => {
            let problem = format!("names {}, which is not a file", path.display());
            Err(Fault::new(problem, "give the path of a PEM file").of_variable(CA_FILE))
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
            ("https://a,b", "names several hosts"),
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
