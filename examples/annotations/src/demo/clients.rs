//! The service's clients: they save annotations side by side, and search.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::show::Bars;
use crate::generate::{Generator, Insert, Operation};

/// Clients that save at the same time.
const CLIENTS: usize = 8;
/// Between two looks at how far they are.
const LOOK: Duration = Duration::from_millis(200);

pub(super) struct Clients {
    client: reqwest::Client,
    url: String,
    /// What is still to be saved.
    bodies: Vec<String>,
}

/// What saving many came to.
#[derive(Debug, Default)]
pub(super) struct Saved {
    pub(super) count: usize,
    /// Of them, how many were in the index when the answer came.
    pub(super) indexed: usize,
    pub(super) took: Duration,
    pub(super) slowest: Duration,
}

impl std::ops::AddAssign for Saved {
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.indexed += more.indexed;
        self.took += more.took;
        self.slowest = self.slowest.max(more.slowest);
    }
}

/// What a search answered.
pub(super) struct Found {
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    pub(super) total: u64,
}

impl Clients {
    /// Clients of the service at `url`, with annotations to save.
    pub(super) fn new(url: String, bodies: Vec<String>) -> anyhow::Result<Clients> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(Clients { client, url, bodies })
    }

    /// Saves so many, several at a time, after so many before them. One that is not saved is an error.
    pub(super) async fn save(&mut self, count: usize, before: usize, bars: &mut Bars) -> anyhow::Result<Saved> {
        let bodies: Arc<[String]> = self.bodies.drain(..count.min(self.bodies.len())).collect();
        let next = Arc::new(AtomicUsize::new(0));
        let started = Instant::now();
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(one_client(self.client.clone(), self.url.clone(), bodies.clone(), next.clone()));
        }
        let mut saved = Saved::default();
        while !clients.is_empty() {
            if let Ok(Some(ended)) = tokio::time::timeout(LOOK, clients.join_next()).await {
                saved += ended.context("a client panicked")??;
            }
            bars.at(&[(before + next.load(Ordering::Relaxed).min(count)) as u64]);
        }
        saved.took = started.elapsed();
        Ok(saved)
    }

    /// Searches for everything.
    pub(super) async fn search(&self) -> anyhow::Result<Found> {
        let response = self.client.get(format!("{}/api/search?limit=0", self.url)).send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body: Value = serde_json::from_slice(&response.bytes().await?)?;
        Ok(Found {
            status,
            retry_after: headers.get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned),
            total: body["total"].as_u64().unwrap_or_default(),
        })
    }
}

async fn one_client(client: reqwest::Client, url: String, bodies: Arc<[String]>, next: Arc<AtomicUsize>) -> anyhow::Result<Saved> {
    let mut saved = Saved::default();
    while let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
        let started = Instant::now();
        let response = client.post(format!("{url}/api/annotations")).body(body.clone()).send().await?;
        let status = response.status();
        let indexed = response.headers().get("catchword-direct").is_some_and(|word| word == "indexed");
        let answer = response.bytes().await?;
        if status != 201 {
            bail!("an annotation was not saved: {status} {}", String::from_utf8_lossy(&answer));
        }
        saved.count += 1;
        saved.indexed += usize::from(indexed);
        saved.slowest = saved.slowest.max(started.elapsed());
    }
    Ok(saved)
}

/// So many annotations as clients send them, always the same ones.
pub(super) fn bodies(count: usize) -> Vec<String> {
    let inserts = Generator::new(1).filter_map(|operation| match operation {
        Operation::Insert(insert) => Some(insert),
        Operation::Edit(_) | Operation::Delete(_) => None,
    });
    inserts.take(count).map(body).collect()
}

/// Ids are the service's here, so a reply would name what is not there: `references` is left out.
fn body(insert: Insert) -> String {
    json!({
        "userid": insert.userid, "groupid": insert.groupid, "text": insert.text, "tags": insert.tags,
        "target_uri": insert.target_uri, "shared": insert.shared, "document": { "title": insert.title },
    })
    .to_string()
}
