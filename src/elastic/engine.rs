//! Which server this is, and all that differs between servers. Everywhere else "Elasticsearch" means any of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ask::{PATIENCE, unclear};
use super::client::{Method, Request};
use super::{Answer, Elastic, Error, Target, answer, percent};

/// How long the answer is believed: a cluster may be upgraded while a worker runs.
const BELIEVED: Duration = Duration::from_secs(600);

/// Who made the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    Elasticsearch,
    OpenSearch,
}

/// A server, as it told what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    pub maker: Maker,
    /// Its whole version, `9.4.3`.
    pub version: String,
    /// Runs as a service that shows no nodes, disks or shards.
    pub serverless: bool,
}

/// Whether catchword works with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It is one of those that the tests run on, or lies between them.
    Known,
    /// It is newer than those.
    Newer,
    /// Why not.
    No(&'static str),
}

/// How everything in an index is walked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// What documents are sorted by.
    pub sort: &'static str,
    /// Is a place in that order a document's own, or are there as many like it as there are shards?
    pub is_total: bool,
}

impl Engine {
    pub fn support(&self) -> Support {
        match (self.maker, self.number()) {
            _ if self.serverless => {
                Support::No("it is a serverless one, which refuses settings, versions of documents or aliases that catchword needs")
            }
            (Maker::Elasticsearch, (..8, _)) => Support::No("catchword needs Elasticsearch 8 or newer"),
            // before that, a real-time read of an index with segment replication could come from a copy that lags behind
            (Maker::OpenSearch, number) if number < (2, 10) => Support::No("catchword needs OpenSearch 2.10 or newer"),
            (Maker::Elasticsearch, (10.., _)) | (Maker::OpenSearch, (4.., _)) => Support::Newer,
            _ => Support::Known,
        }
    }

    /// A place in the order of `_doc` is a number within a shard. So a page that ends between two shards' documents of the same number loses
    /// some, unless each part of the walk lies in one shard.
    pub(super) fn walk(&self) -> Walk {
        let has_shard_doc = match self.maker {
            Maker::Elasticsearch => true,
            Maker::OpenSearch => self.number() >= (3, 3),
        };
        match has_shard_doc {
            true => Walk { sort: "_shard_doc", is_total: true },
            false => Walk { sort: "_doc", is_total: false },
        }
    }

    /// The path that opens a point in time on an index.
    pub(super) fn point_in_time(&self, target: &Target) -> String {
        let index = percent::encode(&target.write_alias());
        match self.maker {
            Maker::Elasticsearch => format!("/{index}/_pit"),
            Maker::OpenSearch => format!("/{index}/_search/point_in_time"),
        }
    }

    /// The path and the body that give it back.
    pub(super) fn close_point_in_time(&self, id: &str) -> (&'static str, Bytes) {
        let (path, body) = match self.maker {
            Maker::Elasticsearch => ("/_pit", json!({ "id": id })),
            Maker::OpenSearch => ("/_search/point_in_time", json!({ "pit_id": [id] })),
        };
        (path, Bytes::from(body.to_string()))
    }

    /// What a request for documents must ask for, so that they come whole: this one leaves vectors out unless it is told not to.
    pub(super) fn whole_documents(&self) -> Option<(&'static str, &'static str)> {
        let leaves_out = self.maker == Maker::Elasticsearch && self.number() >= (9, 2);
        leaves_out.then_some(("_source_exclude_vectors", "false"))
    }

    fn number(&self) -> (u32, u32) {
        let mut parts = self.version.split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }

    /// From `GET /`. None: it does not tell, or says 7, which an OpenSearch may be set to say for the sake of old clients.
    fn of_hello(body: &[u8]) -> Option<Engine> {
        #[derive(Deserialize)]
        struct Hello {
            version: Version,
        }
        #[derive(Deserialize)]
        struct Version {
            number: String,
            distribution: Option<String>,
            build_flavor: Option<String>,
        }
        let Hello { version } = serde_json::from_slice(body).ok()?;
        let maker = match version.distribution.as_deref() {
            Some("opensearch") => Maker::OpenSearch,
            _ => Maker::Elasticsearch,
        };
        let engine = Engine { maker, serverless: version.build_flavor.as_deref() == Some("serverless"), version: version.number };
        (engine.number().0 != 7).then_some(engine)
    }

