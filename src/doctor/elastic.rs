//! The cluster.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::line::{Line, fail, ok, warn};
use super::postgres::{clock, seconds};
use crate::config::{Environment, Tls};
use crate::context::Context;
use crate::elastic::{Answer, Cluster, Error};

/// Somebody waits.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn doctor_elasticsearch(context: &Context, environment: &Environment) -> Result<Vec<Line>, Error> {
    let asked = Utc::now();
    let cluster = in_time("ask elasticsearch what it is", context.elastic.cluster()).await?;
    let answered = Utc::now();
    let settings = &environment.elasticsearch;
    let mut lines = vec![version(&cluster), tls(&settings.url, settings.tls, settings.is_remote())];
    lines.push(match cluster.clock.and_then(DateTime::from_timestamp_millis) {
        // it is renewed by the server a few times a second
        Some(theirs) => clock("elasticsearch", seconds(asked, theirs, answered)),
        None => ok("clock", "these credentials may not read it; nothing depends on it"),
    });
    Ok(lines)
}

/// An answer within some seconds, or that there was none.
pub(super) async fn in_time<T>(doing: &str, asking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let silent = || Error::Request { doing: doing.to_owned(), answer: Answer::Unknown("no answer within 5 s".into()) };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err(silent()))
}

fn version(cluster: &Cluster) -> Line {
    match cluster.version.split('.').next() {
        Some("8" | "9") => ok("version", format!("Elasticsearch {}", cluster.version)),
        _ => fail("version", format!("this is Elasticsearch {}", cluster.version), "catchword needs 8 or 9"),
    }
}

fn tls(url: &str, tls: Tls, remote: bool) -> Line {
    match (remote, url.starts_with("https:"), tls) {
        (false, ..) => ok("tls", "elasticsearch is on this machine"),
        (true, true, Tls::Verified) => ok("tls", "the connection is encrypted, and the certificate is checked"),
        (true, true, Tls::Insecure) => warn(
            "tls",
            "nobody checks whose certificate it is",
            "leave --insecure out; set ELASTICSEARCH_CA_FILE for an authority of your own",
        ),
        (true, false, _) => warn("tls", "everything goes to elasticsearch in clear text", "write https:// and leave --insecure out"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;

    #[test]
    fn elasticsearch_8_and_9_are_known() {
        let level = |found: &str| version(&Cluster { version: found.into(), clock: None }).level;
        assert_eq!((level("8.19.1"), level("9.4.3"), level("7.17.0"), level("10.0.0")), (Level::Ok, Level::Ok, Level::Fail, Level::Fail));
    }

    #[test]
    fn what_leaves_this_machine_unverified_is_a_warning() {
        assert_eq!(tls("http://127.0.0.1:9200/", Tls::Verified, false).level, Level::Ok);
        assert_eq!(tls("https://es/", Tls::Verified, true).level, Level::Ok);
        assert_eq!(tls("https://es/", Tls::Insecure, true).level, Level::Warn);
        assert_eq!(tls("http://es/", Tls::Insecure, true).level, Level::Warn);
    }
}
