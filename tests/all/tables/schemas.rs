//! One table in many schemas, one for each tenant: one collection, one queue, one index, and the schema in the key.

use catchword::{Direct, Error, Key, Stored};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio_util::sync::CancellationToken;

use super::keys::{drained, well};
use crate::attach::recipe::recipe;
use crate::common::{Layout, Truth, World, eventually, start};

/// A tenant as an application makes one: a note is of an author of its own schema, and of a country that all share.
pub(super) fn tenant(schema: &str) -> String {
    format!(
        "create schema {schema};
         create table {schema}.author (id bigint primary key, name text);
         create table {schema}.note (id bigint primary key, author_id bigint references {schema}.author, country text, text text, catchword_revision bigint);
         create index on {schema}.note (author_id);
         create index on {schema}.note (country);
         comment on column {schema}.note.catchword_revision is 'catchword: revision';
         {}
         insert into {schema}.author values (1, 'mina of {schema}'), (2, 'lucy');
         insert into {schema}.note select i, 1 + i % 2, 'ro', 'old ' || i from generate_series(1, 10) i;\n",
        view(schema)
    )
}

fn view(schema: &str) -> String {
    format!(
        "create view {schema}.note_document as select n.id as key, n.catchword_revision as revision,
           json_build_object('text', concat_ws(', ', n.text, (select a.name from {schema}.author a where a.id = n.author_id),
                             (select c.name from public.country c where c.code = n.country))) as body
           from {schema}.note n where n.text is distinct from 'hidden';\n"
    )
}

pub(super) const NOTES: &str = r#"
[[collection]]
name = "note"
table = "tenant_*.note"
key = "id"
view = "tenant_*.note_document"
mapping = "bystander.json"
delay = "0s"
scopes = { author = "author_id" }
touches = [
  { table = "tenant_*.author", column = "id", row_column = "author_id", watch = ["name"] },
  { table = "public.country", column = "code", row_column = "country" },
]
"#;

async fn tenants(schemas: &[&str]) -> World {
    // a schema that is not meant, and one that is and has no such table
    let noise = tenant("tenants") + "create schema tenant_empty;";
    let sql = schemas.iter().map(|schema| tenant(schema)).collect::<String>();
    let country =
        "create table country (code text primary key, name text); insert into country values ('ro', 'Romania'), ('uk', 'England');";
    World::with(Layout { sql: format!("{country}{sql}{noise}"), more: NOTES.into(), ..Layout::default() }).await
}

/// What there is in the schemas that are there now, in plain SQL.
pub(super) async fn agree(world: &World, schemas: &[&str]) {
    let each = |what: &dyn Fn(&str) -> String| schemas.iter().map(|schema| what(schema)).collect::<Vec<_>>().join(" union all ");
    let floor = |schema: &str| format!("(select floor from catchword.collection where member_of = 'note' and schema = '{schema}')");
    let rows = |schema: &str| {
        format!("select '{schema}/' || id as key, greatest(catchword_revision, {}) as revision from {schema}.note", floor(schema))
    };
    let documents = |schema: &str| {
        format!("select '{schema}/' || key as key, greatest(revision, {}) as revision, body from {schema}.note_document", floor(schema))
    };
    world.agree_on(Truth { collection: "note", rows: &each(&rows), documents: &each(&documents) }).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 0);
}

pub(super) async fn filled(schemas: &[&str]) -> World {
    let world = tenants(schemas).await;
    well(&world, &["reindex", "note", "--all", "--yes"]).await;
    drained(&world).await;
    agree(&world, schemas).await;
    world
}

