//! A table that we did not write: its own triggers must see what they see without us, and its writes must do what they do without us.

use serde_json::json;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::common::{Layout, World};
use crate::operate::roles::Names;

/// A forum, as others write it: names without a schema, and a trigger of every kind.
const SCHEMA: &str = include_str!("foreign/schema.sql");
/// What its application does all day.
const WRITES: &str = include_str!("foreign/writes.sql");

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

const LINES: &str = "
[[collection]]
name = \"post\"
table = \"forum.post\"
key = \"id\"
view = \"forum.post_document\"
mapping = \"bystander.json\"
watch = [\"title\", \"meta\", \"place\", \"weight\", \"person_id\", \"removed\"]
touches = [{ table = \"forum.person\", column = \"id\", row_column = \"person_id\", watch = [\"name\"] }]
delay = \"0s\"
";

/// The forum twice: `forum` is attached, `plain` is not. The application's role writes to both.
struct Forum {
    world: World,
    names: Names,
}

async fn forum() -> Forum {
    let names = Names::new();
    let application = names.of("application");
    let sql = |schema: &str| SCHEMA.replace("{schema}", schema).replace("{application}", &application);
    let world = World::with(Layout {
        sql: format!("create role {application}; {} {}", sql("forum"), sql("plain")),
        more: LINES.into(),
        ..Layout::default()
    })
    .await;
    Forum { world, names }
}

/// Runs statements one after the other as the application does it: its role, its search_path, a transaction each.
async fn write_as_application(connection: &mut PgConnection, names: &Names, schema: &str, level: &str, statements: &str) {
    let run = |sql: String| sqlx::raw_sql(AssertSqlSafe(sql));
    run(format!("set role {}; set search_path = {schema}; set app.tenant = 'seven'", names.of("application")))
        .execute(&mut *connection)
        .await
        .unwrap();
    for statement in statements.split(";\n").map(str::trim).filter(|statement| !statement.is_empty()) {
        // what needs read committed says so
        let level = if statement.starts_with("truncate") { "read committed" } else { level };
        let written = run(format!("begin isolation level {level}; {statement}; commit")).execute(&mut *connection).await;
        written.unwrap_or_else(|error| panic!("{schema}, {level}: {statement}: {error}"));
    }
    run("reset role; reset search_path; reset app.tenant".into()).execute(connection).await.unwrap();
}

/// What the application's own triggers saw, and what is in its tables.
async fn story(world: &World, schema: &str) -> Vec<String> {
    let mut lines: Vec<String> = world.all(&format!("select replace(line, '{schema}', 'schema') from {schema}.log order by id")).await;
    lines.extend(
        world
            .all::<String>(&format!(
                "select format('%s %s %s %s %s %s', id, title, meta, weight, removed, version) from {schema}.post order by id"
            ))
            .await,
    );
    lines.extend(world.all::<String>(&format!("select format('%s %s %s', id, name, posts) from {schema}.person order by id")).await);
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn an_applications_triggers_see_what_they_see_without_us_at_every_isolation_level() {
    for level in LEVELS {
        let Forum { world, names } = &forum().await;
        let mut connection = world.pool.acquire().await.unwrap();
        for schema in ["plain", "forum"] {
            write_as_application(&mut connection, names, schema, level, WRITES).await;
        }
        let (without, with) = (story(world, "plain").await, story(world, "forum").await);
        assert!(without.len() > 40, "the triggers fire: {without:?}");
        assert_eq!(with, without, "{level}");

        world.catchword.drain("test", &["post"]).await.unwrap();
        assert_eq!(story(world, "forum").await, without, "{level}: the worker fires none of them");
        assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'post'").await, 0);
        for (key, text) in documents_wanted(world).await {
            assert_eq!(world.source("post", &key).await.unwrap(), json!({ "text": text }), "{level}: {key}");
        }
        world.noise_is_untouched().await;
    }
}

async fn documents_wanted(world: &World) -> Vec<(String, String)> {
    let rows: Vec<String> = world.all("select key || '|' || (body ->> 'text') from forum.post_document order by key").await;
    rows.iter().map(|row| row.split_once('|').map(|(key, text)| (key.to_owned(), text.to_owned())).unwrap()).collect()
}

/// Everything that gives rows a new number: a related change, a partial reindex, an index that is ahead, another content.
#[tokio::test(flavor = "multi_thread")]
async fn a_touch_writes_to_no_row_and_fires_no_trigger() {
    let Forum { world, names } = &forum().await;
    let mut connection = world.pool.acquire().await.unwrap();
    write_as_application(&mut connection, names, "forum", "read committed", WRITES).await;
    world.catchword.drain("test", &["post"]).await.unwrap();
    let rows = "select string_agg(p::text || p.xmin || p.ctid, ';' order by id) from forum.post p";
    let (before, told): (String, Vec<String>) = (world.one(rows).await, story(world, "forum").await);
    let documents = documents_wanted(world).await;
    let version = async |key: &str| world.version("post", key).await.unwrap();

    let ours: Vec<String> = world.all("select id::text from forum.post where person_id = 1 and not removed order by id").await;
    let mut last = version(&ours[0]).await;
    for touch in ["reindex", "related", "ahead", "content"] {
        match touch {
            "reindex" => {
                world.sql(&format!("select catchword.reindex('post', p_keys => array['{}'], p_rewrite => true)", ours[0])).await;
            }
            // the person's own trigger logs it, as it does without us
            "related" => {
                world.sql("set search_path = forum; update person set name = 'Mina the second' where id = 1; reset search_path").await
            }
            "ahead" => {
                world.put("post", &ours[0], last + 400, json!({ "text": "from nowhere" })).await;
                world.sql(&format!("select catchword.schedule('post', array['{}'])", ours[0])).await;
            }
            _ => {
                let path = format!("/{}/_doc/{}?version={last}&version_type=external_gte", world.index("post"), ours[0]);
                let (status, answer) = world.http("PUT", &path, Some(json!({ "text": "from nowhere" }))).await;
                assert_eq!(status, 200, "{answer}");
                let (_, told, _) = world.run(&["audit", "post", "--content", "--repair"]).await;
                assert!(told.contains("post"), "{told}");
            }
        }
        world.catchword.drain("test", &["post"]).await.unwrap();
        let now = version(&ours[0]).await;
        assert!(now > last && now % 2 == 0, "{touch}: {last} {now}");
        last = now;
        assert_eq!(world.one::<String>(rows).await, before, "{touch}");
        assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'post'").await, 0, "{touch}");
    }
    let named: Vec<String> = story(world, "forum").await.into_iter().filter(|line| !line.contains("the second")).collect();
    assert_eq!(named.len(), told.len() - 1, "nothing was logged");
    for ((key, text), (_, old)) in documents_wanted(world).await.into_iter().zip(documents) {
        assert_eq!(world.source("post", &key).await.unwrap(), json!({ "text": text }), "{old}");
    }
}

/// In an older snapshot the record of a touch that came since cannot be seen: the write must not stumble over it.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_in_an_older_snapshot_does_not_fail_after_a_touch() {
    for level in LEVELS {
        let Forum { world, names } = &forum().await;
        let mut connection = world.pool.acquire().await.unwrap();
        write_as_application(&mut connection, names, "forum", "read committed", WRITES).await;
        world.catchword.drain("test", &["post"]).await.unwrap();
        let key: i64 = world.one("select min(id) from forum.post where not removed").await;
        for round in ["first", "again"] {
            let touch = format!("select catchword.touch('post', array['{key}', '{}'])", 10_000 + key);
            let statement = match round {
                "first" => format!("update forum.post set id = 10000 + {key} where id = {key}"),
                _ => format!("update forum.post set id = {key} where id = 10000 + {key}"),
            };
            world.sql(&touch).await;
            let mut writer = world.pool.begin().await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(format!(
                "set transaction isolation level {level}; select from forum.post; set local search_path = forum"
            )))
            .execute(&mut *writer)
            .await
            .unwrap();
            world.sql(&touch).await;
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *writer).await.unwrap_or_else(|error| panic!("{level}, {round}: {error}"));
            writer.commit().await.unwrap();
        }
        world.catchword.drain("test", &["post"]).await.unwrap();
        for (key, text) in documents_wanted(world).await {
            assert_eq!(world.source("post", &key).await.unwrap(), json!({ "text": text }), "{level}: {key}");
        }
        assert!(world.source("post", &(10000 + key).to_string()).await.is_none_or(|body| body == json!({ "catchword_deleted": true })));
    }
}

/// Attaching tries what a worker will do, on the real table, and undoes it; so does `doctor`.
#[tokio::test(flavor = "multi_thread")]
async fn migrate_and_doctor_try_a_touch_and_fire_no_trigger() {
    let Forum { world, names } = &forum().await;
    let mut connection = world.pool.acquire().await.unwrap();
    write_as_application(&mut connection, names, "forum", "read committed", WRITES).await;
    // rows from before there was a number
    world.sql("alter table forum.post disable trigger user; update forum.post set catchword_revision = null; alter table forum.post enable trigger user").await;
    let told = story(world, "forum").await;
    for words in [&["migrate"][..], &["doctor"]] {
        let (_, said, errors) = world.run(words).await;
        assert!(!errors.contains("relation") && !said.contains("FAIL post"), "{said}{errors}");
        assert_eq!(story(world, "forum").await, told, "{words:?}");
    }
    let (_, said, _) = world.run(&["doctor", "--json"]).await;
    assert!(said.contains("a row can be given a new number"), "{said}");

    // a view that shows another number is refused, although no row has one yet
    world.sql("create or replace view forum.post_document as select p.id as key, p.catchword_revision + 4 as revision, json_build_object('text', p.title) as body from forum.post p").await;
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert!(code == 2 && errors.contains("is not the column catchword_revision"), "{said}{errors}");
    assert_eq!(story(world, "forum").await, told);
    assert_eq!(world.one::<i64>("select count(*) from pg_trigger where tgrelid = 'forum.post'::regclass and tgenabled <> 'O'").await, 0);
}
