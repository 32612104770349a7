//! Whether the cluster has room for a second copy of an index.

use std::collections::BTreeMap;

use crate::elastic::client::Method;
use serde::{Deserialize, Serialize};

use super::flood_stage::FloodStage;
use crate::elastic::ask::parse;
use crate::elastic::{Elastic, Error, Target, percent};

/// What an index takes, and what is left for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Room {
    /// Bytes of the index and of all its copies.
    pub needed: u64,
    /// Bytes that can still be written before the disks are full.
    pub free: u64,
}

impl Room {
    /// Would a second index of the same size fit?
    pub fn is_enough(&self) -> bool {
        self.needed <= self.free
    }
}

#[derive(Deserialize)]
struct Nodes {
    #[serde(default)]
    nodes: BTreeMap<String, Node>,
}

#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    roles: Vec<String>,
    fs: Fs,
}

#[derive(Deserialize)]
struct Fs {
    total: Disk,
}

#[derive(Deserialize)]
struct Disk {
    total_in_bytes: u64,
    available_in_bytes: u64,
}

impl Elastic {
    /// How much room a second index like this one would take, and how much there is.
    pub async fn room_beside(&self, target: &Target) -> Result<Room, Error> {
        #[derive(Deserialize)]
        struct Stats {
            #[serde(rename = "_all")]
            all: All,
        }
        #[derive(Deserialize)]
        struct All {
            total: Total,
        }
        #[derive(Deserialize)]
        struct Total {
            store: Store,
        }
        #[derive(Deserialize)]
        struct Store {
            size_in_bytes: u64,
        }
        let doing = format!("read the size of {target}");
        let path = format!("/{}/_stats/store", percent::encode(target.index()));
        let body = self.ask(&doing, Method::Get, &path, &[("filter_path", "_all.total.store.size_in_bytes")], None).await?;
        let needed = parse::<Stats>(&doing, &body)?.all.total.store.size_in_bytes;
        let doing = "read how full the disks are";
        let query = [("filter_path", "nodes.*.roles,nodes.*.fs.total.total_in_bytes,nodes.*.fs.total.available_in_bytes")];
        let body = self.ask(doing, Method::Get, "/_nodes/stats/fs", &query, None).await?;
        let nodes = parse(doing, &body)?;
        Ok(Room { needed, free: free(&nodes, &self.flood_stage().await?) })
    }

    /// Where this cluster stops taking writes.
    async fn flood_stage(&self) -> Result<FloodStage, Error> {
        let doing = "read how full the disks may be";
        let query = [("include_defaults", "true"), ("filter_path", "*.cluster.routing.allocation.disk")];
        let body = self.ask(doing, Method::Get, "/_cluster/settings", &query, None).await?;
        Ok(FloodStage::of(&parse(doing, &body)?))
    }
}

/// What can be written to the nodes that hold data before they are at flood stage.
fn free(nodes: &Nodes, flood: &FloodStage) -> u64 {
    let holds_data = |node: &&Node| node.roles.is_empty() || node.roles.iter().any(|role| role.starts_with("data"));
    let left = |disk: &Disk| disk.available_in_bytes.saturating_sub(flood.kept_free(disk.total_in_bytes));
    nodes.nodes.values().filter(holds_data).map(|node| left(&node.fs.total)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_above_flood_stage_and_on_other_nodes_does_not_count() {
        let disk = |total: u64, available: u64| json!({ "total": { "total_in_bytes": total, "available_in_bytes": available } });
        let nodes = json!({ "nodes": {
            "a": { "roles": ["data", "master"], "fs": disk(1000, 300) },
            "b": { "roles": ["data_hot"], "fs": disk(1000, 40) },
            "c": { "roles": ["master"], "fs": disk(1000, 900) },
        } });
        let free = free(&serde_json::from_value(nodes).unwrap(), &FloodStage::of(&json!({})));
        assert_eq!(free, 250);
        assert!(Room { needed: 250, free }.is_enough());
        assert!(!Room { needed: 251, free }.is_enough());
    }
}
