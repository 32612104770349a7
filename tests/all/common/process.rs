//! The worker as a process.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::World;

/// A worker of the real binary.
pub struct Running {
    pub child: Child,
    url: String,
    /// What it has logged since it runs.
    logged: Arc<Mutex<Vec<String>>>,
}

/// Starts the real binary on a free port and waits until it runs.
pub async fn start(world: &World) -> Running {
    launch(&mut world.binary()).await
}

/// The same with a binary whose environment is another.
pub async fn launch(command: &mut Command) -> Running {
    listening(command.args(["worker", "--listen", "127.0.0.1:0"])).await
}

/// `catchword serve` on a free port, with these further words.
pub async fn serve(world: &World, words: &[&str]) -> Running {
    listening(world.binary().args(["serve", "--listen", "127.0.0.1:0"]).args(words)).await
}

/// Starts what says where it listens, and waits until it does.
pub async fn listening(command: &mut Command) -> Running {
    let mut child = command.args(["--log", "json"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let url = loop {
        let line = lines.next_line().await.unwrap().expect("it says where it listens");
        let said: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        if let Some(address) = said["listen"].as_str() {
            break format!("http://{address}");
        }
    };
    let logged = Arc::new(Mutex::new(Vec::new()));
    let kept = logged.clone();
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            eprintln!("{line}");
            kept.lock().unwrap().push(line);
        }
    });
    Running { child, url, logged }
}

impl Running {
    pub async fn signal(&self, signal: &str) {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().await.unwrap().success());
    }

    /// The lines it has logged since it runs.
    pub fn lines(&self) -> Vec<String> {
        self.logged.lock().unwrap().clone()
    }

    /// Where it listens: host and port.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub async fn get(&self, world: &World, path: &str) -> (u16, String) {
        let response = world.client.get(format!("{}{path}", self.url)).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}