/// The tick notices what became of schemas, and a worker's upkeep runs the audit that is asked for.
pub(super) async fn noted_and_audited(world: &World) -> Option<String> {
    let said: Option<String> = world.one("select catchword.note_partitions('note')").await;
    let mut upkeep = world.catchword.upkeep(&["note"]);
    eventually("the audit has come to its end", async || {
        upkeep.round(&CancellationToken::new()).await.unwrap();
        world.one::<i64>("select count(*) from catchword.audit where finished_at is null").await == 0
    })
    .await;
    drained(world).await;
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_many_schemas_is_one_collection() {
    let schemas = ["tenant_a", "tenant_b", "tenant_c"];
    let world = filled(&schemas).await;
    assert_eq!(world.found("note").await.len(), 30);
    assert_eq!(world.source("note", "tenant_b/2").await.unwrap()["text"], "old 2, mina of tenant_b, Romania");

    // every way of writing; the same key of another tenant is another note
    for statement in [
        "update tenant_a.note set text = 'new' where id < 4",
        "delete from tenant_b.note where id = 2",
        "update tenant_c.note set id = id + 100 where id < 3",
        "update tenant_a.note set text = 'hidden' where id = 5",
        "insert into tenant_b.note select i, 2, 'uk', 'many' from generate_series(1000, 2500) i",
        "copy tenant_c.note (id, author_id, text) from program 'echo 70,1,copied' (format csv)",
        "insert into tenant_b.note values (2, 1, 'ro', 'came back')",
    ] {
        world.sql(statement).await;
    }
    let kept = world
        .catchword
        .store_and_schedule("note", async |tx: &mut PgConnection| {
            sqlx::query("insert into tenant_a.note values (42, 1, 'uk', 'direct')").execute(tx).await?;
            Ok::<_, Error>(Stored::new((), [Key::from(("tenant_a", 42))]))
        })
        .await
        .unwrap();
    assert_eq!(kept.direct, Direct::Indexed);
    drained(&world).await;
    agree(&world, &schemas).await;
    world.sql("truncate tenant_c.note").await;
    drained(&world).await;
    agree(&world, &schemas).await;
    assert_eq!(world.source("note", "tenant_c/1").await.unwrap()["catchword_deleted"], true);

    for words in [
        &["doctor"][..],
        &["status"],
        &["audit", "note", "--content"],
        &["explain", "note", "tenant_b/2"],
        &["reindex", "note", "--ids", "tenant_a/1", "tenant_b/1", "--rewrite", "--yes"],
        &["reindex", "note", "--author", "2", "--yes"],
        &["reindex", "note", "--all", "--hidden", "--rewrite", "--yes"],
        &["sync", "--drain"],
        &["rebuild", "note", "--keep", "0s", "--yes"],
        &["migrate"],
    ] {
        well(&world, words).await;
    }
    agree(&world, &schemas).await;
    // nobody else's schema is touched
    let strange = "select count(*) from pg_trigger where tgrelid = 'tenants.note'::regclass and tgname ~ 'catchword'";
    assert_eq!(world.one::<i64>(strange).await, 0);
    assert!(well(&world, &["reindex", "note", "--schema", "tenant_a", "--dry-run"]).await.contains("10"));
    let (code, _, err) = world.run(&["reindex", "note", "--schema", "tenant_x", "--yes"]).await;
    assert!(code != 0 && err.contains("has no schema tenant_x"), "{err}");

    well(&world, &["detach", "note", "--yes"]).await;
    assert_eq!(world.one::<i64>("select count(*) from pg_trigger where tgname ~ 'catchword_note'").await, 0);
    assert_eq!(world.one::<i64>("select count(*) from pg_proc where proname ~ '^note([$]|_touch)'").await, 0);
    world.sql("insert into tenant_a.note values (43, 1, 'uk', 'nobody looks')").await;
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_related_row_touches_its_own_tenant_and_a_shared_one_all() {
    let schemas = ["tenant_a", "tenant_b"];
    let world = filled(&schemas).await;
    let versions = async |schema: &str| {
        world.one::<i64>(&format!("select count(*) from catchword.record where collection = 'note' and key like '{schema}/%'")).await
    };

    world.sql("update tenant_a.author set name = 'wilhelmina' where id = 1").await;
    drained(&world).await;
    agree(&world, &schemas).await;
    // half of the notes are hers; the other tenant's author 1 is somebody else
    assert_eq!((versions("tenant_a").await, versions("tenant_b").await), (5, 0));

    world.sql("update country set name = 'Transylvania' where code = 'ro'; update country set name = 'none' where code = 'uk'").await;
    drained(&world).await;
    agree(&world, &schemas).await;
    assert_eq!((versions("tenant_a").await, versions("tenant_b").await), (10, 10));

    // an entry that is gone leaves no trigger behind
    let shared = "select count(*) from pg_trigger where tgrelid = 'country'::regclass and tgname ~ 'catchword'";
    assert_eq!(world.one::<i64>(shared).await, 4);
    let configuration = std::fs::read_to_string(world.folder.join("catchword.toml")).unwrap();
    let without = configuration
        .replace("  { table = \"public.country\", column = \"code\", row_column = \"country\" },\n", "")
        .replace("table = \"tenant_*.note\"", "unwatched = [\"public.country\"]\ntable = \"tenant_*.note\"");
    std::fs::write(world.folder.join("catchword.toml"), without).unwrap();
    well(&world, &["migrate"]).await;
    assert_eq!(world.one::<i64>(shared).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_come_and_go() {
    let world = filled(&["tenant_a", "tenant_b"]).await;
    let shown = well(&world, &["status"]).await;
    assert!(!shown.contains("catchword migrate"), "{shown}");

    // a new one is reported, taken in by migrate, and its rows follow
    world.sql(&tenant("tenant_c")).await;
    let (_, shown, _) = world.run(&["status"]).await;
    assert!(shown.contains("schemas: the configuration and the database differ; run: catchword migrate"), "{shown}");
    let said = well(&world, &["migrate"]).await;
    assert!(said.contains("taken in: tenant_c"), "{said}");
    world.sql("update tenant_c.note set text = 'at once' where id = 1").await;
    drained(&world).await;
    assert_eq!(world.source("note", "tenant_c/1").await.unwrap()["text"], "at once, lucy, Romania");
    noted_and_audited(&world).await;
    agree(&world, &["tenant_a", "tenant_b", "tenant_c"]).await;
    assert_eq!(world.found("note").await.len(), 30);

    // one that is dropped takes its documents along, and nothing of it stays
    world.sql("drop schema tenant_b cascade").await;
    assert!(noted_and_audited(&world).await.is_some_and(|said| said.contains("tenant_b is gone")));
    assert_eq!(world.found("note").await.len(), 20);
    assert_eq!(world.one::<i64>("select count(*) from catchword.collection where schema = 'tenant_b'").await, 0);

    // the same name again is another tenant, with other rows under the same keys
    world.sql(&tenant("tenant_b")).await;
    world.sql("update tenant_b.note set text = 'another life'").await;
    well(&world, &["migrate"]).await;
    noted_and_audited(&world).await;
    agree(&world, &["tenant_a", "tenant_b", "tenant_c"]).await;
    assert_eq!(world.source("note", "tenant_b/7").await.unwrap()["text"], "another life, lucy, Romania");

    // another name is another tenant too; writes go on all the time
    world.sql("alter schema tenant_a rename to tenant_z; insert into tenant_z.note values (77, 1, 'ro', 'between')").await;
    assert!(noted_and_audited(&world).await.is_some_and(|said| said.contains("tenant_a is gone")));
    world.sql("insert into tenant_z.note values (78, 1, 'ro', 'nobody looks yet')").await;
    world.sql("drop view tenant_z.note_document").await;
    world.sql(&view("tenant_z")).await;
    well(&world, &["migrate"]).await;
    noted_and_audited(&world).await;
    agree(&world, &["tenant_b", "tenant_c", "tenant_z"]).await;
    assert_eq!(world.found("note").await.len(), 32);
    assert_eq!(world.source("note", "tenant_z/77").await.unwrap()["text"], "between, mina of tenant_a, Romania");
    well(&world, &["audit", "note", "--content"]).await;
    well(&world, &["doctor"]).await;
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_schema_that_cannot_be_served_holds_up_nobody_else() {
    let schemas = ["tenant_a", "tenant_b"];
    let world = filled(&schemas).await;
    for (broken, fixed) in [
        ("drop view tenant_b.note_document", view("tenant_b")),
        (
            "alter table tenant_b.note disable trigger catchword_note_updated",
            "alter table tenant_b.note enable trigger catchword_note_updated".into(),
        ),
    ] {
        world.sql(broken).await;
        world.sql("update tenant_a.note set text = text || '+'; update tenant_b.note set text = text || '+'; delete from tenant_b.note where id = (select max(id) from tenant_b.note)").await;
        for _ in 0..3 {
            world.run(&["sync"]).await;
        }
        // of the other nothing was settled, and nothing deleted
        assert_eq!(world.one::<i64>("select count(*) from catchword.job where key like 'tenant_a/%'").await, 0);
        assert!(world.one::<i64>("select count(*) from catchword.job where key like 'tenant_b/%'").await > 0);
        assert_eq!(world.one::<i64>("select count(*) from catchword.job where attempts > 0").await, 0);
        let found = world.found("note").await;
        assert!(found.contains(&"tenant_b/1".to_owned()) && found.contains(&"tenant_a/1".to_owned()));
        let (_, shown, _) = world.run(&["status"]).await;
        assert!(shown.contains("schema tenant_b: "), "{shown}");
        let (code, told, _) = world.run(&["doctor"]).await;
        assert!(code != 0 && told.contains("schema tenant_b: "), "{told}");

        world.sql(&fixed).await;
        well(&world, &["migrate"]).await;
        well(&world, &["reindex", "note", "--schema", "tenant_b", "--rewrite", "--yes"]).await;
        drained(&world).await;
        agree(&world, &schemas).await;
    }
}

/// More than a step or a chunk takes: a walk over schemas goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn many_more_schemas_than_a_step_takes() {
    let names: Vec<String> = (0..25).map(|n| format!("tenant_{n:02}")).collect();
    let schemas: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = filled(&schemas).await;
    assert_eq!(world.found("note").await.len(), 250);
    world.sql("update country set name = 'Transylvania' where code = 'ro'").await;
    // a transaction holds few tables: of a touch, and of a chunk of a reindex
    let locked = async |statement: &str| {
        let mut transaction = world.pool.begin().await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut *transaction).await.unwrap();
        let tables = "select count(distinct l.relation) from pg_locks l join pg_class c on c.oid = l.relation where l.pid = pg_backend_pid() and c.relname = 'note'";
        sqlx::query_scalar::<_, i64>(tables).fetch_one(&mut *transaction).await.unwrap()
    };
    assert_eq!(locked("select catchword.expand_touches('note', 1000)").await, 20);
    world.sql("select catchword.reindex_start('note')").await;
    assert_eq!(locked("select catchword.reindex_chunk((select max(id) from catchword.reindex))").await, 20);
    drained(&world).await;
    agree(&world, &schemas).await;
    assert_eq!(world.source("note", "tenant_24/10").await.unwrap()["text"], "old 10, mina of tenant_24, Transylvania");
    // what no job knows of
    world.sql("set session_replication_role = replica; update tenant_22.note set text = 'unseen', catchword_revision = nextval('catchword.revision') where id = 3; delete from tenant_23.note where id = 4").await;
    let (code, out, _) = world.run(&["audit", "note", "--repair"]).await;
    assert!(code != 0 && out.contains("2"), "{out}");
    drained(&world).await;
    agree(&world, &schemas).await;
    assert_eq!(world.one::<i64>("select scheduled from catchword.reindex order by id limit 1").await, 250);
}

/// Keys of several columns, partitions, and ids of one's own, in schemas too.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_may_have_any_table() {
    let tenant = |schema: &str| {
        format!(
            "create schema {schema};
             create table {schema}.entry (book text, n integer, text text, catchword_revision bigint, primary key (book, n)) partition by list (book);
             create table {schema}.entry_a partition of {schema}.entry for values in ('a', 'a/b');
             create table {schema}.entry_rest partition of {schema}.entry default;
             comment on column {schema}.entry.catchword_revision is 'catchword: revision';
             create view {schema}.entry_document as select book, n, catchword_revision as revision, json_build_object('text', text) as body,
               '{schema}:' || book || ':' || n as id from {schema}.entry;\n"
        )
    };
    let toml = "[[collection]]\nname = \"entry\"\ntable = \"shop_*.entry\"\nkey = [\"book\", \"n\"]\nview = \"shop_*.entry_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n";
    let world = World::with(Layout { sql: tenant("shop_a") + &tenant("shop_b"), more: toml.into(), ..Layout::default() }).await;
    for schema in ["shop_a", "shop_b"] {
        world
            .sql(&format!("insert into {schema}.entry (book, n, text) values ('a', 1, 'one'), ('a/b', 2, 'two'), ('c', 3, 'three')"))
            .await;
        world
            .sql(&format!(
                "update {schema}.entry set book = 'c' where n = 1; delete from {schema}.entry where n = 3; truncate {schema}.entry_a"
            ))
            .await;
    }
    drained(&world).await;
    assert_eq!(world.found("entry").await, ["shop_a:c:1", "shop_b:c:1"]);
    world.sql("insert into shop_b.entry_a (book, n, text) values ('a/b', 9, 'into the partition')").await;
    drained(&world).await;
    assert_eq!(world.source("entry", "shop_b:a/b:9").await.unwrap()["text"], "into the partition");
    assert!(well(&world, &["explain", "entry", "shop_b/a%2Fb/9"]).await.contains("both sides agree"));
    world.sql("drop schema shop_a cascade").await;
    world.one::<Option<String>>("select catchword.note_partitions('entry')").await;
    let told = well(&world, &["audit", "entry", "--repair"]).await;
    assert!(told.contains("  pending   1: a job is open for each"), "{told}");
    drained(&world).await;
    assert_eq!(world.found("entry").await, ["shop_b:a/b:9", "shop_b:c:1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_cannot_be_taken_in_is_named() {
    let world = filled(&["tenant_a"]).await;
    let refused = async |sql: &str, says: &str| {
        world.sql(sql).await;
        let (code, out, err) = world.run(&["migrate"]).await;
        assert!(code != 0 && err.contains(says), "{out}{err}");
        world.sql("drop schema tenant_x cascade").await;
    };
    refused(
        "create schema tenant_x; create table tenant_x.author (id bigint primary key, name text); create table tenant_x.note (id bigint primary key, author_id bigint, country text)",
        "the view tenant_x.note_document does not exist",
    )
    .await;
    refused(
        "create schema tenant_x; create table tenant_x.author (id bigint primary key, name text); create table tenant_x.note (id text primary key, author_id bigint, country text)",
        "the key of tenant_x.note is of type text, and in other schemas of type bigint",
    )
    .await;
    refused(
        "create schema tenant_x; create table tenant_x.author (id bigint primary key, name text); create table tenant_x.note (text text)",
        "tenant_x.note has no column id",
    )
    .await;
    // the others are served as before
    world.sql("update tenant_a.note set text = 'on'").await;
    drained(&world).await;
    agree(&world, &["tenant_a"]).await;
    well(&world, &["migrate"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_for_tenants_works() {
    let world = recipe("A schema for each tenant").followed("select 1").await;
    world.sql("insert into tenant_red.author values (1, 'bram'); insert into tenant_red.story values (7, 1, 'dracula')").await;
    world.sql("update catchword.job set scheduled_at = now() where collection = 'story'").await;
    drained(&world).await;
    assert_eq!(world.source("story", "tenant_red/7").await.unwrap()["text"], "dracula by bram");
    world.sql("update tenant_red.author set name = 'stoker'").await;
    drained(&world).await;
    assert_eq!(world.source("story", "tenant_red/7").await.unwrap()["text"], "dracula by stoker");
    assert!(well(&world, &["explain", "story", "tenant_red/7"]).await.contains("both sides agree"));
}

/// A worker learns of schemas at its ticks; a write in between is not taken for one without a row.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_came_between_two_ticks_is_known_to_whoever_claims_its_jobs() {
    let country = "create table country (code text primary key, name text);".to_owned();
    let layout = Layout { sql: country + &tenant("tenant_a"), more: NOTES.into(), ..crate::pass::quick::quick() };
    let world = World::with(layout).await;
    let mut worker = start(&world).await;
    eventually("ready", async || worker.get(&world, "/readyz").await.0 == 200).await;
    eventually("somebody keeps the lane", async || worker.keeps_the_lane()).await;
    world.sql(&tenant("tenant_b")).await;
    well(&world, &["migrate"]).await;
    world.sql("insert into tenant_b.note values (50, 1, 'ro', 'between'); update tenant_a.note set text = 'also' where id = 1").await;
    eventually("settled without a tick", async || {
        world.one::<i64>("select count(*) from catchword.job where collection = 'note'").await == 0
    })
    .await;
    assert_eq!(world.source("note", "tenant_b/50").await.unwrap()["text"], "between, mina of tenant_b");
    assert_eq!(world.source("note", "tenant_a/1").await.unwrap()["text"], "also, lucy");
    // nor does one that was dropped hold up the others
    world
        .sql(
            "update tenant_b.note set text = 'last words'; drop schema tenant_b cascade; update tenant_a.note set text = 'on' where id = 2",
        )
        .await;
    eventually("settled without a tick", async || {
        world.one::<i64>("select count(*) from catchword.job where collection = 'note' and key like 'tenant_a/%'").await == 0
    })
    .await;
    assert_eq!(world.source("note", "tenant_a/2").await.unwrap()["text"], "on, mina of tenant_a");
    worker.signal("-TERM").await;
    worker.child.wait().await.unwrap();
}
