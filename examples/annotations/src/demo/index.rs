//! What Elasticsearch has, asked past the gate and without catchword's own code: a proof must not rest on what it proves.

use anyhow::{Context, bail};
use catchword::config::ElasticsearchSettings;
use reqwest::Method;
use serde_json::{Value, json};

use super::compare::Side;

/// Documents per page; Elasticsearch gives no more at once.
const PAGE: usize = 10_000;

/// The indices of one prefix.
#[derive(Clone)]
pub struct Index {
    client: reqwest::Client,
    settings: ElasticsearchSettings,
    prefix: String,
}

impl Index {
    /// The indices whose names begin with `prefix`.
    pub fn new(settings: &ElasticsearchSettings, prefix: &str) -> reqwest::Result<Index> {
        Ok(Index { client: reqwest::Client::builder().no_proxy().build()?, settings: settings.clone(), prefix: prefix.to_owned() })
    }

    /// The alias that readers of the annotations search.
    pub fn alias(&self) -> String {
        format!("{}annotation", self.prefix)
    }

    /// Ids and versions of everything that readers can find.
    pub async fn documents(&self) -> anyhow::Result<Side> {
        let alias = self.alias();
        self.ask(Method::POST, &format!("{alias}/_refresh"), None).await?;
        let mut documents = Side::new();
        // nobody writes meanwhile; a point in time would be asked for otherwise in OpenSearch than in Elasticsearch
        let mut search = json!({ "size": PAGE, "_source": false, "version": true, "track_total_hits": false, "sort": ["id"] });
        loop {
            let page = self.ask(Method::POST, &format!("{alias}/_search"), Some(&search)).await?;
            let hits = page["hits"]["hits"].as_array().context("an answer without hits")?;
            for hit in hits {
                let (id, version) = (hit["_id"].as_str(), hit["_version"].as_i64());
                documents.insert(id.context("a hit without an id")?.to_owned(), version.context("a hit without a version")?);
            }
            let Some(last) = hits.last() else { break };
            search["search_after"] = last["sort"].clone();
        }
        Ok(documents)
    }

    /// How many documents readers find now; what was written in the last second may not be among them.
    pub async fn count(&self) -> anyhow::Result<u64> {
        let answer = self.ask(Method::GET, &format!("{}/_count", self.alias()), None).await?;
        answer["count"].as_u64().context("an answer without a count")
    }

    /// The version that the index has of a key at this moment, tombstones included.
    pub async fn version(&self, key: &str) -> anyhow::Result<Option<i64>> {
        let answer =
            self.ask(Method::POST, &format!("{}-000001/_mget?_source=false", self.alias()), Some(&json!({ "ids": [key] }))).await?;
        Ok(answer["docs"][0]["_version"].as_i64())
    }

    /// The indices themselves.
    pub async fn names(&self) -> anyhow::Result<Vec<String>> {
        let path = format!("_cat/indices/{}*?h=index&format=json&expand_wildcards=all", self.prefix);
        let listed = self.ask(Method::GET, &path, None).await?;
        let names = listed.as_array().into_iter().flatten().filter_map(|index| index["index"].as_str());
        Ok(names.filter(|name| name.starts_with(&self.prefix)).map(str::to_owned).collect())
    }

    /// Deletes them, each by its whole name.
    pub async fn drop_all(&self) -> anyhow::Result<()> {
        for name in self.names().await? {
            self.ask(Method::DELETE, &name, None).await?;
        }
        Ok(())
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let mut request = self.client.request(method, format!("{}/{path}", self.settings.url.trim_end_matches('/')));
        if let Some(username) = &self.settings.username {
            request = request.basic_auth(username, self.settings.password.as_ref().map(|password| password.expose()));
        }
        if let Some(key) = &self.settings.api_key {
            request = request.header("authorization", format!("ApiKey {}", key.expose()));
        }
        if let Some(token) = &self.settings.bearer_token {
            request = request.bearer_auth(token.expose());
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.context("cannot reach Elasticsearch")?;
        let status = response.status();
        let bytes = response.bytes().await.context("Elasticsearch's answer broke off")?;
        if !status.is_success() {
            bail!("Elasticsearch answered {status} to {path}: {}", String::from_utf8_lossy(&bytes));
        }
        Ok(serde_json::from_slice(&bytes)?)
    }
}
