//! A fresh database and a fresh index for a figure, and what it may do with them.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::Context;
use catchword::Catchword;
use catchword::config::{Config, Environment, Tls};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use uuid::Uuid;

use crate::raw::Raw;
use crate::scale::Scale;
use crate::seed::Size;

/// The run: its servers, its scale, its seeds.
pub struct Bench {
    pub scale: Scale,
    pub server_url: String,
    pub elasticsearch: String,
    pub id: String,
    /// The processes of both servers, 0 if they are not on this machine.
    pub servers: (u32, u32),
    pub seeds: tokio::sync::Mutex<HashMap<(Size, usize), String>>,
}

/// A figure's own database and index.
pub struct World {
    pub catchword: Catchword,
    /// The bench's own connections.
    pub pool: PgPool,
    pub raw: Raw,
    pub environment: Environment,
    pub database_url: String,
    pub prefix: String,
    pub folder: PathBuf,
    database: String,
    server_url: String,
}

/// What a figure's configuration says.
pub struct Layout {
    pub size: Size,
    pub rows: usize,
    /// Lines of `[worker]`.
    pub worker: &'static str,
}

impl Bench {
    pub async fn open(scale: Scale) -> anyhow::Result<Bench> {
        let given = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set; run: make bench"));
        let elasticsearch = given("ELASTICSEARCH_URL")?.trim_end_matches('/').to_owned();
        let id = Uuid::new_v4().simple().to_string()[..12].to_owned();
        let server_url = given("DATABASE_URL")?;
        let servers = (postmaster(&server_url).await?, Raw::new(&elasticsearch, "")?.process().await?);
        Ok(Bench { scale, server_url, elasticsearch, id, servers, seeds: Default::default() })
    }

    /// Small documents, as many as this scale has.
    pub async fn small(&self) -> anyhow::Result<World> {
        self.world(Layout { size: Size::Small, rows: self.scale.pick(200_000, 20_000, 300), worker: "" }).await
    }

    /// Documents of 10 KB.
    pub async fn large(&self) -> anyhow::Result<World> {
        self.world(Layout { size: Size::Large, rows: self.scale.pick(20_000, 2_500, 50), worker: "" }).await
    }

    /// A copy of a seed, attached; an index without documents; no jobs.
    pub async fn world(&self, layout: Layout) -> anyhow::Result<World> {
        let seed = self.seed(layout.size, layout.rows).await?;
        let name = Uuid::new_v4().simple().to_string();
        let (database, prefix) = (format!("cw_bench_{name}"), format!("b{}-", &name[..12]));
        let mut server = PgConnection::connect(&self.server_url).await?;
        sqlx::query(AssertSqlSafe(format!("create database {database} template {seed} strategy file_copy"))).execute(&mut server).await?;
        let database_url = url_of(&self.server_url, &database)?;
        let folder = std::env::temp_dir().join(format!("catchword-bench-{name}"));
        let config = write_config(&folder, layout.worker)?;
        let environment = Environment::from_lookup(
            |name| match name {
                "DATABASE_URL" => Some(database_url.clone()),
                "ELASTICSEARCH_URL" => Some(self.elasticsearch.clone()),
                "CATCHWORD_INDEX_PREFIX" => Some(prefix.clone()),
                _ => None,
            },
            Tls::Verified,
        )?;
        Catchword::open(config.clone(), &environment)?.migrate().await?;
        let catchword = Catchword::connect(config, &environment).await?;
        let pool = PgPoolOptions::new().max_connections(80).connect(&database_url).await?;
        let raw = Raw::new(&self.elasticsearch, &prefix)?;
        Ok(World { catchword, pool, raw, environment, database_url, prefix, folder, database, server_url: self.server_url.clone() })
    }

    /// Drops the seeds.
    pub async fn close(self) -> anyhow::Result<()> {
        let mut server = PgConnection::connect(&self.server_url).await?;
        for name in self.seeds.into_inner().into_values() {
            sqlx::query(AssertSqlSafe(format!("drop database if exists {name} with (force)"))).execute(&mut server).await?;
        }
        Ok(())
    }
}

impl World {
    pub async fn sql(&self, sql: &str) -> anyhow::Result<()> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.pool).await.with_context(|| sql.to_owned())?;
        Ok(())
    }

    pub async fn one<T>(&self, sql: &str) -> anyhow::Result<T>
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&self.pool).await.with_context(|| sql.to_owned())
    }

    pub async fn all<T>(&self, sql: &str) -> anyhow::Result<Vec<T>>
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(&self.pool).await.with_context(|| sql.to_owned())
    }

    /// One job per row, as `reindex --all` leaves them. How many. All are there when this ends: a reindex would leave half of a large table to
    /// the worker, whose drain is measured.
    pub async fn schedule_all(&self) -> anyhow::Result<u64> {
        let sql = "insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag)
                   select 'annotation', id::text, now() + row_number() over (order by id) * interval '1 us', now(), catchword.priority_whole(), 'reindex'
                     from annotation";
        Ok(sqlx::query(sql).execute(&self.pool).await?.rows_affected())
    }

    /// The physical index.
    pub fn index(&self) -> String {
        format!("{}annotation-000001", self.prefix)
    }

    /// Deletes every document, by making the index again.
    pub async fn empty_index(&self) -> anyhow::Result<()> {
        self.raw.drop_index(&self.index()).await?;
        self.catchword.migrate().await?;
        Ok(())
    }

    /// Passes until nothing moves; an error if anything is left.
    pub async fn drain(&self) -> anyhow::Result<catchword::Outcome> {
        let outcome = self.catchword.drain("bench", &[]).await?;
        let left: i64 = self.one("select count(*) from catchword.job").await?;
        anyhow::ensure!(left == 0, "{left} jobs are left: {outcome}");
        Ok(outcome)
    }

    /// Leaves nothing behind.
    pub async fn close(self) -> anyhow::Result<()> {
        self.pool.close().await;
        self.catchword.pool().close().await;
        let mut server = PgConnection::connect(&self.server_url).await?;
        sqlx::query(AssertSqlSafe(format!("drop database if exists {} with (force)", self.database))).execute(&mut server).await?;
        self.raw.drop_all().await?;
        std::fs::remove_dir_all(&self.folder)?;
        Ok(())
    }
}

async fn postmaster(url: &str) -> anyhow::Result<u32> {
    let backend: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut PgConnection::connect(url).await?).await?;
    Ok(crate::cpu::parent(backend as u32).unwrap_or(0))
}

pub fn url_of(server_url: &str, database: &str) -> anyhow::Result<String> {
    let mut url = url::Url::parse(server_url)?;
    url.set_path(database);
    Ok(url.to_string())
}

/// The example's collection; jobs are due at once.
fn write_config(folder: &PathBuf, worker: &str) -> anyhow::Result<Config> {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/annotations");
    std::fs::create_dir_all(folder)?;
    std::fs::copy(format!("{example}/annotation.json"), folder.join("annotation.json"))?;
    let text = format!(
        "[worker]\n{worker}\n\n[[collection]]\nname = \"annotation\"\ntable = \"annotation\"\nkey = \"id\"\nview = \"annotation_document\"\nmapping = \"annotation.json\"\nscopes = {{ user = \"userid\" }}\nperiod = \"updated\"\nunwatched = [\"document\"]\ndelay = \"0s\"\n"
    );
    let path = folder.join("catchword.toml");
    std::fs::write(&path, text)?;
    Ok(Config::read(&path)?)
}
