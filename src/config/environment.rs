use std::env;

use super::database_url::{self, DatabaseUrl};
use super::elasticsearch::{self, ElasticsearchSettings};
use super::error::{Error, Fault};
use super::names;
use super::variable::Variables;

/// Addresses and secrets. They are not in the file, so that it can be shared and committed, and one file serves several
/// installations.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Where the rows are.
    pub database_url: DatabaseUrl,
    /// Where the documents are.
    pub elasticsearch: ElasticsearchSettings,
    /// Stands before each index name, so that several installations can share a cluster; may be empty.
    pub index_prefix: String,
}

/// Whether the other side must prove who it is. `--insecure` turns that off, for Postgres and Elasticsearch alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// Remote hosts need TLS with a certificate that is checked.
    Verified,
    /// Any certificate will do, and none too.
    Insecure,
}

impl Environment {
    /// Reads the process's own variables, and the files that `…_FILE` name.
    pub fn from_process(tls: Tls) -> Result<Environment, Error> {
        for name in NAMES {
            if env::var_os(name).is_some_and(|value| value.into_string().is_err()) {
                return Err(Fault::new("is not UTF-8", "set it again").of_variable(name));
            }
        }
        Environment::from_lookup(|name| env::var(name).ok(), tls)
    }

    /// The address of Postgres alone, for what needs no Elasticsearch.
    pub(crate) fn database_from_process(tls: Tls) -> Result<DatabaseUrl, Error> {
        database_url::read(&Variables(|name: &str| env::var(name).ok()), tls)
    }

    /// The same from anything that can look a name up.
    pub fn from_lookup(get: impl Fn(&str) -> Option<String>, tls: Tls) -> Result<Environment, Error> {
        let variables = Variables(get);
        let index_prefix = variables.get(INDEX_PREFIX).unwrap_or_default();
        names::index_prefix(&index_prefix).map_err(|fault| fault.of_variable(INDEX_PREFIX))?;
        Ok(Environment {
            database_url: database_url::read(&variables, tls)?,
            elasticsearch: elasticsearch::read(&variables, tls)?,
            index_prefix,
        })
    }
}

const INDEX_PREFIX: &str = "CATCHWORD_INDEX_PREFIX";

