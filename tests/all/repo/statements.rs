//! Every `.sql` below `src/`, and every plain call of a function of ours in Rust, is a statement that Postgres takes on the schema as it is.
//! Every file is run by somebody.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor, Row, SqlSafeStr};

use crate::attach::attached;
use crate::common::World;
use crate::repo::architecture::plain_calls;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_is_taken_by_postgres() {
    let world = attached().await;
    let names: Value = world
        .one(
            "select catchword.names_of(c, 'uuid[]') || '{\"period\": \"t.updated\"}' from catchword.collection c where name = 'annotation'",
        )
        .await;
    let mut connection = world.pool.acquire().await.unwrap();
    let read = |path: PathBuf| (std::fs::read_to_string(&path).unwrap(), path);
    let in_files: Vec<(String, PathBuf)> = files(Path::new(SOURCES), "sql").into_iter().map(read).collect();
    let in_rust = files(Path::new(SOURCES), "rs").into_iter().map(read);
    let in_rust: Vec<(String, PathBuf)> = in_rust
        .flat_map(|(code, path)| plain_calls(&code).into_iter().map(move |call| (call.trim_matches('"').to_owned(), path.clone())))
        .collect();
    assert!(in_files.len() > 30 && in_rust.len() > 10, "{} and {}", in_files.len(), in_rust.len());
    for (template, path) in in_files.into_iter().chain(in_rust) {
        let sql: String =
            sqlx::query_scalar("select catchword.fill($1, $2)").bind(template).bind(&names).fetch_one(&mut *connection).await.unwrap();
        // one statement each: Postgres prepares no more than that
        let prepared = connection.prepare(AssertSqlSafe(sql).into_sql_str()).await;
        if let Err(error) = prepared {
            panic!("{}: {error}", path.display());
        }
    }
}

