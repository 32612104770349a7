//! The real programs, as children of the demo.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use catchword::config::ElasticsearchSettings;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::scratch::Scratch;

/// How long a program may take to start, and to stop: a worker finishes its batch first.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of a log, how many lines are shown when something went wrong.
const TAIL: usize = 15;

/// The programs' surroundings: the demo's own database and indices, and Elasticsearch through the gate.
pub(super) struct Programs {
    variables: Vec<(&'static str, String)>,
    folder: PathBuf,
}

impl Programs {
    pub(super) fn new(scratch: &Scratch, elasticsearch: &ElasticsearchSettings, gate: SocketAddr) -> Programs {
        let mut variables = vec![
            ("DATABASE_URL", scratch.database_url.to_string()),
            ("ELASTICSEARCH_URL", format!("http://{gate}")),
            ("CATCHWORD_INDEX_PREFIX", scratch.prefix.clone()),
            ("CATCHWORD_CONFIG", scratch.config().display().to_string()),
        ];
        let secret = |secret: &Option<catchword::config::Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        for (name, value) in [
            ("ELASTICSEARCH_USERNAME", elasticsearch.username.clone()),
            ("ELASTICSEARCH_PASSWORD", secret(&elasticsearch.password)),
            ("ELASTICSEARCH_API_KEY", secret(&elasticsearch.api_key)),
            ("ELASTICSEARCH_BEARER_TOKEN", secret(&elasticsearch.bearer_token)),
        ] {
            variables.extend(value.map(|value| (name, value)));
        }
        Programs { variables, folder: scratch.folder.clone() }
    }

    /// Runs a program to its end, which must be a good one.
    pub(super) async fn run(&self, name: &str, words: &[&str]) -> anyhow::Result<()> {
        let ended = self.command(name)?.args(words).stdin(Stdio::null()).output().await?;
        if !ended.status.success() {
            bail!("`{name} {}` failed: {}", words.join(" "), String::from_utf8_lossy(&ended.stderr).trim());
        }
        Ok(())
    }

    /// Starts the annotation service; returns it and its address.
    pub(super) async fn serve(&self) -> anyhow::Result<(Program, String)> {
        let mut api = self.start("annotation-api", &["serve", "--listen", "127.0.0.1:0"])?;
        let stdout = api.child.stdout.take().context("no output to read")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        match line.context("the annotation service does not start")?? {
            Some(line) => {
                let url = line.strip_prefix("listening on ").context("the annotation service does not say where it listens")?;
                Ok((api, url.to_owned()))
            }
            None => bail!("the annotation service did not start:\n{}", api.tail()),
        }
    }

    /// Starts a worker.
    pub(super) fn work(&self) -> anyhow::Result<Program> {
        self.start("catchword", &["worker", "--listen", "127.0.0.1:0"])
    }

    /// Starts the console, for whoever is on this machine; returns it and its address.
    pub(super) async fn show(&self) -> anyhow::Result<(Program, String)> {
        let mut console = self.start("catchword", &["serve", "--listen", "127.0.0.1:0", "--open"])?;
        let said = || std::fs::read_to_string(&console.log).unwrap_or_default();
        let listens = async {
            loop {
                if let Some(url) = said().split("the console at ").nth(1).and_then(|rest| rest.split_whitespace().next()) {
                    return url.to_owned();
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, listens).await {
            Ok(url) => Ok((console, url)),
            Err(_) => {
                console.still_runs()?;
                bail!("the console does not say where it listens:\n{}", console.tail())
            }
        }
    }

    /// Makes an API key with which somebody may act, and returns it.
    pub(super) async fn key(&self) -> anyhow::Result<String> {
        let made = self.command("catchword")?.args(["key", "create", "demo", "--role", "admin"]).stdin(Stdio::null()).output().await?;
        if !made.status.success() {
            bail!("no API key was made: {}", String::from_utf8_lossy(&made.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
    }

    fn start(&self, name: &'static str, words: &[&str]) -> anyhow::Result<Program> {
        let log = self.folder.join(format!("{name}-{}.log", words.first().unwrap_or(&"")));
        let child =
            self.command(name)?.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(std::fs::File::create(&log)?).spawn()?;
        Ok(Program { name, child, log })
    }

    /// A program that was built with this one: it lies beside it.
    fn command(&self, name: &str) -> anyhow::Result<Command> {
        let path = std::env::current_exe()?.with_file_name(name);
        if !path.is_file() {
            bail!("there is no {} beside this program; `make demo` builds it", path.display());
        }
        let mut command = Command::new(path);
        for (variable, _) in std::env::vars_os() {
            // the other variables describe the server itself, and not the gate before it
            if variable.to_str().is_some_and(|name| name.starts_with("ELASTICSEARCH_") || name == "DATABASE_URL_FILE") {
                command.env_remove(variable);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value))).kill_on_drop(true);
        Ok(command)
    }
}

/// A program that runs until it is stopped; killed when it is dropped.
pub(super) struct Program {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Program {
    /// An error if it has ended without being told to.
    pub(super) fn still_runs(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended unexpectedly: {status}", self.name),
        }
    }

    /// Asks it to stop, and waits for it.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(pid) = self.child.id() {
            Command::new("kill").args(["-TERM", &pid.to_string()]).status().await?;
        }
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = ended.with_context(|| format!("{} does not stop", self.name))??;
        if !status.success() {
            bail!("{} stopped with {status}:\n{}", self.name, self.tail());
        }
        Ok(())
    }

    /// The end of its log, for whoever has to find out what went wrong.
    pub(super) fn tail(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(TAIL)..];
        format!("--- the end of {}'s log\n{}", self.name, last.join("\n"))
    }
}
