use std::net::IpAddr;

use url::Url;

use super::error::Fault;

/// Where a connection to Postgres goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// This machine, by loopback or a unix socket: nobody can listen in between.
    Local,
    Remote(String),
}

impl Host {
    /// Follows sqlx: a socket wins wherever it stands, then the last host named, then the environment's.
    pub fn of(url: &Url, fallback: Option<&str>) -> Result<Host, Fault> {
        let in_url = url.host_str().filter(|host| !host.is_empty()).map(|host| {
            let socket = host.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("%2f"));
            if socket { "/".to_owned() } else { host.to_owned() }
        });
        let in_parameters = url.query_pairs().filter(|(key, _)| key == "host" || key == "hostaddr").map(|(_, host)| host.into_owned());
        let named: Vec<String> = in_url.into_iter().chain(in_parameters).collect();
        if named.iter().any(|host| host.starts_with('/')) {
            return Ok(Host::Local);
        }
        match named.last().map(String::as_str).or(fallback) {
            Some(host) if host.contains(',') => Err(several_hosts()),
            Some(host) if !is_local(host) => Ok(Host::Remote(host.to_owned())),
            _ => Ok(Host::Local),
        }
    }
}

/// Postgres' own `host1:5432,host2:5432` is not a URL for anybody else: one URL for each host. A password may have commas, so it is skipped.
pub(super) fn one_by_one(text: &str) -> Result<Vec<String>, Fault> {
    let start = text.find("://").map_or(0, |at| at + 3);
    let start = text.rfind('@').map_or(start, |at| start.max(at + 1));
    let (before, rest) = text.split_at(start);
    let (hosts, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let hosts: Vec<&str> = hosts.split(',').collect();
    if hosts.len() > 1 && hosts.iter().any(|host| host.is_empty() || host.starts_with(':')) {
        return Err(Fault::new("names a host without a name", format!("write {SEVERAL}")));
    }
    Ok(hosts.into_iter().map(|host| format!("{before}{host}{after}")).collect())
}

fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let loopback = bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    loopback || host.eq_ignore_ascii_case("localhost") || host.starts_with('/')
}

const SEVERAL: &str = "postgres://user:password@a:5432,b:5432/database";

fn several_hosts() -> Fault {
    Fault::new("names several hosts in a parameter", format!("write them one after the other: {SEVERAL}"))
}