    /// From `GET /_nodes/_local`.
    fn of_node(body: &[u8]) -> Option<Engine> {
        #[derive(Deserialize)]
        struct Nodes {
            nodes: BTreeMap<String, Node>,
        }
        #[derive(Deserialize)]
        struct Node {
            version: String,
            build_flavor: Option<String>,
        }
        let Nodes { nodes } = serde_json::from_slice(body).ok()?;
        let node = nodes.into_values().next()?;
        let maker = if node.build_flavor.is_some() { Maker::Elasticsearch } else { Maker::OpenSearch };
        Some(Engine { maker, version: node.version, serverless: node.build_flavor.as_deref() == Some("serverless") })
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let maker = match self.maker {
            Maker::Elasticsearch => "Elasticsearch",
            Maker::OpenSearch => "OpenSearch",
        };
        write!(f, "{maker} {}", self.version)
    }
}

impl Elastic {
    /// Which server this is, as it was last told.
    pub async fn engine(&self) -> Result<Engine, Error> {
        let known = self.engine.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some((engine, at)) if at.elapsed() < BELIEVED => Ok(engine),
            // what was true ten minutes ago is better than nothing
            Some((engine, _)) => Ok(self.ask_engine().await.unwrap_or(engine)),
            None => self.ask_engine().await,
        }
    }

    /// Asks which server this is. `GET /` is not there in every build; `/_nodes/_local` is not for everybody.
    pub async fn ask_engine(&self) -> Result<Engine, Error> {
        let doing = "read the version of elasticsearch";
        let failed = |answer| Error::Request { doing: doing.to_owned(), answer };
        let (hello, node) = (("/", "version"), ("/_nodes/_local", "nodes.*.version,nodes.*.build_flavor"));
        let mut last = unclear(doing);
        for (n, (path, wanted)) in [hello, node].into_iter().enumerate() {
            let query = [("filter_path", wanted)];
            let request = Request { method: Method::Get, path, query: &query, content_type: "application/json", body: None };
            let reply = self.exchange(&request, Instant::now() + PATIENCE).await.map_err(failed)?;
            if reply.status != 200 {
                last = failed(answer::of_question(reply.status, &reply.body));
                continue;
            }
            let engine = if n == 0 { Engine::of_hello(&reply.body) } else { Engine::of_node(&reply.body) };
            if let Some(engine) = engine {
                *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = Some((engine.clone(), Instant::now()));
                return Ok(engine);
            }
            last = unclear(doing);
        }
        Err(last)
    }

    /// Is somebody there who takes these credentials? It is asked for no document at all, which is no question: every server says so at once,
    /// to every user, and whatever state its indices are in.
    pub async fn is_there(&self, limit: Duration) -> Result<(), Answer> {
        let body = Some(Bytes::from_static(b"{\"docs\":[]}"));
        let request = Request { method: Method::Post, path: "/_mget", query: &[], content_type: "application/json", body };
        let reply = self.exchange(&request, Instant::now() + limit).await?;
        match (reply.status, answer::of_question(reply.status, &reply.body)) {
            (200, _) if serde_json::from_slice::<Value>(&reply.body).is_ok() => Ok(()),
            (400, Answer::Refused(_)) => Ok(()),
            (200, _) => {
                Err(Answer::Unknown("the answer is not what elasticsearch would say: is something else at this address?".to_owned()))
            }
            (_, answer) => Err(answer),
        }
    }
}