/// Every variable that is looked up here, for the check that they are text.
const NAMES: &[&str] = &[
    "DATABASE_URL",
    "DATABASE_URL_FILE",
    "PGHOST",
    "PGHOSTADDR",
    "ELASTICSEARCH_URL",
    "ELASTICSEARCH_URL_FILE",
    "ELASTICSEARCH_USERNAME",
    "ELASTICSEARCH_PASSWORD",
    "ELASTICSEARCH_PASSWORD_FILE",
    "ELASTICSEARCH_API_KEY",
    "ELASTICSEARCH_API_KEY_FILE",
    "ELASTICSEARCH_BEARER_TOKEN",
    "ELASTICSEARCH_BEARER_TOKEN_FILE",
    "ELASTICSEARCH_CA_FILE",
    "ELASTICSEARCH_CLIENT_CERT_FILE",
    "ELASTICSEARCH_CLIENT_KEY_FILE",
    INDEX_PREFIX,
];

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use super::super::scratch::{Scratch, lookup};
    use super::*;

    const DATABASE: (&str, &str) = ("DATABASE_URL", "postgres://u:p@localhost/d");
    const ELASTICSEARCH: (&str, &str) = ("ELASTICSEARCH_URL", "http://127.0.0.1:9200");

    fn environment(pairs: &[(&str, &str)]) -> Result<Environment, Error> {
        Environment::from_lookup(lookup(pairs), Tls::Verified)
    }

    #[test]
    fn two_addresses_are_enough() {
        let environment = environment(&[DATABASE, ELASTICSEARCH]).unwrap();
        assert_eq!(environment.database_url.expose(), DATABASE.1);
        assert_eq!(environment.elasticsearch.url, "http://127.0.0.1:9200/");
        assert_eq!(environment.elasticsearch.tls, Tls::Verified);
        assert_eq!(environment.index_prefix, "");
    }

    #[test]
    fn a_missing_address_is_named_with_an_example() {
        for (given, missing) in [(ELASTICSEARCH, "DATABASE_URL"), (DATABASE, "ELASTICSEARCH_URL")] {
            let text = environment(&[given, (missing, "")]).unwrap_err().to_string();
            assert!(text.starts_with(&format!("{missing} is not set; for instance {missing}=")), "{text}");
        }
    }

    #[test]
    fn the_prefix_begins_an_index_name() {
        let with = |prefix| environment(&[DATABASE, ELASTICSEARCH, (INDEX_PREFIX, prefix)]);
        assert_eq!(with("staging-").unwrap().index_prefix, "staging-");
        let text = with("Staging").unwrap_err().to_string();
        assert!(text.starts_with("CATCHWORD_INDEX_PREFIX is \"Staging\""), "{text}");
    }

    #[test]
    fn every_variable_that_is_looked_up_is_checked_for_text() {
        let asked = RefCell::new(BTreeSet::new());
        let get = lookup(&[DATABASE, ELASTICSEARCH]);
        let spy = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            get(name)
        };
        Environment::from_lookup(spy, Tls::Verified).unwrap();
        assert_eq!(asked.into_inner(), NAMES.iter().map(|name| name.to_string()).collect());
    }

    /// A secret is put wherever one can stand, whole and broken by each character that means something in a URL, and
    /// each variable is also given something that it refuses.
    #[test]
    fn no_secret_is_ever_printed() {
        const HALVES: [&str; 2] = ["hunter2hunter2", "opensesame"];
        let scratch = Scratch::new();
        let mut printed = 0;
        for between in ["", "@", "/", "?", "#", ":", "&", "=", ",", "%", "%zz", " ", "\n", "\0", "ä", "[", "\\", ";", "'"] {
            let secret = [HALVES[0], between, HALVES[1]].concat();
            let numeric = ["12", between, &secret].concat();
            let path = scratch.file("secret", &secret);
            let mut urls = vec![secret.clone(), numeric.clone()];
            for scheme in ["postgres", "postgresql", "http", "https", "mysql", "", "hunter2"] {
                for secret in [&secret, &numeric] {
                    for host in ["localhost", "db.example", "a,b", "", "127.0.0.1:x", "[::1", "db.example:99999"] {
                        urls.push(format!("{scheme}://user:{secret}@{host}/d"));
                        urls.push(format!("{scheme}://user:{secret}@{host}/d?sslmode=disable"));
                        urls.push(format!("{scheme}://user:{secret}@{host}"));
                        urls.push(format!("https://localhost:1,{scheme}://user:{secret}@{host}"));
                    }
                    for parameter in ["password", "sslmode", "port", "sslpassword"] {
                        urls.push(format!("{scheme}://localhost/d?{parameter}={secret}"));
                    }
                }
            }
            let mut environments: Vec<Vec<(&str, &str)>> = Vec::new();
            for url in &urls {
                environments.push(vec![("DATABASE_URL", url), ELASTICSEARCH]);
                environments.push(vec![DATABASE, ("ELASTICSEARCH_URL", url)]);
                environments.push(vec![DATABASE, ("ELASTICSEARCH_URL", url), ("ELASTICSEARCH_API_KEY", &secret)]);
                environments.push(vec![DATABASE, ("ELASTICSEARCH_URL", url), ("ELASTICSEARCH_CLIENT_KEY_FILE", &secret)]);
            }
            let path = path.to_str().unwrap();
            for name in
                ["DATABASE_URL", "ELASTICSEARCH_URL", "ELASTICSEARCH_PASSWORD", "ELASTICSEARCH_API_KEY", "ELASTICSEARCH_BEARER_TOKEN"]
            {
                let twin = format!("{name}_FILE");
                let twin: &str = NAMES.iter().find(|known| **known == twin).unwrap();
                for (name, value) in [(name, secret.as_str()), (twin, path), (twin, &secret)] {
                    let others = [DATABASE, ELASTICSEARCH];
                    let others = others.into_iter().filter(|(other, _)| !name.starts_with(other));
                    let only: Vec<_> = others.chain([(name, value)]).collect();
                    let user = [("ELASTICSEARCH_USERNAME", "user")];
                    environments.push(only.iter().copied().chain(user).collect());
                    environments.push([DATABASE, ELASTICSEARCH, (name, value)].to_vec());
                    environments.push(only);
                }
            }
            for pairs in &environments {
                for tls in [Tls::Verified, Tls::Insecure] {
                    let result = Environment::from_lookup(lookup(pairs), tls);
                    let text = match &result {
                        Ok(environment) => format!("{environment:?} {}", environment.database_url),
                        Err(error) => format!("{error} {error:?}"),
                    };
                    for half in HALVES {
                        assert!(!text.contains(half), "{pairs:?} printed {text}");
                    }
                    printed += 1;
                }
            }
        }
        assert!(printed > 10_000, "only {printed} were tried");
    }
}
