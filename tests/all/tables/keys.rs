//! What a key can be: one column of many types, or several columns.

use catchword::{Direct, Error, Key, Stored};
use sqlx::PgConnection;

use crate::attach::collection_lines;
use crate::common::{Layout, Truth, World};

/// Type, two values as somebody may write them, and as they are in the index.
const TYPES: &[(&str, &str, [&str; 2], [&str; 2])] = &[
    ("smallint", "smallint", [" 7", "-0"], ["7", "0"]),
    ("varchar", "varchar(20)", ["Draft", "a/b%"], ["Draft", "a/b%"]),
    ("padded", "char(8)", ["ab", "c d "], ["ab", "c d"]),
    ("caseless", "citext", ["Draft", "ÄÖ"], ["draft", "äö"]),
    ("numeric", "numeric", ["1.50", "-0.0"], ["1.5", "0"]),
    ("endless", "numeric", ["NaN", "-Infinity"], ["NaN", "-Infinity"]),
    ("day", "date", ["2026-1-31", "0099-12-01"], ["2026-01-31", "0099-12-01"]),
    ("age", "date", ["0044-03-15 BC", "12345-01-01"], ["0044-03-15 BC", "12345-01-01"]),
    ("ever", "date", ["infinity", "-infinity"], ["infinity", "-infinity"]),
    ("number", "serial_number", ["12", "3"], ["12", "3"]),
    ("label", "label_name", ["x", "y z"], ["x", "y z"]),
];

fn collection(name: &str) -> String {
    format!("key_{name}")
}

fn table(name: &str, key_type: &str) -> String {
    crate::attach::item(&collection(name), key_type)
}

pub async fn drained(world: &World) {
    let (code, out, err) = world.run(&["sync", "--drain"]).await;
    assert_eq!(code, 0, "{out}{err}");
}

pub async fn well(world: &World, words: &[&str]) -> String {
    let (code, out, err) = world.run(words).await;
    assert_eq!(code, 0, "{words:?}: {out}{err}");
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_each_type_goes_the_whole_way() {
    let world = World::with(Layout {
        sql: format!(
            "create extension citext; create domain serial_number as integer check (value > 0); create domain label_name as varchar(10);
             create domain short_label as label_name; {}",
            TYPES.iter().map(|(name, key_type, ..)| table(name, key_type)).collect::<String>()
        ),
        more: TYPES.iter().map(|(name, ..)| collection_lines(&collection(name), "delay = \"0s\"")).collect(),
        ..Layout::default()
    })
    .await;
    well(&world, &["doctor"]).await;
    // the writer's own style of dates and numbers must not matter
    let mut writer = world.pool.acquire().await.unwrap();
    sqlx::raw_sql("set datestyle = 'German, DMY'; set extra_float_digits = 0").execute(&mut *writer).await.unwrap();
    for (name, key_type, written, _) in TYPES {
        let table = collection(name);
        let [first, second] = written.map(|value| format!("'{}'::{key_type}", value.replace('\'', "''")));
        for statement in [
            format!("insert into {table} (id, text) values ({first}, 'one'), ({second}, 'two')"),
            format!("update {table} set text = 'three' where id = {first}"),
            format!("delete from {table} where id = {second}"),
        ] {
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement.clone()))
                .execute(&mut *writer)
                .await
                .unwrap_or_else(|e| panic!("{statement}: {e}"));
        }
    }
    drained(&world).await;
    for (name, _, [first, _], [stored, gone]) in TYPES {
        let (table, text) = (collection(name), world.source(&collection(name), stored).await);
        assert_eq!(text.unwrap()["text"], "three", "{name}");
        assert_eq!(world.source(&table, gone).await.unwrap()["catchword_deleted"], true, "{name}");
        assert_eq!(world.found(&table).await, [*stored], "{name}");
        let said = well(&world, &["explain", &table, first]).await;
        assert!(said.starts_with(&format!("{table} {stored}\n")), "{said}");
        well(&world, &["reindex", &table, "--ids", first, "--rewrite", "--yes"]).await;
        well(&world, &["reindex", &table, "--all", "--hidden", "--yes"]).await;
    }
    drained(&world).await;
    for (name, ..) in TYPES {
        let table = collection(name);
        well(&world, &["audit", &table, "--content"]).await;
        let key = match *name {
            "caseless" => "lower(id::text)",
            "numeric" | "endless" => "trim_scale(id)::text",
            _ => "id::text",
        };
        let rows = format!("select {key} as key, catchword_revision as revision from {table}");
        let documents = format!("select {} as key, revision, body from {table}_document", key.replace("id", "key"));
        world.agree_on(Truth { collection: &table, rows: &rows, documents: &documents }).await;
    }
    let (code, _, err) = world.run(&["explain", "key_day", "yesterday"]).await;
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("write for instance 2026-01-31"), "{err}");
}

