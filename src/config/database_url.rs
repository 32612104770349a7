use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use url::{Url, form_urlencoded};

use super::environment::Tls;
use super::error::{Error, Fault};
use super::host::{self, Host};
use super::variable::Variables;

/// An address of Postgres that was checked: of one server, or of several of which one is the primary. Prints itself without its password
/// and parameters.
#[derive(Clone)]
pub struct DatabaseUrl {
    first: Address,
    /// Further hosts, in the order in which they are tried.
    others: Vec<Address>,
    connect_timeout: Option<Duration>,
}

/// One host, as sqlx takes it.
#[derive(Clone)]
struct Address {
    url: Url,
    /// Where sqlx will connect to, which is not always the URL's own host.
    host: Host,
}

impl DatabaseUrl {
    /// The whole URL of the first host, password included: for the connection, and nowhere else.
    pub fn expose(&self) -> &str {
        self.first.url.as_str()
    }

    /// The same for each host, in the order in which they are tried.
    pub(crate) fn expose_each(&self) -> impl Iterator<Item = &str> {
        self.addresses().map(|address| address.url.as_str())
    }

    /// How long a connection may take, if the address says so.
    pub(crate) fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }

    /// Does a connection leave this machine?
    pub fn is_remote(&self) -> bool {
        self.addresses().any(|address| matches!(address.host, Host::Remote(_)))
    }

    fn addresses(&self) -> impl Iterator<Item = &Address> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl Address {
    /// A remote host whose URL says nothing of TLS gets `sslmode=verify-full`; sqlx alone would try TLS, believe any
    /// certificate, and go on without if the other side has none.
    fn with_default_sslmode(mut self) -> Address {
        if matches!(self.host, Host::Remote(_)) && self.sslmode().is_none() {
            self.url.query_pairs_mut().append_pair("sslmode", "verify-full");
        }
        self
    }

    /// The last one counts, under either name, as for sqlx.
    fn sslmode(&self) -> Option<String> {
        let modes = self.url.query_pairs().filter(|(key, _)| key == "sslmode" || key == "ssl-mode");
        modes.last().map(|(_, mode)| mode.to_ascii_lowercase())
    }

    fn host_and_port(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.first.url;
        write!(out, "{}://", url.scheme())?;
        match (url.username(), url.password()) {
            ("", None) => {}
            (user, None) => write!(out, "{user}@")?,
            (user, Some(_)) => write!(out, "{user}:***@")?,
        }
        let hosts: Vec<String> = self.addresses().map(Address::host_and_port).collect();
        write!(out, "{}{}", hosts.join(","), url.path())
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

/// What catchword itself acts on.
const OURS: &[&str] = &["connect_timeout", "target_session_attrs"];

/// What addresses of managed services and of other clients carry, and what changes nothing here: TLS is verified without a binding, what goes
/// through a pooler is found out, and sessions have keepalives and a name of their own.
const IGNORED: &[&str] = &[
    "channel_binding",
    "pgbouncer",
    "connection_limit",
    "pool_timeout",
    "fallback_application_name",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
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
    let mut addresses = Vec::new();
    let mut connect_timeout = None;
    for one in host::one_by_one(text)? {
        let (address, timeout) = parse_one(&one, fallback, tls)?;
        addresses.push(address);
        connect_timeout = timeout;
    }
    let mut addresses = addresses.into_iter();
    let Some(first) = addresses.next() else { return Err(Fault::new("names no host", format!("write {EXAMPLE}"))) };
    let database = DatabaseUrl { first, others: addresses.collect(), connect_timeout };
    let names_a_host = |address: &Address| address.url.query_pairs().any(|(key, _)| ["host", "hostaddr", "port"].contains(&&*key));
    if !database.others.is_empty() && database.addresses().any(names_a_host) {
        return Err(Fault::new("names several hosts, and one more as a parameter", "remove the parameters host, hostaddr and port"));
    }
    Ok(database)
}

/// An address with one host, and how long a connection to it may take.
fn parse_one(text: &str, fallback: Option<&str>, tls: Tls) -> Result<(Address, Option<Duration>), Fault> {
    let mut url = Url::parse(text).map_err(|_| Fault::new("is not a URL", unescaped(EXAMPLE)))?;
    if spills(&url) {
        return Err(Fault::new("has an @ or # after the host", unescaped(EXAMPLE)));
    }
    check_parameters(&url)?;
    let seconds = url.query_pairs().filter(|(key, _)| key == "connect_timeout").last().and_then(|(_, seconds)| seconds.parse::<u64>().ok());
    keep_parameters(&mut url);
    let host = Host::of(&url, fallback)?;
    let address = Address { url, host };
    check_sslmode(&address, tls)?;
    let address = match tls {
        Tls::Verified => address.with_default_sslmode(),
        Tls::Insecure => address,
    };
    // 0 means no limit to Postgres' own client; here it means the usual one
    Ok((address, seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs)))
}

fn check_parameters(url: &Url) -> Result<(), Fault> {
    for (key, value) in url.query_pairs() {
        let Some(key) = [PARAMETERS, OURS, IGNORED].concat().into_iter().find(|known| is_parameter(&key, known)) else {
            let remedy = format!("remove what is not one of: {}", [PARAMETERS, OURS, IGNORED].concat().join(", "));
            return Err(Fault::new("has a parameter that catchword does not know", remedy));
        };
        let (fits, wanted) = match key {
            "sslmode" | "ssl-mode" => (MODES.contains(&&*value.to_ascii_lowercase()), "verify-full"),
            "hostaddr" => (value.parse::<IpAddr>().is_ok(), "127.0.0.1"),
            "port" => (value.parse::<u16>().is_ok(), "5432"),
            "statement-cache-capacity" => (value.parse::<usize>().is_ok(), "100"),
            "connect_timeout" => (value.parse::<u16>().is_ok(), "10"),
            "target_session_attrs" if ["read-only", "standby", "prefer-standby"].contains(&&*value) => {
                let problem = format!("has target_session_attrs={value}, and catchword must write");
                return Err(Fault::new(problem, "write target_session_attrs=read-write"));
            }
            "target_session_attrs" => (["any", "primary", "read-write"].contains(&&*value), "read-write"),
            _ => continue,
        };
        if !fits {
            let problem = format!("has a value for {key} that cannot be");
            return Err(Fault::new(problem, format!("write for instance {key}={wanted}")));
        }
    }
    Ok(())
}

/// Takes out what sqlx does not know. The rest stays as it was written.
fn keep_parameters(url: &mut Url) {
    let Some(query) = url.query().map(str::to_owned) else { return };
    let is_for_sqlx = |part: &&str| {
        let key = form_urlencoded::parse(part.as_bytes()).next().map(|(key, _)| key.into_owned()).unwrap_or_default();
        ![OURS, IGNORED].concat().contains(&&*key)
    };
    let kept: Vec<&str> = query.split('&').filter(is_for_sqlx).collect();
    if kept.len() < query.split('&').count() {
        url.set_query((!kept.is_empty()).then(|| kept.join("&")).as_deref());
    }
}

/// `options[search_path]=app` is one of `options` too.
fn is_parameter(key: &str, known: &str) -> bool {
    key == known || (known == "options" && key.starts_with("options[") && key.ends_with(']'))
}

fn check_sslmode(address: &Address, tls: Tls) -> Result<(), Fault> {
    match (&address.host, address.sslmode().as_deref(), tls) {
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
            ("postgres://u:p@a:5432,/d", "names a host without a name"),
            ("postgres://u:p@,b/d", "names a host without a name"),
            ("postgres://a,b/d?hostaddr=127.0.0.1", "names several hosts, and one more as a parameter"),
            ("postgres://a,b/d?port=5433", "names several hosts, and one more as a parameter"),
            ("postgres:///d?host=a,b", "names several hosts in a parameter"),
            ("postgres:///d?host=a%2Cb", "names several hosts in a parameter"),
            ("postgres://u:p@a,b:port/d", "is not a URL"),
            ("postgres://localhost/d?target_session_attrs=standby", "has target_session_attrs=standby, and catchword must write"),
            ("postgres://localhost/d?target_session_attrs=any-thing", "has a value for target_session_attrs that cannot be"),
            ("postgres://localhost/d?connect_timeout=soon", "has a value for connect_timeout that cannot be"),
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
    fn several_hosts_are_several_addresses_in_their_order() {
        let database =
            parse("postgresql://u:p,w@a:5432,127.0.0.1,[::1]:5433/d?target_session_attrs=read-write", None, Tls::Verified).unwrap();
        let each: Vec<&str> = database.expose_each().collect();
        let wanted =
            ["postgresql://u:p,w@a:5432/d?sslmode=verify-full", "postgresql://u:p,w@127.0.0.1/d", "postgresql://u:p,w@[::1]:5433/d"];
        assert_eq!(each, wanted);
        assert_eq!(database.to_string(), "postgresql://u:***@a:5432,127.0.0.1,[::1]:5433/d");
        assert!(database.is_remote());
        let error = exposed("postgres://u:p@localhost,db.example/d?sslmode=require", Tls::Verified).unwrap_err();
        assert!(error.contains("sslmode=require for db.example"), "{error}");
    }

    #[test]
    fn what_others_write_into_an_address_is_taken_and_not_passed_on() {
        for harmless in IGNORED {
            let given = format!("postgres://localhost/d?sslmode=prefer&{harmless}=1&options[search_path]=y");
            assert_eq!(exposed(&given, Tls::Verified).as_deref(), Ok("postgres://localhost/d?sslmode=prefer&options[search_path]=y"));
        }
        let given = "postgres://localhost/d?channel_binding=require&connect_timeout=3&target_session_attrs=any";
        let database = parse(given, None, Tls::Verified).unwrap();
        assert_eq!((database.expose(), database.connect_timeout()), ("postgres://localhost/d", Some(Duration::from_secs(3))));
        let forever = parse("postgres://localhost/d?connect_timeout=0", None, Tls::Verified).unwrap();
        assert_eq!(forever.connect_timeout(), None);
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