#[test]
fn every_statement_is_run_by_somebody() {
    let included: Vec<PathBuf> = files(Path::new(SOURCES), "rs")
        .iter()
        .flat_map(|source| {
            let text = std::fs::read_to_string(source).unwrap();
            let names: Vec<String> = text.split("include_str!(\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
            names.into_iter().map(|name| source.parent().unwrap().join(name)).collect::<Vec<_>>()
        })
        .collect();
    for path in files(Path::new(SOURCES), "sql") {
        assert!(included.contains(&path), "nobody includes {}", path.display());
    }
}

/// The plan of a claim, under the settings that a claim sets.
async fn plan_of_a_claim(world: &World) -> Value {
    let mut connection = world.pool.acquire().await.unwrap();
    sqlx::query("begin").execute(&mut *connection).await.unwrap();
    sqlx::query(include_str!("../../../src/job/keep_the_plan.sql")).execute(&mut *connection).await.unwrap();
    let prepare = concat!(
        "prepare claim (text, integer, timestamptz, bigint, bigint, integer, timestamptz, bigint) as ",
        // a comment before the statement is as good as none
        "\n",
        include_str!("../../../src/job/claim.sql")
    );
    sqlx::raw_sql(prepare).execute(&mut *connection).await.unwrap();
    let row =
        sqlx::raw_sql("explain (format json) execute claim ('item', -2147483648, '1970-01-01', 0, 2500, 2147483647, '1970-01-01', 0)")
            .fetch_one(&mut *connection)
            .await
            .unwrap();
    let explained: Value = row.try_get(0).unwrap();
    sqlx::raw_sql("deallocate claim; rollback").execute(&mut *connection).await.unwrap();
    explained[0]["Plan"].clone()
}

fn nodes(plan: &Value) -> Vec<&Value> {
    let children = plan["Plans"].as_array().map(Vec::as_slice).unwrap_or_default();
    std::iter::once(plan).chain(children.iter().flat_map(nodes)).collect()
}

fn walks_the_index(plan: &Value) {
    let all = nodes(plan);
    assert!(all.iter().all(|node| node["Node Type"] != "Sort"), "{plan:#}");
    let walk = all.iter().find(|node| node["Index Name"] == "job_walk");
    let walk = walk.unwrap_or_else(|| panic!("no walk: {plan:#}"));
    assert_eq!(walk["Node Type"], "Index Scan", "{plan:#}");
    let condition = walk["Index Cond"].as_str().unwrap_or_default();
    assert!(condition.contains("collection = $1"), "{condition}");
    assert!(condition.contains("ROW(priority, enqueued_at, id) > ROW($2, $3, $4)"), "{condition}");
    assert!(condition.contains("ROW(priority, enqueued_at, id) <= ROW($6, $7, $8)"), "{condition}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_walks_its_index_also_where_the_planner_knows_nothing() {
    let world = attached().await;
    world.sql("analyze catchword.job").await;
    walks_the_index(&plan_of_a_claim(&world).await);

    // 200,000 jobs come into a table that was last analyzed empty
    world
        .sql("insert into catchword.job (collection, key, priority, tag) select 'item', i::text, 1000, 'test' from generate_series(1, 200000) i")
        .await;
    walks_the_index(&plan_of_a_claim(&world).await);
    world.sql("analyze catchword.job").await;
    walks_the_index(&plan_of_a_claim(&world).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_key_finds_its_dead_letters_by_the_index() {
    let world = attached().await;
    world
        .sql(
            "insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, reason)
             select i, 'index', 'item', i::text, now(), now(), now(), 1, 'test', 5, 'refused' from generate_series(1, 20000) i; analyze catchword.dead_job",
        )
        .await;
    let mut connection = world.pool.acquire().await.unwrap();
    let prepare = concat!(
        "prepare settle (bigint[], text, bigint, bigint, bigint[], bigint, bigint, bigint) as\n",
        include_str!("../../../src/job/settle.sql")
    );
    sqlx::raw_sql(prepare).execute(&mut *connection).await.unwrap();
    let row = sqlx::raw_sql("explain (format json) execute settle (array[1, 2, 3], 'item', 3, 0, '{3}', 0, 0, 0)")
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let explained: Value = row.try_get(0).unwrap();
    let plan = &explained[0]["Plan"];
    assert!(nodes(plan).iter().any(|node| node["Index Name"] == "dead_job_key"), "{plan:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_the_quick_lane_searches_the_index_for_each_collection_whatever_the_planner_knows() {
    let world = attached().await;
    world.sql("analyze catchword.job").await;
    let mut connection = world.pool.acquire().await.unwrap();
    sqlx::query(include_str!("../../../src/worker/keeper_session.sql")).execute(&mut *connection).await.unwrap();
    let prepare =
        concat!("prepare question (text[], float8, timestamptz[], bigint[]) as\n", include_str!("../../../src/job/quick_due.sql"));
    sqlx::raw_sql(prepare).execute(&mut *connection).await.unwrap();
    for jobs in [0, 20_000] {
        // the table was last analyzed empty, and the plan of before is kept
        world
            .sql(&format!("insert into catchword.job (collection, key, priority, tag) select 'item', i::text, 1000, 'test' from generate_series(1, {jobs}) i"))
            .await;
        let explain = "explain (format json) execute question (array['item', 'other'], 2, '{epoch, epoch}', '{0, 0}')";
        let row = sqlx::raw_sql(explain).fetch_one(&mut *connection).await.unwrap();
        let explained: Value = row.try_get(0).unwrap();
        let plan = &explained[0]["Plan"];
        let all = nodes(plan);
        let walk = all.iter().find(|node| node["Index Name"] == "job_walk").unwrap_or_else(|| panic!("no walk: {plan:#}"));
        let condition = walk["Index Cond"].as_str().unwrap_or_default();
        for part in ["collection = c.name", "priority = 0", "enqueued_at > "] {
            assert!(condition.contains(part), "{part} is not in {condition}");
        }
    }
    connection.detach();
}