/// A name that is written otherwise is the same key: the document keeps its id, and nothing is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_equal_for_postgres_is_one_document() {
    let world = World::with(Layout {
        sql: format!("create extension citext; {}{}", table("caseless", "citext"), table("numeric", "numeric")),
        more: ["caseless", "numeric"].map(|name| collection_lines(&collection(name), "delay = \"0s\"")).concat(),
        ..Layout::default()
    })
    .await;
    world.sql("insert into key_caseless values ('Draft', 'one'); insert into key_numeric values (1.5, 'one')").await;
    drained(&world).await;
    world.sql("update key_caseless set id = 'DRAFT', text = 'two'; update key_numeric set id = 1.500, text = 'two'").await;
    drained(&world).await;
    for (collection, key) in [("key_caseless", "draft"), ("key_numeric", "1.5")] {
        assert_eq!(world.found(collection).await, [key]);
        assert_eq!(world.source(collection, key).await.unwrap()["text"], "two");
    }
    assert_eq!(world.one::<i64>("select count(*) from catchword.record where collection like 'key%'").await, 0);
}

const TENANTS: &str = "
create table \"Tenant\" (\"Id\" integer primary key, name text);
create table note (tenant_id integer not null, slug text not null, day date not null, text text, owner integer references \"Tenant\" on delete cascade,
  catchword_revision bigint, primary key (tenant_id, slug, day));
