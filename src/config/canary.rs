//! The collection that catchword brings itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use super::collection::Collection;

/// What the canary is called, in metrics and on the command line.
pub const CANARY: &str = "catchword_canary";

/// The canary's index: one small shard, a copy where there is a second node, refreshed each second although nobody searches it.
pub(super) const MAPPING: &str = r#"{
  "settings": { "number_of_shards": 1, "auto_expand_replicas": "0-1", "refresh_interval": "1s" },
  "mappings": { "dynamic": "strict", "properties": { "beat": { "type": "long" } } }
}"#;

/// `migrations/0010_worker.sql` makes its table and its view.
pub(super) static COLLECTION: LazyLock<Collection> = LazyLock::new(|| Collection {
    name: CANARY.to_owned(),
    table: "catchword.canary".to_owned(),
    key: vec!["id".to_owned()],
    view: "catchword.canary_document".to_owned(),
    mapping: PathBuf::new(),
    index: CANARY.to_owned(),
    search_alias: None,
    revision: "catchword_revision".to_owned(),
    scopes: BTreeMap::new(),
    period: None,
    touches: Vec::new(),
    unwatched: Vec::new(),
    watch: Vec::new(),
    // the loop is what it watches: no direct write comes first
    fair_by: None,
    fair_share: 1.0,
    delay: Some(Duration::ZERO),
});
