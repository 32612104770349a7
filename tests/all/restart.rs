//! A restart of Elasticsearch forgets what it kept in memory. A server of this test's own, because the others share theirs.

use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::process::Command;

use crate::common::{Layout, World};

struct Server {
    state: PathBuf,
}

impl Server {
    async fn services(state: &Path, words: &[&str]) -> String {
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/services"));
        let output = command.args(words).env("CATCHWORD_SERVICES", state).env_remove("ELASTICSEARCH_URL").output().await.unwrap();
        assert!(output.status.success(), "scripts/services {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    async fn start() -> (Server, String) {
        let state = std::env::temp_dir().join(format!("catchword-restart-{}", uuid::Uuid::new_v4().simple()));
        let server = Server { state };
        Server::services(&server.state, &["up", "--only", "elasticsearch"]).await;
        let exported = Server::services(&server.state, &["env"]).await;
        let url = exported.lines().find_map(|line| line.strip_prefix("export ELASTICSEARCH_URL=")).unwrap_or_else(|| panic!("{exported}"));
        let url = url.trim_matches(['\'', '"']).to_owned();
        (server, url)
    }
}

/// Ends the server and deletes its data, also after a panic.
impl Drop for Server {
    fn drop(&mut self) {
        let mut command = std::process::Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/services"));
        _ = command
            .args(["down", "--wipe", "--only", "elasticsearch"])
            .env("CATCHWORD_SERVICES", &self.state)
            .env_remove("ELASTICSEARCH_URL")
            .status();
        _ = std::fs::remove_dir_all(&self.state);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_then_the_late_insert_stays_deleted_also_after_a_restart_of_elasticsearch() {
    let (server, url) = Server::start().await;
    let world = World::with(Layout { elasticsearch: Some(url), ..Layout::default() }).await;
    let key = world.in_step("acct:a", "soon gone").await;
    let life = world.revision(&key).await;
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.jobs().await, 0);
    let tombstone = world.version("annotation", &key).await.unwrap();
    assert_eq!(world.put("annotation", &key, life, json!({ "text": "late" })).await, 409, "before the restart");

    Server::services(&server.state, &["restart", "elasticsearch"]).await;
    let health = format!("/_cluster/health/{}?wait_for_status=yellow&timeout=60s", world.index("annotation"));
    let (status, answer) = world.http("GET", &health, None).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(world.put("annotation", &key, life, json!({ "text": "late" })).await, 409, "after the restart");
    assert_eq!(world.version("annotation", &key).await, Some(tombstone));
    assert!(world.found("annotation").await.is_empty());
}