impl Error {
    /// Does this server not offer what it was asked for, or not to these credentials? Then whoever can do without it does.
    pub fn is_not_offered(&self) -> bool {
        // no such path, no such method, not in this edition
        const SIGNS: [&str; 5] = ["status 404", "status 405", "status 410", "no handler found", "api_not_available_exception"];
        let Error::Request { answer, .. } = self else { return false };
        match answer {
            Answer::Denied(_) => true,
            Answer::Unknown(text) | Answer::Refused(text) => SIGNS.iter().any(|sign| text.contains(sign)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(maker: Maker, version: &str) -> Engine {
        Engine { maker, version: version.to_owned(), serverless: false }
    }

    #[test]
    fn a_server_is_known_by_either_answer() {
        use Maker::{Elasticsearch, OpenSearch};
        // by 8.19.16, OpenSearch 2.19.3 and 3.3.0
        let elasticsearch = br#"{"version":{"number":"8.19.16","build_flavor":"default","build_type":"zip","lucene_version":"9.12.2"}}"#;
        assert_eq!(Engine::of_hello(elasticsearch), Some(engine(Elasticsearch, "8.19.16")));
        let opensearch = br#"{"version":{"distribution":"opensearch","number":"2.19.3","build_type":"zip"}}"#;
        assert_eq!(Engine::of_hello(opensearch), Some(engine(OpenSearch, "2.19.3")));
        assert_eq!(
            Engine::of_node(br#"{"nodes":{"x":{"version":"9.4.3","build_flavor":"default"}}}"#),
            Some(engine(Elasticsearch, "9.4.3"))
        );
        assert_eq!(Engine::of_node(br#"{"nodes":{"x":{"version":"3.3.0"}}}"#), Some(engine(OpenSearch, "3.3.0")));
        // what it says for old clients is not believed
        assert_eq!(Engine::of_hello(br#"{"version":{"distribution":"opensearch","number":"7.10.2"}}"#), None);
        assert_eq!(Engine::of_hello(br#"{"version":{"number":"7.10.2"}}"#), None);
        let serverless = Engine::of_hello(br#"{"version":{"number":"8.11.0","build_flavor":"serverless"}}"#).unwrap();
        assert!(matches!(serverless.support(), Support::No(_)));
        for nothing in [&b"{}"[..], b"<html>", br#"{"nodes":{}}"#] {
            assert_eq!((Engine::of_hello(nothing), Engine::of_node(nothing)), (None, None));
        }
    }

    #[test]
    fn elasticsearch_from_8_and_opensearch_from_2_10_will_do() {
        let support = |maker, version| engine(maker, version).support();
        for (maker, known, newer, not) in [
            (Maker::Elasticsearch, ["8.0.1", "8.19.16", "9.4.3"], "10.0.0", "7.17.0"),
            (Maker::OpenSearch, ["2.10.0", "2.19.3", "3.3.0"], "4.0.0", "2.9.1"),
        ] {
            assert!(known.iter().all(|version| support(maker, version) == Support::Known), "{maker:?}");
            assert_eq!(support(maker, newer), Support::Newer);
            assert!(matches!(support(maker, not), Support::No(_)), "{maker:?} {not}");
        }
    }

    #[test]
    fn a_place_is_total_where_the_server_has_one() {
        let sort = |maker, version| engine(maker, version).walk().sort;
        assert_eq!((sort(Maker::Elasticsearch, "8.0.1"), sort(Maker::OpenSearch, "3.3.0")), ("_shard_doc", "_shard_doc"));
        assert_eq!((sort(Maker::OpenSearch, "2.19.3"), sort(Maker::OpenSearch, "3.2.0")), ("_doc", "_doc"));
    }

    #[test]
    fn vectors_are_asked_for_where_they_would_be_left_out() {
        let asked = |maker, version| engine(maker, version).whole_documents().is_some();
        assert!(asked(Maker::Elasticsearch, "9.2.0") && asked(Maker::Elasticsearch, "10.0.0"));
        assert!(!asked(Maker::Elasticsearch, "9.1.9") && !asked(Maker::Elasticsearch, "8.19.16") && !asked(Maker::OpenSearch, "9.9.9"));
    }

    #[test]
    fn what_a_server_does_not_offer_is_told_from_what_fails() {
        let error = |answer| Error::Request { doing: "x".to_owned(), answer };
        let of = |status, body: &[u8]| error(answer::of_question(status, body)).is_not_offered();
        assert!(of(405, br#"{"error":"Incorrect HTTP method for uri [/]","status":405}"#));
        assert!(of(400, br#"{"error":"no handler found for uri [/_x] and method [GET]"}"#) && of(404, b"{}"));
        assert!(of(403, br#"{"error":{"type":"security_exception","reason":"no"}}"#));
        assert!(of(410, br#"{"error":{"type":"api_not_available_exception","reason":"not in serverless mode"}}"#));
        assert!(!of(503, b"") && !of(429, b"") && !of(500, b"{}"));
    }
}
