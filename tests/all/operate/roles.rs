//! The roles of `migrations/grants.sql`: who needs which rights, and who has none.

use catchword::Catchword;
use catchword::config::{Config, Environment, Tls};
use catchword::reindex::{self, Request};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tokio::process::Command;
use uuid::Uuid;

use crate::common::{Layout, World, launch};
use crate::operate::metrics::scrape;

const GRANTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/grants.sql");

pub const ROLES: [&str; 6] = ["migrator", "worker", "application", "operator", "reader", "service"];

/// A world in which roles of its own do everything. The world goes before its roles: they own what is in it.
pub struct Roles {
    pub world: World,
    pub names: Names,
}

pub struct Names {
    id: String,
    server_url: String,
}

impl Names {
    pub fn new() -> Names {
        let id = Uuid::new_v4().simple().to_string()[..12].to_owned();
        Names { id, server_url: std::env::var("DATABASE_URL").unwrap() }
    }

    pub fn of(&self, role: &str) -> String {
        format!("cw_{role}_{}", self.id)
    }
}

/// Leaves no role behind, also after a panic.
impl Drop for Names {
    fn drop(&mut self) {
        // a role that made others goes after them
        let mut roles = ROLES.map(|role| self.of(role));
        roles.reverse();
        let server_url = self.server_url.clone();
        let swept = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut server = PgConnection::connect(&server_url).await.unwrap();
                for role in roles {
                    let drop = format!("drop role if exists \"{role}\"");
                    sqlx::query(AssertSqlSafe(drop)).execute(&mut server).await.unwrap();
                }
            });
        });
        _ = swept.join();
    }
}

impl Roles {
    /// The tables are the migrator's, the application may read and write them, everything is migrated and attached.
    pub async fn new() -> Roles {
        Roles::with(Layout::default()).await
    }

    pub async fn with(layout: Layout) -> Roles {
        let roles = Roles::prepared_with(layout).await;
        Catchword::open(roles.config(), &roles.environment("migrator")).unwrap().migrate().await.unwrap();
        roles.grant().await;
        roles
    }

    /// The same before the first migrate.
    pub async fn prepared() -> Roles {
        Roles::prepared_with(Layout::default()).await
    }

    pub async fn prepared_with(layout: Layout) -> Roles {
        let names = Names::new();
        let world = World::with(Layout { migrated: false, ..layout }).await;
        let roles = Roles { world, names };
        // what comes from earlier migrations of the world's own, and what a careful operator takes from everybody
        let database: String = roles.world.one("select current_database()::text").await;
        roles.world.sql(&format!("revoke all on database {database} from public")).await;
        roles.grant().await;
        let (migrator, application) = (roles.names.of("migrator"), roles.names.of("application"));
        for role in ROLES {
            roles.world.sql(&format!("alter role {} password 'secret of {role}'", roles.names.of(role))).await;
        }
        for table in ["annotation", "document", "bystander"] {
            roles.world.sql(&format!("alter table {table} owner to {migrator}")).await;
            roles.world.sql(&format!("grant select, insert, update, delete, truncate on {table} to {application}")).await;
        }
        for view in ["annotation_document", "bystander_document"] {
            roles.world.sql(&format!("alter view {view} owner to {migrator}")).await;
        }
        roles
    }

    /// Runs the script as an administrator does.
    pub async fn grant(&self) {
        self.grant_to(&ROLES).await;
    }

    async fn grant_to(&self, roles: &[&str]) {
        self.grant_as(&self.world.database_url, roles).await;
    }

    /// The same by whoever this address belongs to.
    pub async fn grant_as(&self, url: &str, roles: &[&str]) {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "-d", url]);
        for role in roles {
            psql.args(["-v", &format!("{role}={}", self.names.of(role))]);
        }
        let output = psql.args(["-f", GRANTS]).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.trim(), "", "quiet when all is well");
    }

    pub fn config(&self) -> Config {
        self.world.catchword.config().clone()
    }

    pub fn url(&self, role: &str) -> String {
        let mut url = url::Url::parse(&self.world.database_url).unwrap();
        url.set_username(&self.names.of(role)).unwrap();
        url.set_password(Some(&format!("secret of {role}"))).unwrap();
        url.to_string()
    }

    pub fn environment(&self, role: &str) -> Environment {
        let url = self.url(role);
        let get = |name: &str| match name {
            "DATABASE_URL" => Some(url.clone()),
            "ELASTICSEARCH_URL" => Some(self.world.elasticsearch.clone()),
            "CATCHWORD_INDEX_PREFIX" => Some(self.world.prefix.clone()),
            _ => None,
        };
        Environment::from_lookup(get, Tls::Verified).unwrap()
    }

    pub async fn pool(&self, role: &str) -> PgPool {
        PgPool::connect(&self.url(role)).await.unwrap()
    }

    pub async fn worker(&self) -> Catchword {
        Catchword::connect(self.config(), &self.environment("worker")).await.unwrap()
    }
}

