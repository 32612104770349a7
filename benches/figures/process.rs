//! The binary as a process of its own.

use std::fs;
use std::process::Stdio;

use anyhow::Context;
use tokio::process::{Child, Command};

use crate::world::World;

/// A running `catchword`. It ends when this is dropped.
pub struct Process(Child);

impl Process {
    /// A worker of this world; `database` is another way to its database.
    pub fn worker(world: &World, database: Option<&str>) -> anyhow::Result<Process> {
        Process::start(binary(world, database).args(["worker", "--listen", "127.0.0.1:0"]))
    }

    pub fn start(command: &mut Command) -> anyhow::Result<Process> {
        Ok(Process(command.spawn()?))
    }

    pub fn pid(&self) -> u32 {
        self.0.id().unwrap_or(0)
    }

    /// Asks it to end, and waits.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        Command::new("kill").arg(self.pid().to_string()).status().await?;
        self.0.wait().await?;
        Ok(())
    }
}

/// The binary with this world's configuration and environment.
pub fn binary(world: &World, database: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catchword"));
    command
        .env_clear()
        .env("DATABASE_URL", database.unwrap_or(&world.database_url))
        .env("ELASTICSEARCH_URL", &world.raw.url)
        .env("CATCHWORD_INDEX_PREFIX", &world.prefix)
        .env("CATCHWORD_CONFIG", world.folder.join("catchword.toml"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Megabytes of a process: `VmRSS` now, `VmHWM` at most so far.
pub fn resident(pid: u32, which: &str) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with(which)).with_context(|| format!("no {which} in /proc/{pid}/status"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kilobytes / 1024.0)
}
