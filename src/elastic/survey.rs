//! What a doctor asks Elasticsearch.

use std::collections::BTreeMap;

use super::client::Method;
use serde::Deserialize;
use serde_json::Value;

use super::ask::parse;
use super::{Elastic, Engine, Error, percent};

/// The cluster, as far as the promises rest on it.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub engine: Engine,
    /// The clock of the node that answered, in milliseconds since 1970; none: it may not be asked.
    pub clock: Option<i64>,
}

/// An index as it is: mappings and settings, defaults filled in.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Actual {
    #[serde(default)]
    pub mappings: Value,
    #[serde(default)]
    pub settings: Value,
    #[serde(default)]
    pub defaults: Value,
}

impl Elastic {
    /// Reads what the cluster is.
    pub async fn cluster(&self) -> Result<Cluster, Error> {
        let engine = self.ask_engine().await?;
        Ok(Cluster { engine, clock: self.clock().await.unwrap_or(None) })
    }

    async fn clock(&self) -> Result<Option<i64>, Error> {
        #[derive(Deserialize)]
        struct Nodes {
            nodes: BTreeMap<String, Node>,
        }
        #[derive(Deserialize)]
        struct Node {
            timestamp: i64,
        }
        let doing = "read the clock of elasticsearch";
        let body = self.ask(doing, Method::Get, "/_nodes/_local/stats/http", &[("filter_path", "nodes.*.timestamp")], None).await?;
        Ok(parse::<Nodes>(doing, &body)?.nodes.into_values().next().map(|node| node.timestamp))
    }

    /// Reads an index.
    pub async fn actual(&self, index: &str) -> Result<Actual, Error> {
        let doing = format!("look at index {index}");
        let query = [
            ("include_defaults", "true"),
            ("filter_path", "*.mappings,*.settings.index,*.defaults.index.translog.durability,*.defaults.index.number_of_replicas"),
        ];
        let body = self.ask(&doing, Method::Get, &format!("/{}", percent::encode(index)), &query, None).await?;
        let found: BTreeMap<String, Actual> = parse(&doing, &body)?;
        found.into_values().next().ok_or_else(|| Error::NoIndex { index: index.to_owned() })
    }
}

impl Actual {
    /// A setting below `index`, as text: the index's own, or the default.
    pub fn setting(&self, path: &[&str]) -> Option<String> {
        let find = |root: &Value| path.iter().try_fold(root.get("index")?.clone(), |value, name| value.get(name).cloned());
        let value = find(&self.settings).or_else(|| find(&self.defaults))?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }
}