pub const INSERT: &str = "insert into annotation (userid, target_uri, target_uri_normalized, document_id)
    select 'acct:a', 'http://x/', 'x', (select max(id) from document) from generate_series(1, 3)";

pub async fn run(pool: &PgPool, sql: &str) -> Result<(), String> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(pool).await;
    done.map(|_| ()).map_err(|error| error.as_database_error().map_or_else(|| error.to_string(), |e| e.message().to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_needs_no_grant_for_its_own_writes() {
    let roles = Roles::new().await;
    let application = roles.pool("application").await;
    for write in [
        "insert into document (web_uri, title) values ('x/', 'first')",
        INSERT,
        "update annotation set text = 'changed'",
        "update annotation set id = gen_random_uuid() where id = (select max(id::text)::uuid from annotation)",
        "update document set title = 'second'",
        "delete from annotation where id = (select max(id::text)::uuid from annotation)",
        "begin isolation level repeatable read; insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'http://x/', 'x'); commit",
        "truncate annotation",
    ] {
        run(&application, write).await.unwrap_or_else(|error| panic!("{write}: {error}"));
        let jobs: i64 = roles.world.one("select count(*) from catchword.job").await;
        assert_eq!(jobs > 0, !write.contains("into document"), "{write}");
        roles.world.sql("delete from catchword.job").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_can_neither_see_nor_forge_jobs() {
    let roles = Roles::new().await;
    let application = roles.pool("application").await;
    let owner = roles.names.of("application");
    roles
        .world
        .sql(&format!(
            "create schema own authorization {owner}; create table own.mine (id uuid primary key); alter table own.mine owner to {owner}"
        ))
        .await;
    // the one thing that its own triggers may do: rows are looked at again
    run(&application, "select catchword.touch_later('annotation', 'id', gen_random_uuid())").await.unwrap();
    roles.world.sql("delete from catchword.job where name = 'touch'").await;
    // and it may ask what became of a write
    run(&application, "select * from catchword.standing('annotation', array[gen_random_uuid()::text], now())").await.unwrap();
    for (attempt, refusal) in [
        ("select catchword.known('annotation', '{}')", "permission denied for function known"),
        ("select from catchword.job", "permission denied for table job"),
        (
            "insert into catchword.job (collection, key, priority, tag) values ('annotation', 'x', 1, 'x')",
            "permission denied for table job",
        ),
        ("delete from catchword.record", "permission denied for table record"),
        ("update catchword.collection set floor = 0", "permission denied for table collection"),
        ("select from catchword.installation", "permission denied for table installation"),
        ("select catchword.schedule('annotation', '{}')", "permission denied for function schedule"),
        ("select catchword.reindex('annotation')", "permission denied for function reindex"),
        ("select catchword.raise_revision(1000)", "permission denied for function raise_revision"),
        ("select catchword.raise_floor('annotation')", "permission denied for function raise_floor"),
        ("select catchword.touch('annotation', '{}')", "permission denied for function touch"),
        ("select catchword.detach('annotation')", "permission denied for function detach"),
        ("select setval('catchword.revision', 2)", "permission denied for sequence revision"),
        ("create table catchword.mine (id bigint)", "permission denied for schema catchword"),
        (
            "create trigger forged after insert on own.mine referencing new table as new_rows for each statement execute function catchword.annotation_inserted()",
            "permission denied for function catchword.annotation_inserted",
        ),
        (
            "create trigger forged before insert on own.mine for each row execute function catchword.annotation_revision()",
            "permission denied for function catchword.annotation_revision",
        ),
        (
            "create trigger forged after delete on own.mine for each statement execute function catchword.annotation_touch_1()",
            "permission denied for function catchword.annotation_touch_1",
        ),
        ("alter table annotation disable trigger all", "must be owner of table annotation"),
    ] {
        assert_eq!(run(&application, attempt).await, Err(refusal.to_owned()), "{attempt}");
    }
    // none of the functions but those, not only those named here
    let open: Vec<String> = roles
        .world
        .all(&format!(
            "select p.oid::regprocedure::text from pg_proc p where pronamespace = 'catchword'::regnamespace and has_function_privilege('{owner}', p.oid, 'execute') order by p.oid"
        ))
        .await;
    let allowed = ["standing(text,text[],timestamp with time zone)", "touch_later(text,text,text)", "touch_later(text,text,anyelement)"];
    assert_eq!(open, allowed.map(|function| format!("catchword.{function}")));
    let readable: Vec<String> = roles
        .world
        .all(&format!(
            "select relname::text from pg_class where relnamespace = 'catchword'::regnamespace and relkind in ('r', 'v') and has_table_privilege('{owner}', oid, 'select, insert, update, delete, truncate')"
        ))
        .await;
    assert_eq!(readable, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_keeps_everything_in_step_with_its_own_rights() {
    let roles = Roles::new().await;
    let (application, catchword) = (roles.pool("application").await, roles.worker().await);
    let world = &roles.world;
    run(&application, "insert into document (web_uri, title) values ('x/', 'first')").await.unwrap();
    run(&application, INSERT).await.unwrap();
    let key: String = world.one("select max(id::text) from annotation").await;

    let outcome = catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!((outcome.written, outcome.settled), (3, 3), "{outcome}");

    // a touch is expanded by a function of the migrator's
    run(&application, "update document set title = 'second'").await.unwrap();
    catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.source("annotation", &key).await.unwrap()["document"]["title"], "second");

    // a number is recorded for a document that nobody knows, and the sequence is lifted above one that is ahead
    let stranger = Uuid::new_v4().to_string();
    world.put("annotation", &stranger, 10, serde_json::json!({})).await;
    world.put("annotation", &key, 1 << 40, serde_json::json!({})).await;
    let request =
        Request { collection: "annotation".into(), keys: Some(vec![stranger.clone(), key.clone()]), hidden: true, ..Request::default() };
    let id = reindex::start(catchword.pool(), &request).await.unwrap();
    assert_eq!(reindex::chunk(catchword.pool(), id, request.chunk()).await.unwrap(), (2, true));
    crate::common::eventually("both are fixed", async || {
        world.sql("update catchword.job set scheduled_at = now()").await;
        catchword.drain("test", &["annotation"]).await.unwrap();
        world.jobs().await == 0
    })
    .await;
    assert_eq!(world.source("annotation", &stranger).await.unwrap()["catchword_deleted"], true);
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    assert!(world.revision(&key).await > 1 << 40);

    // a document that can never be indexed is buried
    world.sql("insert into catchword.job (collection, key, priority, tag) values ('annotation', 'no uuid', 1, 'test')").await;
    catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.one::<String>("select reason from catchword.dead_job").await, "bad_key");

    // counted by search, which shows a write after the index's refresh
    assert_eq!(world.found("annotation").await.len(), 3);
    let status = catchword.status().await.unwrap();
    let annotation = status.collections.iter().find(|c| c.name == "annotation").unwrap();
    assert_eq!((annotation.documents, annotation.census.as_ref().unwrap().dead, &annotation.blocked), (Some(3), 1, &None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_and_the_canary_need_no_more_than_the_workers_rights() {
    let roles = Roles::new().await;
    let mut blocker = roles.world.pool.begin().await.unwrap();
    sqlx::query("declare c cursor for select 1").execute(&mut *blocker).await.unwrap();
    let worker = launch(roles.world.binary().env("DATABASE_URL", roles.url("worker"))).await;
    let seen = scrape(&roles.world, &worker).await;
    assert!(seen.get("catchword_jobs{collection=\"annotation\",state=\"due\"}").is_some());
    assert!(seen.value("catchword_jobs_scheduled_total") >= 0.0 && seen.value("catchword_job_table_bytes") >= 0.0);
    assert!(seen.value("catchword_vacuum_held_back_seconds{by=\"session\"}") > 0.0, "the superuser's session is seen");
    run(&roles.pool("worker").await, "select catchword.stir_canary()").await.unwrap();
    assert_eq!(roles.world.one::<i64>("select beat from catchword.canary").await, 1);
    assert!(run(&roles.pool("application").await, "select catchword.stir_canary()").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_run_with_the_workers_rights() {
    let roles = Roles::new().await;
    run(&roles.pool("application").await, INSERT).await.unwrap();
    let key: String = roles.world.one("select max(id::text) from annotation").await;
    for words in [
        &["sync", "--drain"][..],
        &["reindex", "annotation", "--user", "acct:a", "--yes"],
        &["reindex", "annotation", "--user", "acct:a", "--rewrite", "--yes"],
        &["reindex", "annotation", "--all", "--rewrite", "--yes"],
        &["sync", "--drain"],
        &["rebuild", "annotation", "--keep", "0s", "--yes"],
        &["status"],
        &["explain", "annotation", &key],
    ] {
        let output = roles.world.binary().env("DATABASE_URL", roles.url("worker")).args(words).output().await.unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(roles.world.found("annotation").await.len(), 3);

    let mut worker = roles.world.binary();
    worker.env("DATABASE_URL", roles.url("worker")).arg("worker");
    let mut worker = worker.stderr(std::process::Stdio::null()).spawn().unwrap();
    crate::common::eventually("the worker sends a heartbeat", async || {
        roles
            .world
            .one("select exists (select from catchword.worker) and (select system_identifier is not null from catchword.installation)")
            .await
    })
    .await;
    worker.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_finds_rights_that_are_missing_and_such_that_are_too_many() {
    let roles = Roles::new().await;
    let worker = roles.names.of("worker");
    let lines = async |role: &str| {
        let report = Catchword::open(roles.config(), &roles.environment(role)).unwrap().doctor(&roles.environment(role)).await;
        assert_eq!(report.unseen, Vec::<String>::new());
        let rights = report.lines.iter().filter(|line| line.group == "rights" || format!("{:?}", line.level) == "Fail");
        rights.map(|line| format!("{:?} {}: {} {}", line.level, line.what, line.says, line.fix)).collect::<Vec<_>>()
    };
    let found = lines("worker").await;
    assert!(found.len() == 5 && found[0].starts_with("Ok enough") && found[1].starts_with("Ok not more"), "{found:?}");
    assert!(found[2].starts_with("Ok sessions seen"), "{found:?}");

    roles.world.sql(&format!("revoke pg_read_all_stats from {worker}")).await;
    roles.world.sql(&format!("revoke update on catchword.job from {worker}; revoke execute on function catchword.touch from {worker}; revoke select on annotation_document from {worker}; grant insert on bystander to {worker}")).await;
    let found = lines("worker").await;
    assert!(found[0].starts_with("Fail enough") && found[0].contains("run migrations/grants.sql"), "{found:?}");
    for lacking in ["update on catchword.job", "execute on catchword.touch(text, text[])", "select on public.annotation_document"] {
        assert!(found[0].contains(lacking), "{lacking}: {found:?}");
    }
    assert!(found[1].starts_with("Warn not more") && found[1].contains("bystander"), "{found:?}");
    assert!(found[2].starts_with("Warn sessions seen") && found[2].contains(&format!("grant pg_read_all_stats to {worker}")), "{found:?}");
    roles.grant().await;
    roles.world.sql(&format!("revoke insert on bystander from {worker}")).await;
    let found = lines("worker").await;
    assert!(found.iter().all(|line| line.starts_with("Ok ")), "{found:?}");
    let found = lines("migrator").await;
    assert!(found[1].starts_with("Warn not more"), "the owner is no worker: {found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_can_change_nothing_of_the_applications() {
    let roles = Roles::new().await;
    let worker = roles.pool("worker").await;
    for (attempt, refusal) in [
        ("update annotation set text = 'forged'", "permission denied for table annotation"),
        ("delete from annotation", "permission denied for table annotation"),
        (
            "insert into catchword.job (collection, key, priority, tag) values ('annotation', 'x', 1, 'x')",
            "permission denied for table job",
        ),
        ("update catchword.collection set floor = 0", "permission denied for table collection"),
        ("delete from catchword.journal", "permission denied for table journal"),
        ("select catchword.detach('annotation')", "permission denied for function detach"),
    ] {
        assert_eq!(run(&worker, attempt).await, Err(refusal.to_owned()), "{attempt}");
    }
    let said = Catchword::open(roles.config(), &roles.environment("application")).unwrap().migrate().await;
    assert!(said.is_err(), "an application cannot migrate");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_said_with_where_it_is_given() {
    let roles = Roles::new().await;
    for (role, words) in [("application", &["status"][..]), ("worker", &["detach", "annotation", "--yes"])] {
        let output = roles.world.binary().env("DATABASE_URL", roles.url(role)).args(words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("postgres says: ") && said.contains("migrations/grants.sql"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_does_what_operators_do_and_the_journal_says_who() {
    let roles = Roles::new().await;
    run(&roles.pool("application").await, INSERT).await.unwrap();
    let key: String = roles.world.one("select max(id::text) from annotation").await;
    roles.world.sql("insert into catchword.job (collection, key, priority, tag) values ('annotation', 'no uuid', 1, 'test'), ('annotation', 'none either', 100, 'mistake')").await;
    roles.worker().await.drain("test", &["annotation"]).await.unwrap();
    let letters: Vec<i64> = roles.world.all("select id from catchword.dead_job order by id").await;
    let (first, second) = (letters[0].to_string(), letters[1].to_string());
    let commands: [&[&str]; 17] = [
        &["pause", "annotation", "--reason", "trial"],
        &["resume", "annotation"],
        &["dead", "list"],
        &["dead", "show", &first],
        &["dead", "replay", &first],
        &["dead", "discard", &second, "--yes"],
        &["reindex", "annotation", "--all", "--rewrite", "--yes"],
        &["sync", "--drain"],
        &["rebuild", "annotation", "--keep", "0s", "--yes"],
        &["audit", "annotation", "--repair"],
        &["audit", "annotation", "--content"],
        &["explain", "annotation", &key],
        &["journal"],
        &["status"],
        &["check"],
        &["doctor"],
        &["status", "--json"],
    ];
    for words in commands {
        let output = roles.world.binary().env("DATABASE_URL", roles.url("operator")).args(words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        // 1: something needs a person
        assert!(matches!(output.status.code(), Some(0 | 1)), "{words:?}: {said}");
        assert!(!said.contains("permission denied") && !said.contains("FAIL"), "{words:?}: {said}");
    }
    run(&roles.pool("operator").await, "select catchword.call_off('annotation', 'mistake')").await.unwrap();
    let operator = roles.names.of("operator");
    let told: Vec<String> = roles.world.all(&format!("select what from catchword.journal where who like '{operator}(%' order by id")).await;
    assert_eq!(told, ["pause", "resume", "replay", "discard", "reindex", "rebuild", "reindex", "rebuild", "rebuild"]);

    // nobody else does: the worker's role neither, nor does anybody write the journal by hand
    for role in ["worker", "reader", "service", "application"] {
        for attempt in [
            "select catchword.create_key('000000000000', 'x', sha256('x'), 'admin', null, 1, null)",
            "select catchword.start_audit('annotation')",
            "select catchword.pause('annotation', 'x')",
            "select catchword.resume('annotation')",
            "select catchword.replay(null, null, null, null, null, null, null, null)",
            "select catchword.discard(null, null, null, null, null, null, null, null)",
            "select catchword.call_off('annotation', 'x')",
        ] {
            let refused = run(&roles.pool(role).await, attempt).await.unwrap_err();
            assert!(refused.starts_with("permission denied"), "{role}: {attempt}: {refused}");
        }
    }
    for attempt in ["insert into catchword.journal (what) values ('x')", "delete from catchword.journal", "delete from catchword.pause"] {
        assert!(run(&roles.pool("operator").await, attempt).await.is_err(), "{attempt}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_stores_and_indexes_and_can_neither_see_nor_delete_jobs() {
    let roles = Roles::new().await;
    let (service, application) = (roles.names.of("service"), roles.names.of("application"));
    roles.world.sql(&format!("grant {application} to {service}")).await;
    let catchword = Catchword::connect(roles.config(), &roles.environment("service")).await.unwrap();
    for again in [false, true] {
        let kept = catchword
            .store_and_schedule("bystander", async |tx: &mut PgConnection| {
                let sql = if again { "delete from bystander where id = 7" } else { "insert into bystander values (7, 'stored')" };
                sqlx::query(sql).execute(tx).await?;
                Ok::<_, catchword::Error>(catchword::Stored::new((), [7]))
            })
            .await
            .unwrap();
        assert_eq!(kept.direct, catchword::Direct::Indexed);
    }
    assert_eq!(roles.world.source("bystander", "7").await.unwrap()["catchword_deleted"], true);
    run(&application_of(&roles).await, "insert into bystander values (8, 'committed')").await.unwrap();
    assert_eq!(catchword.index_now("bystander", [8]).await, catchword::Direct::Indexed);
    assert_eq!(catchword.index_now_with("bystander", [8], catchword::elastic::Refresh::Now).await, catchword::Direct::Indexed);

    let waited =
        catchword.wait_until("bystander", [7, 8], catchword::Until::Searchable, std::time::Duration::from_secs(120)).await.unwrap();
    assert!(waited.iter().all(|key| key.became == catchword::Became::Searchable), "{waited:?}");

    let pool = roles.pool("service").await;
    run(&pool, "select * from catchword.standing('bystander', array['8'])").await.unwrap();
    for (attempt, refusal) in [
        ("select from catchword.job", "permission denied for table job"),
        ("delete from catchword.job", "permission denied for table job"),
        ("delete from catchword.dead_job", "permission denied for table dead_job"),
        ("delete from catchword.record", "permission denied for table record"),
        ("insert into catchword.record (collection, key, revision) values ('bystander', '8', 99)", "permission denied for table record"),
        ("select catchword.record_gone('bystander', '{8}')", "permission denied for function record_gone"),
        ("select catchword.raise_revision(1000)", "permission denied for function raise_revision"),
        ("select catchword.raise_floor('bystander')", "permission denied for function raise_floor"),
        ("select catchword.touch('bystander', '{8}')", "permission denied for function touch"),
        ("select catchword.note_server()", "permission denied for function note_server"),
        ("update catchword.collection set floor = 0", "permission denied for table collection"),
    ] {
        assert_eq!(run(&pool, attempt).await, Err(refusal.to_owned()), "{attempt}");
    }
    let output = roles.world.binary().env("DATABASE_URL", roles.url("service")).args(["doctor", "--all"]).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("may do what a service does") && said.contains("run doctor as a worker or an operator"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_looks_at_everything_and_changes_nothing() {
    let roles = Roles::new().await;
    run(&roles.pool("application").await, INSERT).await.unwrap();
    let key: String = roles.world.one("select max(id::text) from annotation").await;
    roles.worker().await.drain("test", &["annotation"]).await.unwrap();
    let looks: [&[&str]; 10] = [
        &["status"],
        &["status", "--json"],
        &["check"],
        &["doctor"],
        &["explain", "annotation", &key],
        &["journal"],
        &["dead", "list"],
        &["dead", "list", "--each"],
        &["reindex", "list"],
        &["history", "annotation"],
    ];
    for words in looks {
        let output = roles.world.binary().env("DATABASE_URL", roles.url("reader")).args(words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{words:?}: {said}");
        assert!(!said.contains("permission denied") && !said.contains("FAIL"), "{words:?}: {said}");
    }
    let (reader, pool) = (roles.names.of("reader"), roles.pool("reader").await);
    let writable: Vec<String> = roles
        .world
        .all(&format!(
            "select oid::regclass::text from pg_class where relkind in ('r', 'v') and relnamespace in ('catchword'::regnamespace, 'public'::regnamespace)
                and has_table_privilege('{reader}', oid, 'insert, update, delete, truncate')"
        ))
        .await;
    assert_eq!(writable, [""; 0]);
    for attempt in [
        "select catchword.pause('annotation', 'x')",
        "select catchword.resume('annotation')",
        "select catchword.replay(null, null, null, null, null, null, null, null)",
        "select catchword.schedule('annotation', '{}')",
        "select catchword.look_again('annotation', '{}')",
        "select catchword.start_audit('annotation')",
        "select catchword.stop_audit(1)",
        "select catchword.cancel_reindex(1)",
        "select catchword.reindex('annotation')",
        "select catchword.create_key('000000000000', 'x', sha256('x'), 'admin', null, 1, null)",
        "select catchword.revoke_key('x')",
        "select from catchword.api_key",
        "select catchword.draw('annotation', '{}')",
        "select id from catchword.job for update",
    ] {
        let refused = run(&pool, attempt).await.unwrap_err();
        assert!(refused.starts_with("permission denied"), "{attempt}: {refused}");
    }
}

async fn application_of(roles: &Roles) -> PgPool {
    roles.pool("application").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_still_runs_without_an_operator_and_a_service() {
    let roles = Roles::new().await;
    roles.grant_to(&["migrator", "worker", "application"]).await;
    run(&roles.pool("application").await, INSERT).await.unwrap();
    assert_eq!(roles.worker().await.drain("test", &["annotation"]).await.unwrap().settled, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_finds_functions_that_others_could_use() {
    let roles = Roles::new().await;
    let functions = async || {
        let report = Catchword::open(roles.config(), &roles.environment("worker")).unwrap().doctor(&roles.environment("worker")).await;
        let line = report.lines.iter().find(|line| line.what == "functions").unwrap();
        format!("{:?} {} {}", line.level, line.says, line.fix)
    };
    let (migrator, application) = (roles.names.of("migrator"), roles.names.of("application"));
    assert!(functions().await.starts_with("Ok "));
    for (make, said, undo) in [
        (
            "alter function catchword.tick reset search_path".to_owned(),
            "catchword.tick(",
            "alter function catchword.tick set search_path = pg_catalog, pg_temp".to_owned(),
        ),
        (
            "alter function catchword.tick set search_path = public, pg_catalog".to_owned(),
            "catchword.tick(",
            "alter function catchword.tick set search_path = pg_catalog, pg_temp".to_owned(),
        ),
        (
            format!("alter function catchword.tick owner to {application}"),
            "not owned by the schema's owner",
            format!("alter function catchword.tick owner to {migrator}"),
        ),
        (
            format!("grant create on schema catchword to {application}"),
            "may create in the schema catchword",
            format!("revoke create on schema catchword from {application}"),
        ),
    ] {
        roles.world.sql(&make).await;
        let found = functions().await;
        assert!(found.starts_with("Fail ") && found.contains(said), "{make}: {found}");
        roles.world.sql(&undo).await;
        assert!(functions().await.starts_with("Ok "), "{undo}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_warns_of_a_views_function_in_which_others_could_plant_something() {
    let roles = Roles::new().await;
    let migrator = roles.names.of("migrator");
    // as it is from the beginning since 15
    roles.world.sql("revoke create on schema public from public").await;
    roles.world.sql(&format!("create function public.plain(text) returns text language sql stable as 'select $1'; alter function public.plain owner to {migrator};
        create or replace view bystander_document as select id as key, catchword_revision as revision, json_build_object('text', public.plain(text)) as body from bystander")).await;
    let found = async || {
        let report = Catchword::open(roles.config(), &roles.environment("worker")).unwrap().doctor(&roles.environment("worker")).await;
        let line = report.lines.iter().find(|line| line.what == "view functions").unwrap();
        format!("{:?} {}", line.level, line.says)
    };
    assert!(found().await.starts_with("Ok "));
    roles.world.sql("grant create on schema public to public").await;
    let said = found().await;
    assert!(said.starts_with("Warn ") && said.contains("public.plain(text)") && said.contains("in public"), "{said}");
    roles.world.sql("alter function public.plain set search_path = public").await;
    assert!(found().await.starts_with("Ok "));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_the_applications_writes_fail_is_told_by_check_and_doctor() {
    let roles = Roles::new().await;
    let (migrator, application) = (roles.names.of("migrator"), roles.pool("application").await);
    let told = async || {
        let mut told = Vec::new();
        for command in ["check", "doctor", "status"] {
            let output = roles.world.binary().env("DATABASE_URL", roles.url("worker")).arg(command).output().await.unwrap();
            told.push((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()));
        }
        told
    };
    for (make, said, undo) in [
        (
            format!("revoke insert on catchword.job from {migrator}"),
            "may not insert catchword.job",
            format!("grant insert on catchword.job to {migrator}"),
        ),
        (
            format!("revoke all on sequence catchword.revision from {migrator}, public"),
            "may not draw from catchword.revision",
            format!("grant all on sequence catchword.revision to {migrator}"),
        ),
        (
            "alter table annotation rename column id to renamed".to_owned(),
            "annotation.id is missing",
            "alter table annotation rename column renamed to id".to_owned(),
        ),
        (
            "alter table annotation rename column catchword_revision to renamed".to_owned(),
            "annotation.catchword_revision is missing",
            "alter table annotation rename column renamed to catchword_revision".to_owned(),
        ),
    ] {
        roles.world.sql(&make).await;
        assert!(run(&application, INSERT).await.is_err(), "{make}");
        for (code, out) in told().await {
            assert!(code == Some(1) && out.contains(said), "{make}: {out}");
        }
        roles.world.sql(&undo).await;
        run(&application, INSERT).await.unwrap();
    }
}
