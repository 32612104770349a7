use std::fmt;
use std::net::IpAddr;

use url::Url;

use super::environment::Tls;
use super::error::{Error, Fault};
use super::host::{self, Host};
use super::variable::Variables;

/// An address of Postgres that was checked. Prints itself without its password and parameters.
#[derive(Clone)]
pub struct DatabaseUrl {
    url: Url,
    /// Where sqlx will connect to, which is not always the URL's own host.
    host: Host,
}

impl DatabaseUrl {
    /// The whole URL, password included: for the connection, and nowhere else.
    pub fn expose(&self) -> &str {
        self.url.as_str()
    }

    /// A remote host whose URL says nothing of TLS gets `sslmode=verify-full`; sqlx alone would try TLS, believe any
    /// certificate, and go on without if the other side has none.
    pub fn with_default_sslmode(mut self) -> DatabaseUrl {
        if matches!(self.host, Host::Remote(_)) && self.sslmode().is_none() {
            self.url.query_pairs_mut().append_pair("sslmode", "verify-full");
        }
        self
    }

    /// Does the connection leave this machine?
    pub fn is_remote(&self) -> bool {
        matches!(self.host, Host::Remote(_))
    }

    /// The last one counts, under either name, as for sqlx.
    fn sslmode(&self) -> Option<String> {
        let modes = self.url.query_pairs().filter(|(key, _)| key == "sslmode" || key == "ssl-mode");
        modes.last().map(|(_, mode)| mode.to_ascii_lowercase())
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://", self.url.scheme())?;
        match (self.url.username(), self.url.password()) {
            ("", None) => {}
            (user, None) => write!(out, "{user}@")?,
            (user, Some(_)) => write!(out, "{user}:***@")?,
        }
        out.write_str(self.url.host_str().unwrap_or_default())?;
        if let Some(port) = self.url.port() {
            write!(out, ":{port}")?;
        }
        out.write_str(self.url.path())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

const NAME: &str = "DATABASE_URL";

const EXAMPLE: &str = "postgres://user:password@127.0.0.1:5432/database";

/// All that sqlx understands. It logs any other parameter with its value, which may be a password.
const PARAMETERS: &[&str] = &[
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

const MODES: &[&str] = &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

pub(super) fn read<G>(variables: &Variables<G>, tls: Tls) -> Result<DatabaseUrl, Error>
where
    G: Fn(&str) -> Option<String>,
{
    let text = variables.required_secret(NAME, EXAMPLE)?;
    // what sqlx takes when the URL names no host
    let fallback = variables.get("PGHOSTADDR").or_else(|| variables.get("PGHOST"));
    parse(&text, fallback.as_deref(), tls).map_err(|fault| fault.of_variable(NAME))
}

fn parse(text: &str, fallback: Option<&str>, tls: Tls) -> Result<DatabaseUrl, Fault> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
        let problem = "does not begin with postgres:// or postgresql://";
        return Err(Fault::new(problem, format!("write {EXAMPLE}")));
    }
    host::refuse_list(text)?;
    let url = Url::parse(text).map_err(|_| Fault::new("is not a URL", unescaped(EXAMPLE)))?;
    if spills(&url) {
        return Err(Fault::new("has an @ or # after the host", unescaped(EXAMPLE)));
    }
    check_parameters(&url)?;
    let host = Host::of(&url, fallback)?;
    let database = DatabaseUrl { url, host };
    check_sslmode(&database, tls)?;
    Ok(match tls {
        Tls::Verified => database.with_default_sslmode(),
        Tls::Insecure => database,
    })
}

fn check_parameters(url: &Url) -> Result<(), Fault> {
    for (key, value) in url.query_pairs() {
        let Some(key) = PARAMETERS.iter().find(|known| is_parameter(&key, known)) else {
            let remedy = format!("remove what is not one of: {}", PARAMETERS.join(", "));
            return Err(Fault::new("has a parameter that catchword does not know", remedy));
        };
        let (fits, wanted) = match *key {
            "sslmode" | "ssl-mode" => (MODES.contains(&&*value.to_ascii_lowercase()), "verify-full"),
            "hostaddr" => (value.parse::<IpAddr>().is_ok(), "127.0.0.1"),
            "port" => (value.parse::<u16>().is_ok(), "5432"),
            "statement-cache-capacity" => (value.parse::<usize>().is_ok(), "100"),
            _ => continue,
        };
        if !fits {
            let problem = format!("has a value for {key} that cannot be");
            return Err(Fault::new(problem, format!("write for instance {key}={wanted}")));
        }
    }
    Ok(())
}

/// `options[search_path]=app` is one of `options` too.
fn is_parameter(key: &str, known: &str) -> bool {
    key == known || (known == "options" && key.starts_with("options[") && key.ends_with(']'))
}

fn check_sslmode(database: &DatabaseUrl, tls: Tls) -> Result<(), Fault> {
    match (&database.host, database.sslmode().as_deref(), tls) {
        (Host::Local, ..) | (_, None | Some("verify-full" | "verify-ca"), _) => Ok(()),
        (Host::Remote(_), Some(_), Tls::Insecure) => Ok(()),
        (Host::Remote(host), Some(mode), Tls::Verified) => Err(Fault::new(
            format!("has sslmode={mode} for {host}, which does not check who answers there"),
            "write sslmode=verify-full (with sslrootcert=FILE for an authority of your own), \
             or pass --insecure if you trust the network",
        )),
    }
}

/// An unescaped `/`, `?` or `#` in a password ends the authority early: the rest, with the `@` behind it, lands in the
/// path, where it would be printed.
pub(super) fn spills(url: &Url) -> bool {
    url.path().contains('@') || url.query().is_some_and(|query| query.contains('@')) || url.fragment().is_some()
}

pub(super) fn unescaped(example: &str) -> String {
    format!("write {example}, and in a password %40 for @, %2F for /, %3A for :, %3F for ?, %23 for # and %25 for %")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: &str = "postgres://u:p@db.example/d";

    fn exposed(text: &str, tls: Tls) -> Result<String, String> {
        let database = parse(text, None, tls).map_err(|fault| fault.of_variable(NAME).to_string());
        database.map(|database| database.expose().to_owned())
    }

    #[test]
    fn this_machine_is_left_alone() {
        for local in [
            "postgres://u:p@localhost/d",
            "postgresql://u@127.0.0.1:5433/d",
            "postgres://127.8.9.1/d",
            "postgres://u@[::1]/d",
            "postgres:///d",
            "postgres://%2Fvar%2Frun%2Fpostgresql/d",
            "postgres:///d?host=/tmp",
            "postgres://db.example/d?host=/tmp",
            "postgres:///d?hostaddr=::1",
            "postgres://db.example/d?hostaddr=127.0.0.1",
            "postgres://localhost/d?sslmode=disable",
            "postgres://localhost/d?sslmode=prefer&application_name=x&options[search_path]=y",
        ] {
            for tls in [Tls::Verified, Tls::Insecure] {
                assert_eq!(exposed(local, tls).as_deref(), Ok(local));
            }
        }
    }

    #[test]
    fn a_remote_host_is_verified_by_default() {
        for remote in [
            REMOTE,
            "postgres://10.0.0.1/d",
            "postgres://[::2]/d",
            "postgres://localhost.example/d",
            "postgres://localhost/d?host=db.example",
            "postgres://localhost/d?hostaddr=10.0.0.1",
            "postgres:///d?host=db.example",
            "postgres://127.1/d",
            "postgres://127.0.0.1.example/d",
        ] {
            let and = if remote.contains('?') { '&' } else { '?' };
            assert_eq!(exposed(remote, Tls::Verified), Ok(format!("{remote}{and}sslmode=verify-full")));
            assert_eq!(exposed(remote, Tls::Insecure).as_deref(), Ok(remote));
        }
    }

    #[test]
    fn the_environments_host_counts_when_the_url_has_none() {
        let with = |fallback| parse("postgres:///d", Some(fallback), Tls::Verified).unwrap();
        assert_eq!(with("db.example").expose(), "postgres:///d?sslmode=verify-full");
        assert_eq!(with("/tmp").expose(), "postgres:///d");
        assert_eq!(with("localhost").expose(), "postgres:///d");
        let named = parse("postgres://localhost/d", Some("db.example"), Tls::Verified).unwrap();
        assert_eq!(named.expose(), "postgres://localhost/d");
    }

    #[test]
    fn an_unverified_remote_host_needs_insecure() {
        for mode in ["verify-full", "verify-ca", "VERIFY-FULL"] {
            let text = format!("{REMOTE}?sslmode={mode}");
            assert_eq!(exposed(&text, Tls::Verified), Ok(text.clone()));
        }
        for parameters in [
            "sslmode=disable",
            "sslmode=allow",
            "sslmode=prefer",
            "sslmode=require",
            "ssl-mode=Require",
            "sslmode=verify-full&ssl-mode=disable",
            "sslmode=verify-full&sslmode=prefer",
        ] {
            let text = format!("{REMOTE}?{parameters}");
            let error = exposed(&text, Tls::Verified).unwrap_err();
            assert!(error.contains("for db.example"), "{error}");
            assert!(error.contains("sslmode=verify-full") && error.contains("--insecure"), "{error}");
            assert_eq!(exposed(&text, Tls::Insecure), Ok(text));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_in_words() {
        for (given, problem) in [
            ("db.example", "does not begin with postgres:// or postgresql://"),
            ("mysql://u:p@localhost/d", "does not begin with postgres:// or postgresql://"),
            ("host=localhost dbname=d", "does not begin with postgres:// or postgresql://"),
            ("postgres://u:p@a:5432,b:5432/d", "names several hosts"),
            ("postgres://a,b/d", "names several hosts"),
            ("postgres:///d?host=a,b", "names several hosts"),
            ("postgres:///d?host=a%2Cb", "names several hosts"),
            ("postgres://u:p@localhost:port/d", "is not a URL"),
            ("postgres://u:pa/ss@localhost/d", "is not a URL"),
            ("postgres://u:12/ss@localhost/d", "has an @ or # after the host"),
            ("postgres://u:12?ss@localhost/d", "has an @ or # after the host"),
            ("postgres://u:12#ss@localhost/d", "has an @ or # after the host"),
            ("postgres://localhost/d?sslmod=disable", "has a parameter that catchword does not know"),
            ("postgres://localhost/d?sslmode=full", "has a value for sslmode that cannot be"),
            ("postgres://localhost/d?sslmode=full&sslmode=disable", "has a value for sslmode that cannot be"),
            ("postgres://localhost/d?port=x", "has a value for port that cannot be"),
            ("postgres:///d?hostaddr=localhost", "has a value for hostaddr that cannot be"),
            ("postgres:///d?statement-cache-capacity=-1", "has a value for statement-cache-capacity that cannot be"),
        ] {
            let error = exposed(given, Tls::Verified).unwrap_err();
            assert!(error.starts_with(&format!("DATABASE_URL {problem}; ")), "{given}: {error}");
        }
        assert!(exposed("postgres://u:a,b%2F@localhost/d", Tls::Verified).is_ok());
    }

    #[test]
    fn it_prints_itself_without_secrets() {
        let given = "postgres://u:hunter2@localhost:5433/d?password=hunter2&sslkey=hunter2";
        let database = parse(given, None, Tls::Verified).unwrap();
        assert_eq!(database.to_string(), "postgres://u:***@localhost:5433/d");
        assert_eq!(format!("{database:?}"), "postgres://u:***@localhost:5433/d");
        assert_eq!(database.expose(), given);
    }
}
