use std::path::PathBuf;

use anyhow::Context;
use catchword::config::Environment;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use url::Url;
use uuid::Uuid;

use super::compare::Side;
use super::index::Index;

/// How long catchword waits before it looks at what was saved, and how often it does.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// As in `catchword.toml`: after a minute, every minute.
    Usual,
    /// After so long, at each of these ticks: for whoever cannot wait.
    Fast {
        /// `delay` of the collection.
        delay: &'static str,
        /// `tick` of the worker.
        tick: &'static str,
    },
}

/// A database, index names and a folder of its own on servers that are somebody else's. Nothing of it is left behind,
/// also after a failure.
pub struct Scratch {
    /// Where the rows are.
    pub database_url: Url,
    /// What the names of its indices begin with.
    pub prefix: String,
    /// Its indices, past any gate.
    pub index: Index,
    /// Holds `catchword.toml`, what it names, and whatever else is put there.
    pub folder: PathBuf,
    database: String,
    server: Url,
}

impl Scratch {
    /// Makes them; the names begin with `name`.
    pub async fn create(given: &Environment, name: &str, clock: Clock) -> anyhow::Result<Scratch> {
        let id = &Uuid::new_v4().simple().to_string()[..12];
        let server = Url::parse(given.database_url.expose())?;
        let mut scratch = Scratch {
            database_url: server.clone(),
            prefix: format!("{name}-{id}-"),
            index: Index::new(&given.elasticsearch, &format!("{name}-{id}-"))?,
            folder: std::env::temp_dir().join(format!("catchword-{name}-{id}")),
            database: format!("catchword_{name}_{id}"),
            server,
        };
        scratch.database_url.set_path(&scratch.database);
        scratch.write_config(clock).context("cannot write its configuration")?;
        on_server(&scratch.server, &format!("create database {}", scratch.database))
            .await
            .with_context(|| format!("cannot create a database of its own on {}", given.database_url))?;
        Ok(scratch)
    }

    /// The configuration.
    pub fn config(&self) -> PathBuf {
        self.folder.join("catchword.toml")
    }

    /// Keys and versions of everything that the view returns.
    pub async fn rows(&self) -> anyhow::Result<Side> {
        let mut connection = self.connect().await?;
        let rows: Vec<(String, i64)> = sqlx::query_as(include_str!("rows.sql")).fetch_all(&mut connection).await?;
        Ok(rows.into_iter().collect())
    }

    /// A connection to its database.
    pub async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        PgConnection::connect(self.database_url.as_str()).await
    }

    fn write_config(&self, clock: Clock) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        std::fs::write(self.folder.join("annotation.json"), include_str!("../../annotation.json"))?;
        std::fs::write(self.config(), config(clock))
    }
}

/// The service's own configuration; with a fast clock only delay and tick are others.
fn config(clock: Clock) -> String {
    // no canary: what is counted here are annotations
    let usual = include_str!("../../catchword.toml").replace("[worker]\n", "[worker]\ncanary = false\n");
    match clock {
        Clock::Usual => usual,
        // the file ends inside its one collection
        Clock::Fast { delay, tick } => format!("{}delay = \"{delay}\"\n", usual.replace("\"0 * * * * *\"", &format!("\"{tick}\""))),
    }
}

/// Runs one statement outside the database that it is about.
async fn on_server(server: &Url, statement: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(server.as_str()).await?;
    // a statement about a database takes no parameters; the name is made of letters, digits and underscores here
    sqlx::query(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await?;
    connection.close().await
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let (server, index) = (self.server.clone(), self.index.clone());
        let drop_database = format!("drop database if exists {} with (force)", self.database);
        // a thread and a runtime of its own: a drop cannot wait, and may happen while the first runtime ends
        let swept = std::thread::spawn(move || -> anyhow::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let (dropped, deleted) = (on_server(&server, &drop_database).await, index.drop_all().await);
                dropped?;
                deleted
            })
        });
        let swept = swept.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the sweeper panicked")));
        if let Err(error) = swept {
            eprintln!("left behind: database {}, indices {}*: {error:#}", self.database, self.prefix);
        }
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_changes_delay_and_tick_and_nothing_else() {
        let fast = config(Clock::Fast { delay: "2s", tick: "*/2 * * * * *" });
        let usual = config(Clock::Usual);
        let changed: Vec<&str> = fast.lines().filter(|line| !usual.lines().any(|other| other == *line)).collect();
        assert_eq!(changed, ["tick = \"*/2 * * * * *\"", "delay = \"2s\""]);
    }
}
