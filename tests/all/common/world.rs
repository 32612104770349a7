use std::path::PathBuf;
use std::time::Duration;

use catchword::Catchword;
use catchword::config::{Config, Environment, Tls};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::process::Command;
use uuid::Uuid;

use super::Gate;
use super::template::{Schema, Template};

/// What a world is made of.
pub struct Layout {
    /// Appended to the collection `annotation`, e.g. `delay = "0s"`.
    pub annotation: &'static str,
    /// Further collections, as TOML.
    pub more: String,
    /// SQL that runs before anything is attached: tables and views for `more`.
    pub sql: String,
    /// The worker's tick.
    pub tick: &'static str,
    pub batch: u32,
    /// How often the quick lane asks. Most tests say themselves when something is done, so there is none.
    pub quick: &'static str,
    /// Shards of the index of `annotation`, where it is not the mapping's number.
    pub shards: Option<u32>,
    /// Does a worker change a row of its own? Most tests count things.
    pub canary: bool,
    /// Is Elasticsearch behind a gate?
    pub gated: bool,
    /// Is everything attached, and are the indices made?
    pub migrated: bool,
    /// If not: is the schema there all the same?
    pub schema: bool,
    /// Another Elasticsearch than the one that all tests share.
    pub elasticsearch: Option<String>,
    /// Another Postgres than the one that all tests share.
    pub postgres: Option<String>,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            annotation: "delay = \"0s\"",
            more: String::new(),
            sql: String::new(),
            tick: "0 * * * * *",
            batch: 2500,
            quick: "off",
            shards: None,
            canary: false,
            gated: false,
            migrated: true,
            schema: false,
            elasticsearch: None,
            postgres: None,
        }
    }
}

impl Layout {
    /// Does it differ from the default in nothing that is attached or in an index, and is it on the servers that all tests share?
    fn is_plain(&self) -> bool {
        let Layout {
            annotation,
            more,
            sql,
            tick: _,
            batch: _,
            shards,
            canary,
            gated: _,
            quick: _,
            migrated,
            schema: _,
            elasticsearch,
            postgres,
        } = self;
        let added = !more.is_empty() || !sql.is_empty() || *canary;
        let own = shards.is_some() || elasticsearch.is_some() || postgres.is_some();
        *annotation == Layout::default().annotation && *migrated && !added && !own
    }
}

pub struct World {
    pub catchword: Catchword,
    /// The test's own connections, as the superuser; no setting of catchword's.
    pub pool: PgPool,
    pub environment: Environment,
    pub database_url: String,
    /// The server itself, past the gate.
    pub elasticsearch: String,
    pub gate: Option<Gate>,
    pub prefix: String,
    pub client: reqwest::Client,
    pub folder: PathBuf,
    pub(super) database: String,
    pub(super) server_url: String,
}

const BYSTANDER: &str = "
[[collection]]
name = \"bystander\"
table = \"bystander\"
key = \"id\"
view = \"bystander_document\"
mapping = \"bystander.json\"
delay = \"60s\"
";

const BYSTANDER_SQL: &str = "
create table bystander (id bigint primary key, text text, catchword_revision bigint);
comment on column bystander.catchword_revision is 'catchword: revision';
create view bystander_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from bystander;
";

impl World {
    /// The annotation example, attached and indexed, with noise around it. Jobs are due at once.
    pub async fn new() -> World {
        World::with(Layout::default()).await
    }

    pub async fn gated() -> World {
        World::with(Layout { gated: true, ..Layout::default() }).await
    }

    pub async fn with(layout: Layout) -> World {
        let template = if layout.is_plain() { Some(Template::get().await) } else { None };
        let world = World::made(&layout, template).await;
        if layout.migrated {
            world.make_noise().await;
            world.warm_up().await;
        }
        world
    }

    /// As `new`, without noise.
    pub(super) async fn to_be_copied() -> World {
        World::made(&Layout::default(), None).await
    }

