//! The commands, and what they have in common.

mod generate;
mod migrate;
mod serve;

use std::env;
use std::time::Duration;

use anyhow::Context;
use catchword::config::{Environment, Tls};
use clap::{Args, Parser, Subcommand};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};

/// An annotation service on Postgres, whose search index catchword keeps in step.
///
/// Start with `annotation-api migrate`, then `catchword migrate`, then `annotation-api serve`.
/// Addresses and secrets come from the environment, as for catchword: DATABASE_URL, and for `serve`
/// ELASTICSEARCH_URL; each secret also from a file that DATABASE_URL_FILE and the like name.
/// Exit code 0: done; 2: could not, and why is on standard error.
#[derive(Debug, Parser)]
#[command(name = "annotation-api", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Migrate(migrate::Migrate),
    Serve(serve::Serve),
    Generate(generate::Generate),
}

pub(crate) async fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Migrate(migrate) => migrate.run().await,
        Command::Serve(serve) => serve.run().await,
        Command::Generate(generate) => generate.run().await,
    }
}

/// How the other side proves who it is.
#[derive(Debug, Args)]
struct Security {
    /// Take any certificate, and none too, from remote hosts: only for networks you trust
    #[arg(long)]
    insecure: bool,
}

impl Security {
    fn tls(&self) -> Tls {
        if self.insecure { Tls::Insecure } else { Tls::Verified }
    }

    /// A pool for a command that needs the database alone.
    async fn database(&self) -> anyhow::Result<PgPool> {
        // catchword's own rules for the address and its TLS; of Elasticsearch it reads nothing
        let environment = Environment::from_lookup(
            |name| match name {
                "ELASTICSEARCH_URL" => Some("http://127.0.0.1:9200".to_owned()),
                name if name.starts_with("ELASTICSEARCH_") => None,
                name => env::var(name).ok(),
            },
            self.tls(),
        )?;
        connect(environment.database_url.expose()).await.with_context(|| format!("cannot reach the database {}", environment.database_url))
    }
}

/// How long the database may take to answer before a command gives up.
const PATIENCE: Duration = Duration::from_secs(10);

async fn connect(url: &str) -> Result<PgPool, sqlx::Error> {
    let options: PgConnectOptions = url.parse()?;
    // once without the pool, which would only say that it waited too long, and not for what
    let reached = tokio::time::timeout(PATIENCE, PgConnection::connect_with(&options)).await;
    reached.map_err(|_| sqlx::Error::PoolTimedOut)??.close().await?;
    PgPoolOptions::new().max_connections(2).acquire_timeout(PATIENCE).connect_with(options).await
}
