//! What a test sees in Elasticsearch, by its own requests.

use serde_json::{Value, json};

use super::World;

impl World {
    /// A request of the test's own, straight to the server: status and body.
    pub async fn http(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        self.http_text(method, path, body.map(|body| body.to_string())).await
    }

    /// The same with a body as it is.
    pub async fn http_text(&self, method: &str, path: &str, body: Option<String>) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.client.request(method, format!("{}{path}", self.elasticsearch));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.bytes().await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// The physical index of a collection.
    pub fn index(&self, collection: &str) -> String {
        format!("{}{collection}-000001", self.prefix)
    }

    /// The indices of a collection that must all agree, the readers' first.
    pub async fn targets(&self, collection: &str) -> Vec<String> {
        self.one(&format!("select targets from catchword.collection where name = '{collection}'")).await
    }

    /// The readers' alias of a collection.
    pub fn alias(&self, collection: &str) -> String {
        format!("{}{collection}", self.prefix)
    }

    /// The version of a key in a collection's index, tombstones included.
    pub async fn version(&self, collection: &str, key: &str) -> Option<i64> {
        let body = json!({ "ids": [key] });
        let (_, answer) = self.http("POST", &format!("/{}/_mget?_source=false", self.index(collection)), Some(body)).await;
        answer["docs"][0]["_version"].as_i64()
    }

    /// The source of a key's document, or of its tombstone.
    pub async fn source(&self, collection: &str, key: &str) -> Option<Value> {
        let body = json!({ "ids": [key] });
        let (_, answer) = self.http("POST", &format!("/{}/_mget", self.index(collection)), Some(body)).await;
        answer["docs"][0].get("_source").cloned()
    }

    /// The ids that readers find through the alias, after a refresh.
    pub async fn found(&self, collection: &str) -> Vec<String> {
        self.http("POST", &format!("/{}/_refresh", self.alias(collection)), None).await;
        let query = json!({ "size": 10_000, "_source": false, "sort": ["_doc"] });
        let (status, answer) = self.http("POST", &format!("/{}/_search", self.alias(collection)), Some(query)).await;
        assert_eq!(status, 200, "{answer}");
        let hits = answer["hits"]["hits"].as_array().unwrap();
        let mut ids: Vec<String> = hits.iter().map(|hit| hit["_id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    }

    /// Writes a document as somebody else would: past catchword, with a version.
    pub async fn put(&self, collection: &str, key: &str, version: i64, source: Value) -> u16 {
        let action = json!({ "index": { "_id": key, "version": version, "version_type": "external" } });
        let path = format!("/{}/_bulk", self.index(collection));
        let (_, answer) = self.http_text("POST", &path, Some(format!("{action}\n{source}\n"))).await;
        answer["items"][0]["index"]["status"].as_u64().unwrap() as u16
    }
}
