//! The cluster.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::line::{Line, fail, ok, warn};
use super::postgres::{clock, seconds};
use crate::config::{Environment, Tls};
use crate::context::Context;
use crate::elastic::{Answer, Cluster, Error, Support};

/// Somebody waits.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn doctor_elasticsearch(context: &Context, environment: &Environment) -> Result<Vec<Line>, Error> {
    let asked = Utc::now();
    let cluster = in_time("ask elasticsearch what it is", context.elastic.cluster()).await?;
    let answered = Utc::now();
    let settings = &environment.elasticsearch;
    let is_encrypted = settings.urls().all(|url| url.starts_with("https:"));
    let mut lines = vec![version(&cluster), tls(is_encrypted, settings.tls, settings.is_remote())];
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
    let engine = &cluster.engine;
    match engine.support() {
        Support::Known => ok("version", engine.to_string()),
        Support::Newer => warn("version", format!("this is {engine}"), "catchword was not tested with it: look for a newer catchword"),
        Support::No(why) => fail("version", format!("this is {engine}"), why),
    }
}

fn tls(is_encrypted: bool, tls: Tls, remote: bool) -> Line {
    match (remote, is_encrypted, tls) {
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
    use crate::elastic::{Engine, Maker};

    #[test]
    fn a_version_that_is_too_old_fails_and_one_that_nobody_tried_is_a_warning() {
        let level = |maker, found: &str| {
            let engine = Engine { maker, version: found.into(), serverless: false };
            version(&Cluster { engine, clock: None }).level
        };
        let elasticsearch = ["8.19.1", "9.4.3", "7.17.0", "10.0.0"].map(|found| level(Maker::Elasticsearch, found));
        let opensearch = ["2.10.0", "3.3.0", "2.9.0", "4.0.0"].map(|found| level(Maker::OpenSearch, found));
        assert_eq!(
            (elasticsearch, opensearch),
            ([Level::Ok, Level::Ok, Level::Fail, Level::Warn], [Level::Ok, Level::Ok, Level::Fail, Level::Warn])
        );
    }

    #[test]
    fn what_leaves_this_machine_unverified_is_a_warning() {
        assert_eq!(tls(false, Tls::Verified, false).level, Level::Ok);
        assert_eq!(tls(true, Tls::Verified, true).level, Level::Ok);
        assert_eq!(tls(true, Tls::Insecure, true).level, Level::Warn);
        assert_eq!(tls(false, Tls::Insecure, true).level, Level::Warn);
    }
}