    async fn made(layout: &Layout, template: Option<&Template>) -> World {
        let given = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run the tests with: make test"));
        let server_url = layout.postgres.clone().unwrap_or_else(|| given("DATABASE_URL"));
        let elasticsearch = layout.elasticsearch.clone().unwrap_or_else(|| given("ELASTICSEARCH_URL"));
        let elasticsearch = elasticsearch.trim_end_matches('/').to_owned();
        let id = Uuid::new_v4().simple().to_string();
        let (database, prefix) = (format!("cw_test_{id}"), format!("t{}-", &id[..12]));
        let mut server = PgConnection::connect(&server_url).await.unwrap();
        let schema =
            if (layout.migrated || layout.schema) && layout.postgres.is_none() { Some(Schema::get(&server_url).await) } else { None };
        let copied = template.map(|template| &template.database).or(schema.map(|schema| &schema.database));
        let copied = copied.map_or(String::new(), |database| format!(" template {database}"));
        sqlx::query(AssertSqlSafe(format!("create database {database}{copied}"))).execute(&mut server).await.unwrap();
        let mut url = url::Url::parse(&server_url).unwrap();
        url.set_path(&database);
        let database_url = url.to_string();
        let pool = PgPoolOptions::new().max_connections(20).connect(&database_url).await.unwrap();

        let gate = if layout.gated { Some(Gate::before(&elasticsearch).await) } else { None };
        let reached = gate.as_ref().map_or(elasticsearch.clone(), |gate| gate.url.clone());
        let environment = environment(&database_url, &reached, &prefix);
        let folder = std::env::temp_dir().join(format!("catchword-test-{id}"));
        let config = write_config(&folder, layout);

        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let catchword = Catchword::open(config.clone(), &environment).unwrap();
        match template {
            Some(template) => template.settle(&pool, &client, &elasticsearch, &prefix).await,
            None => {
                match schema {
                    Some(_) => Schema::settle(&pool).await,
                    None => annotations::migrate(&pool).await.unwrap(),
                }
                sqlx::raw_sql(AssertSqlSafe(format!("{BYSTANDER_SQL}{}", layout.sql))).execute(&pool).await.unwrap();
                if layout.migrated {
                    catchword.migrate().await.unwrap();
                }
            }
        }
        let catchword = if layout.migrated { Catchword::connect(config, &environment).await.unwrap() } else { catchword };
        World { catchword, pool, environment, database_url, elasticsearch, gate, prefix, client, folder, database, server_url }
    }

    /// Runs SQL as the test's own superuser.
    pub async fn sql(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.pool).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// One value.
    pub async fn one<T>(&self, sql: &str) -> T
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&self.pool).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// All values of one column.
    pub async fn all<T>(&self, sql: &str) -> Vec<T>
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(&self.pool).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The version of the server: 14 to 18.
    pub async fn postgres(&self) -> i32 {
        self.one("select current_setting('server_version_num')::integer / 10000").await
    }

    /// Inserts an annotation by plain SQL; returns its key.
    pub async fn annotate(&self, user: &str, text: &str) -> String {
        let id: Uuid = sqlx::query_scalar(
            "insert into annotation (userid, text, target_uri, target_uri_normalized) values ($1, $2, 'http://x/', 'x') returning id",
        )
        .bind(user)
        .bind(text)
        .fetch_one(&self.pool)
        .await
        .unwrap();
        id.to_string()
    }

    /// Inserts an annotation and brings it in step; returns its key.
    pub async fn in_step(&self, user: &str, text: &str) -> String {
        let key = self.annotate(user, text).await;
        self.catchword.drain("test", &["annotation"]).await.unwrap();
        assert_eq!(self.version("annotation", &key).await, Some(self.revision(&key).await));
        key
    }

    /// How many jobs of the collection `annotation` there are.
    pub async fn jobs(&self) -> i64 {
        self.one("select count(*) from catchword.job where collection = 'annotation'").await
    }

    /// Makes every job of `annotation` due now, as if its time had come.
    pub async fn make_due(&self) {
        self.sql("update catchword.job set scheduled_at = now() - interval '1 second' where collection = 'annotation'").await;
    }

    /// One pass over `annotation`.
    pub async fn pass(&self) -> catchword::Outcome {
        self.catchword.sync("test", &["annotation"]).await.unwrap()
    }

    /// The version of an annotation's document: its row's number, the floor, or the number at or above its record.
    pub async fn revision(&self, key: &str) -> i64 {
        let version = "select greatest(t.catchword_revision, c.floor, (select max(r.revision + r.revision % 2) from catchword.record r where r.key = t.id::text))
                         from annotation t, catchword.collection c where c.name = 'annotation'";
        self.one(&format!("{version} and t.id = '{key}'")).await
    }

    /// The binary, with this world's configuration and environment.
    pub fn binary(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catchword"));
        command.env_clear();
        command
            .env("DATABASE_URL", &self.database_url)
            .env("ELASTICSEARCH_URL", self.gate.as_ref().map_or(&self.elasticsearch, |gate| &gate.url));
        command.env("CATCHWORD_INDEX_PREFIX", &self.prefix).env("CATCHWORD_CONFIG", self.folder.join("catchword.toml"));
        command.kill_on_drop(true).stdin(std::process::Stdio::null());
        command
    }

    /// Runs the binary: exit code, standard output, standard error.
    pub async fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output = self.binary().args(words).output().await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    /// Addresses at which no Postgres answers: nobody is there, and somebody who takes connections and never says a word.
    pub async fn postgres_away(&self) -> Vec<(&'static str, String)> {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = |listener: &std::net::TcpListener| {
            let mut url = url::Url::parse(&self.database_url).unwrap();
            url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
            url.to_string()
        };
        let away = vec![("dead", at(&dead)), ("silent", at(&silent))];
        drop(dead);
        // its backlog takes connections for as long as this process lives
        std::mem::forget(silent);
        away
    }

    /// Another process' worth of catchword that reaches Elasticsearch past the gate.
    pub async fn past_the_gate(&self) -> Catchword {
        let environment = environment(&self.database_url, &self.elasticsearch, &self.prefix);
        Catchword::connect(self.catchword.config().clone(), &environment).await.unwrap()
    }

    /// Another process' worth of catchword: own pool, own breakers.
    pub async fn another(&self) -> Catchword {
        Catchword::connect(self.catchword.config().clone(), &self.environment).await.unwrap()
    }
}