create index on note (owner);
comment on column note.catchword_revision is 'catchword: revision';
create view note_document as select tenant_id, slug, day, catchword_revision as revision,
  json_build_object('text', text || coalesce(' of ' || (select name from \"Tenant\" where \"Id\" = owner), '')) as body from note where text <> 'hidden';
";

const NOTES: &str = r#"
[[collection]]
name = "note"
table = "note"
key = ["tenant_id", "SLUG", "day"]
view = "note_document"
mapping = "bystander.json"
delay = "0s"
scopes = { tenant = "tenant_id" }
touches = [{ table = '"Tenant"', column = '"Id"', row_column = "owner", watch = ["name"] }]
"#;

const NOTE: Truth = Truth {
    collection: "note",
    rows: "select tenant_id || '/' || replace(replace(slug, '%', '%25'), '/', '%2F') || '/' || to_char(day, 'YYYY-MM-DD') as key, catchword_revision as revision from note",
    documents: "select tenant_id || '/' || replace(replace(slug, '%', '%25'), '/', '%2F') || '/' || to_char(day, 'YYYY-MM-DD') as key, revision, body from note_document",
};

async fn tenants() -> World {
    World::with(Layout { sql: TENANTS.into(), more: NOTES.into(), ..Layout::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_several_columns_goes_the_whole_way() {
    let world = tenants().await;
    world.sql("insert into \"Tenant\" values (1, 'mina'), (2, 'jonathan')").await;
    world
        .sql(
            "set datestyle = 'German';
             insert into note (tenant_id, slug, day, text, owner) select t, s, d, t || s || to_char(d, 'YYYY-MM-DD'), t
               from generate_series(1, 2) t, unnest(array['a', 'a/b', '50%', '%2F', '', 'é ü']) s, unnest(array['31.01.2026'::date, '01.02.2026']) d",
        )
        .await;
    drained(&world).await;
    world.agree_on(NOTE).await;
    assert_eq!(world.found("note").await.len(), 24);
    assert_eq!(world.source("note", "1/a%2Fb/2026-01-31").await.unwrap()["text"], "1a/b2026-01-31 of mina");

    // every way of writing; the same slug and day of the other tenant is another note
    for statement in [
        "update note set text = 'new' where (tenant_id, slug) = (1, 'a')",
        "delete from note where (tenant_id, slug, day) = (1, 'a/b', '2026-01-31')",
        "update note set slug = 'c/d', tenant_id = 2 where (tenant_id, slug, day) = (1, '50%', '2026-01-31')",
        "update note set text = 'hidden' where (tenant_id, slug, day) = (2, 'a', '2026-01-31')",
        "update \"Tenant\" set name = 'lucy' where \"Id\" = 2",
        "insert into note (tenant_id, slug, day, text) select 3, n::text, '2026-03-01', 'many' from generate_series(1, 1500) n",
        "update note set slug = slug || '/' where tenant_id = 3 and slug::int > 400",
        "delete from note where tenant_id = 3 and slug::text < '2'",
        "insert into note (tenant_id, slug, day, text) values (1, 'a/b', '2026-01-31', 'came back')",
    ] {
        world.sql(statement).await;
    }
    let kept = world
        .catchword
        .store_and_schedule("note", async |tx: &mut PgConnection| {
            sqlx::query("insert into note (tenant_id, slug, day, text) values (7, 'x/y', '2026-01-01', 'direct')").execute(tx).await?;
            Ok::<_, Error>(Stored::new((), [Key::from((7, "x/y", "2026-01-01"))]))
        })
        .await
        .unwrap();
    assert_eq!(kept.direct, Direct::Indexed);
    assert_eq!(world.source("note", "7/x%2Fy/2026-01-01").await.unwrap()["text"], "direct");
    drained(&world).await;
    world.agree_on(NOTE).await;
    assert_eq!(world.source("note", "2/c%2Fd/2026-01-31").await.unwrap()["text"], "150%2026-01-31 of mina");
    assert_eq!(world.source("note", "2/é ü/2026-01-31").await.unwrap()["text"], "2é ü2026-01-31 of lucy");

    for words in [
        &["doctor"][..],
        &["status"],
        &["audit", "note", "--content"],
        &["explain", "note", " 1/a%2Fb/2026-1-31"],
        &["reindex", "note", "--ids", "1/a/2026-01-31", "7/x%2Fy/2026-01-01", "--rewrite", "--yes"],
        &["reindex", "note", "--tenant", "1", "--yes"],
        &["reindex", "note", "--all", "--hidden", "--rewrite", "--yes"],
        &["sync", "--drain"],
        &["rebuild", "note", "--keep", "0s", "--yes"],
        &["migrate"],
    ] {
        well(&world, words).await;
    }
    world.agree_on(NOTE).await;
    world.noise_is_untouched().await;
}

/// What nobody has a job for, on either side.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_repairs_keys_of_several_columns() {
    let world = tenants().await;
    world.sql("insert into note (tenant_id, slug, day, text) select 1, n::text, '2026-03-01', 'x' from generate_series(1, 300) n").await;
    drained(&world).await;
    world
        .sql(
            "set session_replication_role = replica; delete from note where slug = '7'; update note set text = 'y', catchword_revision = nextval('catchword.revision') where slug = '8';
             insert into note (tenant_id, slug, day, text) values (1, 'a/7', '2026-03-01', 'z')",
        )
        .await;
    // ids that no key can have
    for id in ["not-a-key", "1/2", "1/2/3", "1/2/2026-02-30"] {
        assert_eq!(world.put("note", &id.replace('/', "%2F"), 4, serde_json::json!({ "text": "foreign" })).await, 201, "{id}");
    }
    let (code, out, err) = world.run(&["audit", "note", "--repair"]).await;
    assert_eq!(code, 1, "{out}{err}");
    drained(&world).await;
    well(&world, &["audit", "note", "--content"]).await;
    assert_eq!(world.found("note").await.len(), 300);
    assert_eq!(world.source("note", "1/a%2F7/2026-03-01").await.unwrap()["text"], "z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_is_refused_with_what_to_write() {
    let world =
        World::with(Layout { sql: format!("{TENANTS} alter table note add flag boolean not null default true"), ..Layout::default() })
            .await;
    for (key, problem, remedy) in [
        ("[\"slug\", \"tenant_id\", \"day\"]", "unique in another order", "key = [\"tenant_id\", \"slug\", \"day\"]"),
        ("\"tenant_id\"", "unique together with other columns only", "key = [\"tenant_id\", \"slug\", \"day\"]"),
        ("[\"tenant_id\", \"day\"]", "unique together with other columns only", "key = [\"tenant_id\", \"slug\", \"day\"]"),
        ("\"flag\"", "is of type boolean", "name another unique column"),
        ("[\"tenant_id\", \"tenant_id\"]", "each once", "correct key"),
        ("[]", "key is missing", "key = \"id\""),
        ("'\"Slug\"'", "has no column \"Slug\"", "quoted, as in SQL"),
    ] {
        let lines = NOTES.replace("[\"tenant_id\", \"SLUG\", \"day\"]", key);
        let path = world.folder.join("other.toml");
        std::fs::write(&path, lines).unwrap();
        let (code, out, err) = world.run(&["migrate", "--config", path.to_str().unwrap()]).await;
        assert_ne!(code, 0, "{key}: {out}{err}");
        assert!(err.contains(problem) && err.contains(remedy), "{key}: {err}");
    }
    assert_eq!(world.one::<i64>("select count(*) from catchword.collection where name = 'note'").await, 0);
}
