//! An application that may create in a schema of everybody's search path, as in each database from before Postgres 15, plants functions,
//! operators, types, casts and tables of every name that catchword uses. None of them ever runs as another user.

use std::collections::BTreeSet;
use std::path::Path;

use catchword::{Direct, Error, Stored};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::common::{eventually, launch};
use crate::operate::roles::{INSERT, Roles};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_planted_in_public_runs_as_another_user() {
    nothing_planted_runs("\"$user\", public").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_planted_before_the_catalog_runs_as_another_user() {
    nothing_planted_runs("public, pg_catalog").await;
}

async fn nothing_planted_runs(search_path: &str) {
    let roles = Roles::prepared().await;
    let world = &roles.world;
    let database: String = world.one("select current_database()::text").await;
    let (application, service) = (roles.names.of("application"), roles.names.of("service"));
    // an older database's public, and everybody's path through it
    world.sql(&format!("grant create on schema public to {application}; grant {application} to {service}")).await;
    world.sql(&format!("grant temporary on database {database} to public")).await;
    world.sql(&format!("alter database {database} set search_path = {search_path}")).await;
    plant(&roles.url("application")).await;

    commands(&roles, "migrator", &[&["migrate", "--dry-run"], &["migrate"]]).await;
    roles.grant().await;
    let mut application = PgConnection::connect(&roles.url("application")).await.unwrap();
    shadow(&mut application).await;
    for sql in [
        "insert into document (web_uri, title) values ('x/', 'first')",
        INSERT,
        "update annotation set text = 'changed'",
        "update document set title = 'second'",
        "delete from annotation where userid = 'nobody'",
    ] {
        sqlx::raw_sql(AssertSqlSafe(format!("set search_path = pg_catalog, public, pg_temp; {sql}")))
            .execute(&mut application)
            .await
            .unwrap();
    }
    let key: String = {
        let row: (uuid::Uuid,) = sqlx::query_as("select id from public.annotation limit 1").fetch_one(&mut application).await.unwrap();
        row.0.to_string()
    };

    let worker = launch(world.binary().env("DATABASE_URL", roles.url("worker"))).await;
    eventually("the worker's first pass is through", async || worker.get(world, "/readyz").await.0 == 200).await;
    commands(
        &roles,
        "worker",
        &[
            &["sync", "--drain"],
            &["reindex", "annotation", "--user", "acct:a", "--yes"],
            &["reindex", "annotation", "--all", "--rewrite", "--yes"],
            &["sync", "--drain"],
            &["audit", "annotation", "--content", "--repair"],
            &["explain", "annotation", &key],
            &["status"],
            &["check"],
            &["doctor"],
            &["rebuild", "annotation", "--keep", "0s", "--yes"],
        ],
    )
    .await;
    let mut lines = worker.lines();
    lines.retain(|line| line.contains(RAN));
    assert_eq!(lines, [""; 0]);
    commands(
        &roles,
        "operator",
        &[
            &["pause", "annotation", "--reason", "trial"],
            &["resume", "annotation"],
            &["dead", "list"],
            &["dead", "replay", "--collection", "annotation"],
            &["dead", "discard", "--collection", "annotation", "--yes"],
            &["journal"],
            &["status"],
            &["doctor"],
        ],
    )
    .await;

    // a service stores and indexes with its own names under its own path
    let catchword = catchword::Catchword::connect(roles.config(), &roles.environment("service")).await.unwrap();
    let kept = catchword
        .store_and_schedule("bystander", async |tx: &mut PgConnection| {
            sqlx::raw_sql("set local search_path = pg_catalog, public; insert into bystander values (7, 'stored')")
                .execute(&mut *tx)
                .await?;
            Ok::<_, Error>(Stored::new((), [7]))
        })
        .await
        .unwrap();
    assert_eq!(kept.direct, Direct::Indexed);

    // by hand, in a session with temporary things of the same names
    for role in ["worker", "operator"] {
        let mut session = PgConnection::connect(&roles.url(role)).await.unwrap();
        shadow(&mut session).await;
        for sql in [
            "call catchword.run_reindex(catchword.reindex_start('annotation', p_keys => array['01234567-89ab-cdef-0123-456789abcdef'::pg_catalog.text]::pg_catalog.text[], p_hidden => true), 1)",
            "select catchword.problems('annotation'::pg_catalog.text, 'annotation'::pg_catalog.text, '{id}'::pg_catalog.name[], 'annotation_document'::pg_catalog.text)",
        ] {
            let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut session).await;
            assert!(done.is_ok(), "{role}: {sql}: {done:?}");
        }
    }
    commands(&roles, "migrator", &[&["migrate"], &["detach", "bystander", "--yes"], &["migrate"]]).await;

    let ran: bool = world.one("select is_called from public.ran").await;
    assert!(!ran, "something that was planted ran as another user");
}

/// What each planted thing says.
const RAN: &str = " ran as ";

/// Each ends as it does where nothing was planted.
async fn commands(roles: &Roles, role: &str, all: &[&[&str]]) {
    for words in all {
        let output = roles.world.binary().env("DATABASE_URL", roles.url(role)).args(*words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        // 1: something needs a person, or there was nothing to do
        assert!(matches!(output.status.code(), Some(0 | 1)) && !said.contains(RAN), "{role}: {words:?}: {said}");
    }
}

async fn plant(url: &str) {
    let (functions, operators) = names();
    assert!(functions.len() > 60 && operators.len() > 15, "{functions:?} {operators:?}");
    let list = |names: &BTreeSet<String>| {
        let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        format!("array[{}]::pg_catalog.text[]", quoted.join(", "))
    };
    let sql = include_str!("planted.sql")
        .replace("any($1)", &format!("any({})", list(&functions)))
        .replace("array $2", &format!("array {}", list(&operators)));
    let mut application = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut application).await.unwrap();
}

/// Temporary tables and functions, which a session finds before all others unless its path says otherwise.
async fn shadow(session: &mut PgConnection) {
    for table in ["pg_class", "pg_attribute", "pg_proc", "pg_trigger", "job", "collection", "record", "installation", "reindex"] {
        let sql = format!("create temporary table {table} (planted pg_catalog.int4)");
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *session).await.unwrap();
    }
    sqlx::raw_sql("create domain pg_temp.regclass as pg_catalog.text; create domain pg_temp.jsonb as pg_catalog.text")
        .execute(session)
        .await
        .unwrap();
}

/// Every word before a parenthesis, and every operator, in all SQL of the project.
fn names() -> (BTreeSet<String>, BTreeSet<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut functions, mut found) = (BTreeSet::new(), String::new());
    for folder in ["migrations", "src"] {
        read(&root.join(folder), &mut found);
    }
    for part in found.split('(') {
        let word: String = part.chars().rev().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let word: String = word.chars().rev().collect();
        if !word.is_empty() {
            functions.insert(word);
        }
    }
    let signs = "+-*/<>=~!@#%^&|?";
    let mut operators: BTreeSet<String> = found
        .split(|c: char| !signs.contains(c))
        .filter(|sign| {
            ["=", "<>", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "^", "||", "~", "!~", "->", "->>", "@>", "<@", "?", "&", "|", "<<"]
                .contains(sign)
        })
        .map(str::to_owned)
        .collect();
    operators.extend(["~~".to_owned(), "!~~".to_owned()]);
    (functions, operators)
}

fn read(folder: &Path, found: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "sql") {
            found.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}
