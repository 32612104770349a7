//! An Elasticsearch of a test's own, which it may restart, freeze and squeeze: the others share theirs.

use std::path::PathBuf;

use tokio::process::Command;

/// Ended, and its data deleted, when it goes out of scope, also after a panic.
pub struct Server {
    pub url: String,
    state: PathBuf,
    settings: String,
}

impl Server {
    /// Settings as in `thread_pool.write.queue_size=1`.
    pub async fn start(settings: &str) -> Server {
        let state = std::env::temp_dir().join(format!("catchword-server-{}", uuid::Uuid::new_v4().simple()));
        let mut server = Server { url: String::new(), state, settings: settings.to_owned() };
        server.services(&["up", "--only", "elasticsearch"]).await;
        server.url = server.recall("elasticsearch.url");
        server
    }

    pub async fn restart(&self) {
        self.services(&["restart", "elasticsearch"]).await;
    }

    /// The same with other settings.
    pub async fn restart_with(&mut self, settings: &str) {
        self.settings = settings.to_owned();
        self.restart().await;
        self.url = self.recall("elasticsearch.url");
    }

    /// The folder of its configuration: what it reads besides its settings lies there. Also where `curl` finds how to ask it.
    pub fn conf(&self) -> PathBuf {
        let (servers, version) = (self.recall("servers"), self.recall("elasticsearch.version"));
        PathBuf::from(servers).join(format!("elasticsearch-{version}")).join("conf")
    }

    /// Stops the server as SIGSTOP does: the kernel still takes connections for it, and nobody answers. Until the guard is dropped.
    pub fn freeze(&self) -> Frozen {
        let group = format!("-{}", self.recall("elasticsearch.pid"));
        signal("-STOP", &group);
        Frozen(group)
    }

    async fn services(&self, words: &[&str]) {
        let output = self.command(words).output().await.unwrap();
        assert!(output.status.success(), "scripts/services {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/services"));
        command.args(words).env("CATCHWORD_SERVICES", &self.state).env_remove("ELASTICSEARCH_URL");
        // an ordinary process also where Docker is: a signal must reach it
        command.env("CATCHWORD_ELASTICSEARCH_SETTINGS", &self.settings).env("DOCKER_HOST", "tcp://127.0.0.1:1");
        command.env("CURL_HOME", &self.state);
        command
    }

    /// How the script asks it whether it is up, as in a `.curlrc`.
    pub fn ask_with(&self, options: &str) {
        std::fs::write(self.state.join(".curlrc"), options).unwrap();
    }

    fn recall(&self, name: &str) -> String {
        std::fs::read_to_string(self.state.join(name)).unwrap().trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.command(&["down", "--wipe", "--only", "elasticsearch"]).as_std_mut().status();
        _ = std::fs::remove_dir_all(&self.state);
    }
}

/// The server is frozen as long as this lives.
pub struct Frozen(String);

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("-CONT", &self.0);
    }
}

/// To the server and whatever it started.
fn signal(signal: &str, group: &str) {
    assert!(std::process::Command::new("kill").args([signal, "--", group]).status().unwrap().success());
}