/// Waits until `condition` holds; a test that waits in vain fails with `what` after two minutes: a busy machine takes its time.
pub async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(120), async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

pub fn environment(database_url: &str, elasticsearch: &str, prefix: &str) -> Environment {
    let get = |name: &str| match name {
        "DATABASE_URL" => Some(database_url.to_owned()),
        "ELASTICSEARCH_URL" => Some(elasticsearch.to_owned()),
        "CATCHWORD_INDEX_PREFIX" => Some(prefix.to_owned()),
        _ => None,
    };
    Environment::from_lookup(get, Tls::Verified).unwrap()
}

fn write_config(folder: &PathBuf, layout: &Layout) -> Config {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/annotations");
    std::fs::create_dir_all(folder).unwrap();
    let mut mapping: serde_json::Value = serde_json::from_slice(&std::fs::read(format!("{example}/annotation.json")).unwrap()).unwrap();
    if let Some(shards) = layout.shards {
        mapping["settings"]["number_of_shards"] = shards.into();
    }
    std::fs::write(folder.join("annotation.json"), mapping.to_string()).unwrap();
    let bystander =
        r#"{ "settings": { "number_of_replicas": 0 }, "mappings": { "dynamic": "strict", "properties": { "text": { "type": "text" } } } }"#;
    std::fs::write(folder.join("bystander.json"), bystander).unwrap();
    let text = format!(
        "[worker]\ntick = \"{}\"\nbatch = {}\nquick = \"{}\"\ncanary = {}\n\n[[collection]]\nname = \"annotation\"\ntable = \"annotation\"\nkey = \"id\"\nview = \"annotation_document\"\nmapping = \"annotation.json\"\nscopes = {{ user = \"userid\", group = \"groupid\", document = \"document_id\" }}\nperiod = \"updated\"\ntouches = [{{ table = \"document\", column = \"id\", row_column = \"document_id\" }}, {{ table = \"annotation\", value = 'case when not deleted then \"references\"[1] end', row_column = \"id\", watch = [\"references\"] }}]\n{}\n{BYSTANDER}\n{}\n",
        layout.tick, layout.batch, layout.quick, layout.canary, layout.annotation, layout.more
    );
    let path = folder.join("catchword.toml");
    std::fs::write(&path, text).unwrap();
    Config::read(&path).unwrap()
}

/// Leaves nothing behind, also after a panic.
impl Drop for World {
    fn drop(&mut self) {
        let (database, server_url, elasticsearch, prefix) =
            (self.database.clone(), self.server_url.clone(), self.elasticsearch.clone(), self.prefix.clone());
        let swept = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut server = PgConnection::connect(&server_url).await.unwrap();
                sqlx::query(AssertSqlSafe(format!("drop database if exists {database} with (force)"))).execute(&mut server).await.unwrap();
                let client = reqwest::Client::builder().no_proxy().build().unwrap();
                let listed = client
                    .get(format!("{elasticsearch}/_cat/indices/{prefix}*?h=index&expand_wildcards=all"))
                    .send()
                    .await
                    .unwrap()
                    .text()
                    .await
                    .unwrap();
                for index in listed.split_whitespace() {
                    client.delete(format!("{elasticsearch}/{index}")).send().await.unwrap();
                }
            });
        });
        _ = swept.join();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}
