//! Somebody who searches all the time, and misses nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::common::World;

pub struct Readers {
    over: CancellationToken,
    searches: Arc<AtomicU64>,
    searching: JoinHandle<u64>,
}

impl Readers {
    /// Searches through the alias until it is told to end. Each search is answered; what was found once is found again unless its row is
    /// gone; and what is gone never comes back.
    pub fn start(world: &Arc<World>) -> Readers {
        let (over, searches) = (CancellationToken::new(), Arc::<AtomicU64>::default());
        Readers { searching: tokio::spawn(search(world.clone(), over.clone(), searches.clone())), over, searches }
    }

    /// How many searches there were so far. One that found something wrong is told now, not when the test is over.
    pub fn searches(&self) -> u64 {
        assert!(!self.searching.is_finished(), "the readers have ended");
        self.searches.load(Ordering::Relaxed)
    }

    /// Ends it; returns how many searches there were.
    pub async fn end(self) -> u64 {
        self.over.cancel();
        self.searching.await.unwrap()
    }
}

async fn search(world: Arc<World>, over: CancellationToken, counted: Arc<AtomicU64>) -> u64 {
    let (mut seen, mut gone, mut searches) = (BTreeSet::new(), BTreeSet::new(), 0);
    while !over.is_cancelled() {
        let now = visible(&world).await;
        let vanished: Vec<Uuid> = seen.difference(&now).copied().collect();
        let there: Vec<Uuid> = sqlx::query_scalar("select key from annotation_document where key = any($1)")
            .bind(&vanished)
            .fetch_all(&world.pool)
            .await
            .unwrap();
        assert!(there.is_empty(), "{} were found before, are not deleted, and are no longer found: {there:?}", there.len());
        gone.extend(vanished);
        let back: Vec<&Uuid> = now.intersection(&gone).collect();
        assert!(back.is_empty(), "{back:?} came back after their delete");
        seen = now;
        searches += 1;
        counted.store(searches, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    searches
}

async fn visible(world: &World) -> BTreeSet<Uuid> {
    // a quarter of all, whole: they fit on one page
    let some = ["0", "1", "2", "3"].map(|first| json!({ "prefix": { "id": first } }));
    let query =
        json!({ "size": 10_000, "_source": false, "sort": ["_doc"], "track_total_hits": true, "query": { "bool": { "should": some } } });
    let (status, answer) = world
        .http("POST", &format!("/{}/_search?filter_path=hits.total.value,hits.hits._id", world.alias("annotation")), Some(query))
        .await;
    assert_eq!(status, 200, "readers see a gap: {answer}");
    let none = Vec::new();
    let hits = answer["hits"]["hits"].as_array().unwrap_or(&none);
    assert_eq!(answer["hits"]["total"]["value"].as_u64(), Some(hits.len() as u64), "more than one page");
    hits.iter().map(|hit| hit["_id"].as_str().unwrap().parse().unwrap()).collect()
}
