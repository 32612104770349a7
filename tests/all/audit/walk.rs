//! The walk over everything that an index shows, from a point in time: whatever the pages are, each document comes exactly once. A place in
//! an order that is not total loses some of them, and nobody would notice.

use std::collections::BTreeMap;

use catchword::elastic::{Elastic, Target};
use serde_json::{Value, json};

use crate::common::{Layout, World};

const SHARDS: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn each_document_of_five_shards_comes_exactly_once_whatever_the_pages_and_the_parts() {
    let world = World::with(Layout { shards: Some(SHARDS as u32), ..Layout::default() }).await;
    let rows =
        "insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 3000) i";
    world.sql(rows).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    // tombstones stand between them, and are not shown
    world.sql("delete from annotation where userid like 'acct:%7'").await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let wanted: Vec<String> = world.all("select id::text from annotation order by id::text collate \"C\"").await;
    assert_eq!(wanted.len(), 2700);

    let elastic = world.catchword.elastic();
    let target = Target::new(world.index("annotation"));
    let (sort, parts) = usual(elastic, &target).await;
    // with fewer parts than shards a place in this order is not a document's own
    let fewest = if sort == "_doc" { SHARDS } else { 1 };
    assert!(parts >= fewest, "{parts} parts by {sort}");
    for size in [33, 99, 100, 1_000, 30_000] {
        assert_eq!(walked(elastic, &target, None, size).await, wanted, "pages of {size}, by {sort}");
    }
    for (parts, size) in [(fewest, 99), (fewest, 30_000), (SHARDS, 100), (SHARDS + 2, 99), (2 * SHARDS + 1, 333)] {
        let beginning = json!({ "sort": sort, "parts": vec!["Beginning"; parts] }).to_string();
        assert_eq!(walked(elastic, &target, Some(beginning), size).await, wanted, "{parts} parts, pages of {size}, by {sort}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_another_server_gave_begins_the_walk_again() {
    let world = World::new().await;
    world.in_step("acct:a", "x").await;
    let (elastic, target) = (world.catchword.elastic(), Target::new(world.index("annotation")));
    let open = elastic.open_point_in_time(&target).await.unwrap();
    for kept in [r#"{"sort":"_id","parts":["Beginning"]}"#, r#"["Beginning","Beginning","Beginning"]"#, "{}"] {
        assert!(elastic.page(&target, &open, Some(kept), 10).await.unwrap().is_none(), "{kept}");
    }
    elastic.close_point_in_time(&open).await;
    assert!(elastic.page(&target, &open, None, 10).await.unwrap().is_none(), "it is closed, and nobody keeps it");
}

/// What a walk is sorted by on this server, and how many parts it has.
async fn usual(elastic: &Elastic, target: &Target) -> (String, usize) {
    let open = elastic.open_point_in_time(target).await.unwrap();
    let page = elastic.page(target, &open, None, 10).await.unwrap().unwrap();
    elastic.close_point_in_time(&page.point_in_time).await;
    let cursor: Value = serde_json::from_str(&page.after).unwrap();
    (cursor["sort"].as_str().unwrap().to_owned(), cursor["parts"].as_array().unwrap().len())
}

/// The ids that a walk shows, sorted. One that comes twice is there twice.
async fn walked(elastic: &Elastic, target: &Target, mut after: Option<String>, size: usize) -> Vec<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut open = elastic.open_point_in_time(target).await.unwrap();
    loop {
        let page = elastic.page(target, &open, after.as_deref(), size).await.unwrap().expect("the point in time is there");
        if page.documents.is_empty() {
            elastic.close_point_in_time(&page.point_in_time).await;
            return seen.into_iter().flat_map(|(id, times)| vec![id; times]).collect();
        }
        for (id, _) in page.documents {
            *seen.entry(id).or_default() += 1;
        }
        (after, open) = (Some(page.after), page.point_in_time);
    }
}
