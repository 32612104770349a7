//! A world as most tests want it, made once for a process and then copied: attaching tables takes longer than most tests.

use serde_json::Value;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::World;

/// A database with everything attached, to which nobody can connect, and its indices as Elasticsearch described them.
pub struct Template {
    pub database: String,
    prefix: String,
    installation: String,
    indices: Vec<(String, Value)>,
}

static TEMPLATE: OnceCell<Template> = OnceCell::const_new();

impl Template {
    /// The one of this process.
    pub async fn get() -> &'static Template {
        TEMPLATE.get_or_init(Template::make).await
    }

    async fn make() -> Template {
        let world = World::to_be_copied().await;
        let (_, described) = world.http("GET", &format!("/{}*?expand_wildcards=all", world.prefix), None).await;
        let indices = described.as_object().unwrap().iter().map(|(name, index)| (name.clone(), creation(index))).collect();
        let installation = world.one("select id::text from catchword.installation").await;
        let database = format!("cw_template_{}_{}", std::process::id(), &world.prefix[1..13]);
        let mut server = PgConnection::connect(&world.server_url).await.unwrap();
        drop_those_of_others(&mut server).await;
        let run = async |server: &mut PgConnection, sql: String| {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(server).await.unwrap();
        };
        world.pool.close().await;
        run(&mut server, format!("alter database {} with allow_connections false", world.database)).await;
        run(&mut server, format!("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{}'", world.database))
            .await;
        run(&mut server, format!("alter database {} rename to {database}", world.database)).await;
        // the rest of it is swept away with the world
        Template { database, prefix: world.prefix.clone(), installation, indices }
    }

    /// Makes a copy of the database a world of its own, with its own indices, as if it had been attached just now.
    pub async fn settle(&self, pool: &PgPool, client: &reqwest::Client, elasticsearch: &str, prefix: &str) {
        let settled = format!(
            "update catchword.installation set id = gen_random_uuid(), database_oid = (select oid from pg_database where datname = current_database());
             update catchword.collection set attached_at = now(), targets = array(select replace(t, '{}', '{prefix}') from unnest(targets) as t);
             update catchword.journal set at = now()",
            self.prefix
        );
        sqlx::raw_sql(AssertSqlSafe(settled)).execute(pool).await.unwrap();
        let installation: String = sqlx::query_scalar("select id::text from catchword.installation").fetch_one(pool).await.unwrap();
        for (name, index) in &self.indices {
            let own = |text: &str| text.replace(&self.prefix, prefix).replace(&self.installation, &installation);
            let create = client.put(format!("{elasticsearch}/{}", own(name))).header("content-type", "application/json");
            let response = create.body(own(&index.to_string())).send().await.unwrap();
            let (status, said) = (response.status(), response.text().await.unwrap());
            assert!(status.is_success(), "{said}");
        }
    }
}

/// A database with the example's tables and catchword's schema, in which nothing is attached: for worlds with tables of their own.
pub struct Schema {
    pub database: String,
}

static SCHEMA: OnceCell<Schema> = OnceCell::const_new();

impl Schema {
    /// The one of this process.
    pub async fn get(server_url: &str) -> &'static Schema {
        SCHEMA.get_or_init(|| Schema::make(server_url)).await
    }

    async fn make(server_url: &str) -> Schema {
        let database = format!("cw_template_{}_{}", std::process::id(), &Uuid::new_v4().simple().to_string()[..12]);
        let mut server = PgConnection::connect(server_url).await.unwrap();
        drop_those_of_others(&mut server).await;
        sqlx::raw_sql(AssertSqlSafe(format!("create database {database}"))).execute(&mut server).await.unwrap();
        let mut url = url::Url::parse(server_url).unwrap();
        url.set_path(&database);
        let pool = PgPool::connect(url.as_str()).await.unwrap();
        annotations::migrate(&pool).await.unwrap();
        catchword::migrate::apply(&pool).await.unwrap();
        pool.close().await;
        sqlx::raw_sql(AssertSqlSafe(format!("alter database {database} with allow_connections false"))).execute(&mut server).await.unwrap();
        Schema { database }
    }

    /// Makes a copy of the database an installation of its own.
    pub async fn settle(pool: &PgPool) {
        let settled = "update catchword.installation set id = gen_random_uuid(),
                              database_oid = (select oid from pg_database where datname = current_database())";
        sqlx::raw_sql(settled).execute(pool).await.unwrap();
    }
}

/// An index as it was described, without what the server adds.
fn creation(index: &Value) -> Value {
    let mut index = index.clone();
    let settings = index["settings"]["index"].as_object_mut().unwrap();
    for name in ["uuid", "version", "creation_date", "provided_name", "routing"] {
        settings.remove(name);
    }
    index
}

/// Drops what ended processes left behind: nobody tells a test that it was the last.
async fn drop_those_of_others(server: &mut PgConnection) {
    let left: Vec<String> = sqlx::query_scalar("select datname::text from pg_database where datname like 'cw\\_template\\_%'")
        .fetch_all(&mut *server)
        .await
        .unwrap();
    for database in left {
        let pid = database.split('_').nth(2).unwrap().to_owned();
        let lives = std::process::Command::new("kill").args(["-0", &pid]).stderr(std::process::Stdio::null()).status();
        if lives.is_ok_and(|status| !status.success()) {
            // another test process may be at it, too
            _ = sqlx::raw_sql(AssertSqlSafe(format!("drop database if exists {database}"))).execute(&mut *server).await;
        }
    }
}
