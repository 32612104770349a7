//! The limits: what Elasticsearch does with the same bytes when nobody asks for more.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use sqlx::PgPool;

/// Writes and looks of the bench's own.
pub struct Raw {
    pub client: reqwest::Client,
    pub url: String,
    prefix: String,
}

/// A document as the view builds it.
#[derive(Clone)]
pub struct Doc {
    pub key: String,
    pub body: String,
}

/// As a batch: so many documents in a request, or so many bytes.
const PER_REQUEST: usize = 2_500;
const BYTES: usize = 4 << 20;

impl Raw {
    pub fn new(url: &str, prefix: &str) -> anyhow::Result<Raw> {
        // as catchword asks: compressing answers would cost more than it saves
        let plain = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
        let client = reqwest::Client::builder().no_proxy().default_headers(plain).build()?;
        Ok(Raw { client, url: url.to_owned(), prefix: prefix.to_owned() })
    }

    /// The process of the server.
    pub async fn process(&self) -> anyhow::Result<u32> {
        let url = format!("{}/_nodes/_local/process?filter_path=nodes.*.process.id", self.url);
        let answer: serde_json::Value = serde_json::from_slice(&self.client.get(url).send().await?.bytes().await?)?;
        let node = answer["nodes"].as_object().and_then(|nodes| nodes.values().next());
        Ok(node.and_then(|node| node["process"]["id"].as_u64()).unwrap_or(0) as u32)
    }

    /// A new index with the example's own mapping.
    pub async fn create_index(&self, name: &str) -> anyhow::Result<String> {
        let index = format!("{}{name}", self.prefix);
        let mapping = include_str!("../../examples/annotations/annotation.json");
        let request = self.client.put(format!("{}/{index}", self.url)).header("content-type", "application/json").body(mapping);
        request.send().await?.error_for_status()?;
        Ok(index)
    }

    /// How many documents were ever written to an index.
    pub async fn indexed(&self, index: &str) -> anyhow::Result<u64> {
        let url = format!("{}/{index}/_stats/indexing?filter_path=_all.primaries.indexing.index_total", self.url);
        let answer: serde_json::Value = serde_json::from_slice(&self.client.get(url).send().await?.bytes().await?)?;
        answer["_all"]["primaries"]["indexing"]["index_total"].as_u64().context("no number of writes in the answer")
    }

    pub async fn drop_index(&self, index: &str) -> anyhow::Result<()> {
        self.client.delete(format!("{}/{index}", self.url)).send().await?.error_for_status()?;
        Ok(())
    }

    /// Everything of this world.
    pub async fn drop_all(&self) -> anyhow::Result<()> {
        let listed = self.client.get(format!("{}/_cat/indices/{}*?h=index&expand_wildcards=all", self.url, self.prefix)).send().await?;
        for index in listed.text().await?.split_whitespace() {
            self.drop_index(index).await?;
        }
        Ok(())
    }

    /// Sends each body, over so many connections at a time: how long that took.
    pub async fn send_all(&self, path: &str, bodies: &[Bytes], connections: usize) -> anyhow::Result<Duration> {
        let next = Mutex::new(bodies.iter());
        let started = Instant::now();
        let lanes = (0..connections).map(|_| async {
            loop {
                let Some(body) = next.lock().map_err(|_| anyhow::anyhow!("a lane panicked"))?.next() else {
                    return anyhow::Ok(());
                };
                let request = self.client.post(format!("{}{path}", self.url)).header("content-type", "application/x-ndjson");
                let answer = request.body(body.clone()).send().await?.error_for_status()?.bytes().await?;
                anyhow::ensure!(!contains(&answer, b"\"error\""), "a raw request was refused: {}", String::from_utf8_lossy(&answer[..500]));
            }
        });
        for lane in futures_util::future::join_all(lanes).await {
            lane?;
        }
        Ok(started.elapsed())
    }

    /// Raw `_bulk`, with the options that catchword sends.
    pub async fn bulk(&self, index: &str, bodies: &[Bytes], connections: usize) -> anyhow::Result<Duration> {
        let options = "timeout=5s&filter_path=items.*._id,items.*.status,items.*.error.type,items.*.error.reason";
        self.send_all(&format!("/{index}/_bulk?{options}"), bodies, connections).await
    }

    /// Raw `_mget`, with the options that catchword sends.
    pub async fn mget(&self, index: &str, bodies: &[Bytes], connections: usize) -> anyhow::Result<Duration> {
        let options = "_source=false&realtime=true&filter_path=docs._id,docs._version,docs.found,docs.error.type,docs.error.reason";
        self.send_all(&format!("/{index}/_mget?{options}"), bodies, connections).await
    }

    /// One versioned PUT.
    pub async fn put(&self, index: &str, doc: &Doc, version: i64) -> anyhow::Result<()> {
        let url = format!("{}/{index}/_doc/{}?version={version}&version_type=external&filter_path=result", self.url, doc.key);
        let request = self.client.put(url).header("content-type", "application/json").body(doc.body.clone());
        request.send().await?.error_for_status()?.bytes().await?;
        Ok(())
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The documents of these rows, as the view builds them.
pub async fn documents(pool: &PgPool, limit: usize) -> anyhow::Result<Vec<Doc>> {
    let rows: Vec<(String, String)> = sqlx::query_as("select key::text, body::text from annotation_document order by key limit $1")
        .bind(limit as i64)
        .fetch_all(pool)
        .await
        .context("the documents could not be read")?;
    Ok(rows.into_iter().map(|(key, body)| Doc { key, body }).collect())
}

/// The same bytes as catchword sends, in the same requests.
pub fn bulks(docs: &[Doc], version: i64) -> Vec<Bytes> {
    let mut bodies = vec![];
    let (mut body, mut count) = (String::new(), 0);
    for Doc { key, body: json } in docs {
        if count == PER_REQUEST || (count > 0 && body.len() + json.len() > BYTES) {
            bodies.push(Bytes::from(std::mem::take(&mut body)));
            count = 0;
        }
        body += &format!("{{\"index\":{{\"_id\":\"{key}\",\"version\":{version},\"version_type\":\"external\"}}}}\n{json}\n");
        count += 1;
    }
    bodies.push(Bytes::from(body));
    bodies
}

/// Questions for their versions.
pub fn mgets(docs: &[Doc]) -> Vec<Bytes> {
    let ids = |chunk: &[Doc]| chunk.iter().map(|doc| doc.key.clone()).collect::<Vec<_>>();
    docs.chunks(PER_REQUEST).map(|chunk| Bytes::from(serde_json::json!({ "ids": ids(chunk) }).to_string())).collect()
}
