//! "In step" is true: whatever changes a document without a row of its table is refused, noticed or found.

use std::path::Path;

use catchword::{Direct, Error, Stored};
use serde_json::json;
use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use crate::common::{Layout, World, eventually, start};

const NOTE: &str = "[[collection]]\nname = \"note\"\ntable = \"note\"\nkey = \"id\"\nview = \"note_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n";

const NOTES: &str = "
create type mood as enum ('calm', 'wild');
create table country (id integer primary key, name text);
create table shelf (id integer primary key, label text);
create table note (id integer primary key, text text, country integer, shelf integer references shelf, mood mood, size numeric(6, 2),
  loud text generated always as (upper(text)) stored, catchword_revision bigint);
comment on column note.catchword_revision is 'catchword: revision';";

/// A world with a collection `note` whose document is this expression, and these settings.
pub async fn notes(sql: &str, text: &str, settings: &str, migrated: bool) -> World {
    let view = format!(
        "{NOTES}{sql}; create view note_document as select id as key, catchword_revision as revision, json_build_object('text', {text}) as body from note;"
    );
    World::with(Layout { sql: view, more: format!("{NOTE}{settings}\n"), migrated, ..Layout::default() }).await
}

impl World {
    /// Adds to what the file says of the collection `note`, which is the last one.
    fn add_to_config(&self, line: &str) {
        append(&self.folder.join("catchword.toml"), line);
    }

    pub async fn settle_notes(&self) {
        self.sql("update catchword.job set scheduled_at = now() - interval '1 second' where collection = 'note'").await;
        self.catchword.drain("test", &["note"]).await.unwrap();
    }

    async fn note(&self, id: i32) -> serde_json::Value {
        self.source("note", &id.to_string()).await.unwrap()["text"].clone()
    }

    /// What is due for `note`, as `status` shows it.
    async fn drift_of_note(&self) -> Option<String> {
        let config = self.catchword.config().collection(Some("note")).unwrap();
        self.catchword.drift(config).await.unwrap().due()
    }
}

fn append(path: &Path, line: &str) {
    let before = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, format!("{before}\n{line}\n")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_the_view_reads_and_nobody_watches_is_refused_unless_it_is_waived() {
    let world = notes("", "(select name from country where country.id = note.country)", "", false).await;
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 2, "{said}");
    assert!(
        errors.contains("the view reads public.country") && errors.contains("touches = [") && errors.contains("unwatched = ["),
        "{errors}"
    );
    let attached = "select count(*) from pg_trigger where tgrelid = 'note'::regclass and not tgisinternal";
    assert_eq!(world.one::<i64>(attached).await, 0, "nothing is left behind");

    world.add_to_config("unwatched = [\"contry\"]");
    let (code, _, errors) = world.run(&["migrate"]).await;
    assert!(code == 2 && errors.contains("the table contry does not exist") && errors.contains("unwatched"), "{errors}");
    let path = world.folder.join("catchword.toml");
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap().replace("[\"contry\"]", "[\"country\"]")).unwrap();
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    assert_eq!(world.all::<String>("select unnest(unwatched) from catchword.collection where name = 'note'").await, ["public.country"]);
    let (_, said, _) = world.run(&["doctor"]).await;
    assert!(!said.contains("the view reads public."), "{said}");

    // the view changes later: then it is noticed
    world.sql("create or replace view note_document as select id as key, catchword_revision as revision, json_build_object('text', (select label from shelf where shelf.id = note.shelf)) as body from note").await;
    let (_, said, _) = world.run(&["status"]).await;
    assert!(said.contains("drift     the view reads public.shelf"), "{said}");
    let (code, said, _) = world.run(&["doctor"]).await;
    assert!(
        code == 1
            && said.contains("the view reads public.shelf")
            && said.contains("unwatched names public.country, which the view does not read"),
        "{said}"
    );
    world.add_to_config("touches = [{ table = \"shelf\", column = \"id\", row_column = \"shelf\" }]");
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    assert!(said.contains("warning: unwatched names public.country"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_found_below_views_functions_and_materialized_views() {
    for (sql, text, found) in [
        ("create view lands as select id, name from country", "(select name from lands where lands.id = note.country)", "public.country"),
        (
            "create function land(i integer) returns text language sql stable begin atomic select name from country where id = i; end",
            "land(country)",
            "public.country",
        ),
        (
            "create materialized view lands as select id, name from country",
            "(select name from lands where lands.id = note.country)",
            "public.lands",
        ),
    ] {
        let world = notes(sql, text, "", false).await;
        let (code, _, errors) = world.run(&["migrate"]).await;
        assert!(code == 2 && errors.contains(&format!("the view reads {found}")), "{sql}: {errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_watch_lacks_and_a_function_that_tells_the_time_are_told() {
    let slow = "create function aged(t text) returns text language plpgsql stable as 'begin return t || clock_timestamp(); end'";
    let settings = "watch = [\"text\"]\ntouches = [{ table = \"shelf\", column = \"id\", row_column = \"shelf\", watch = [\"id\"] }]";
    let world = notes(
        slow,
        "concat(loud, now(), current_date, aged(mood::text), (select label from shelf where shelf.id = note.shelf))",
        settings,
        false,
    )
    .await;
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{errors}");
    // loud is generated from text, which is watched
    for told in [
        "the view reads mood, shelf, public.shelf.label, which watch lacks",
        "the view calls clock_timestamp, current_date, now()",
        "the view calls public.aged(text), and catchword cannot see",
    ] {
        assert!(said.contains(told), "{told}: {said}");
        let (_, said, _) = world.run(&["doctor"]).await;
        assert!(said.contains(told), "{told}: {said}");
    }
    assert_eq!(world.run(&["doctor", "--all"]).await.1.matches("steady").count(), 3, "the other views are steady");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_view_is_made_of_is_part_of_its_definition() {
    let functions = "create function inner_one(t text) returns text language sql immutable as 'select t';
        create function outer_one(t text) returns text language plpgsql immutable as 'begin return inner_one(t); end';
        create function whole(t text) returns text language sql immutable begin atomic select inner_one(t); end";
    let world = notes(functions, "concat(mood, loud, size, outer_one(text), whole(text))", "", true).await;
    world.sql("insert into note (id, text, mood, size) values (1, 'a', 'calm', 1)").await;
    world.settle_notes().await;
    assert_eq!(world.drift_of_note().await, None);
    let view: String = world.one("select pg_get_viewdef('note_document')").await;
    // before 17 a column is computed in another way only if it is another column
    let computed = match world.postgres().await {
        ..17 => format!(
            "drop view note_document; alter table note drop column loud, add column loud text generated always as (lower(text)) stored; create view note_document as {view}"
        ),
        _ => "alter table note alter column loud set expression as (lower(text))".to_owned(),
    };
    for change in [
        "alter type mood rename value 'calm' to 'quiet'".to_owned(),
        format!("drop view note_document; alter table note alter column size type numeric(6, 3); create view note_document as {view}"),
        computed,
        "create or replace function inner_one(t text) returns text language sql immutable as 'select t || 1'".to_owned(),
    ] {
        world.sql(&change).await;
        assert!(world.drift_of_note().await.is_some_and(|due| due.contains("--rewrite")), "{change}");
        let (code, said, errors) = world.run(&["reindex", "note", "--all", "--rewrite", "--yes"]).await;
        assert_eq!(code, 0, "{said}{errors}");
        assert_eq!(world.drift_of_note().await, None, "{change}");
    }
    // what changes no document
    for change in [
        "alter type mood add value 'odd'",
        "alter table note add column more text",
        "create function unused() returns text language sql as 'select 1::text'",
    ] {
        world.sql(change).await;
        assert_eq!(world.drift_of_note().await, None, "{change}");
    }
    // and what is new is known from the next migrate on
    assert_eq!(world.run(&["migrate"]).await.0, 0);
    world.sql("alter type mood rename value 'odd' to 'even'").await;
    assert!(world.drift_of_note().await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_key_that_is_gone_is_noticed_and_migrate_makes_new_rows_count() {
    let touches = "touches = [{ table = \"shelf\", column = \"id\", row_column = \"shelf\" }]";
    let world = notes("", "(select label from shelf where shelf.id = note.shelf)", touches, true).await;
    world.sql("alter table note drop constraint note_shelf_fkey").await;
    let (code, said, _) = world.run(&["status"]).await;
    assert!(code == 1 && said.contains("the foreign key from public.note.shelf to public.shelf is gone"), "{said}");
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    world.sql("insert into note (id, shelf) values (1, 7)").await;
    world.settle_notes().await;
    assert_eq!(world.note(1).await, json!(null));
    world.sql("insert into shelf values (7, 'seven')").await;
    world.settle_notes().await;
    assert_eq!(world.note(1).await, json!("seven"));
    assert_eq!(world.run(&["status"]).await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_others_write_through_is_noticed_at_the_next_tick() {
    let touches = "touches = [{ table = \"shelf\", column = \"id\", row_column = \"shelf\" }]";
    let sql = NOTES.to_owned()
        + "create view note_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from note;";
    let layout = Layout { sql, more: format!("{NOTE}{touches}\n"), tick: "* * * * * *", ..Layout::default() };
    let world = World::with(layout).await;
    let worker = start(&world).await;
    let refused = "select coalesce((select blocked ->> 'note' from catchword.worker order by seen_at desc limit 1), '')";
    for (change, back, told) in [
        (
            "alter table note drop column loud; create table notes (like note including all) partition by range (id);
             alter table notes attach partition note for values from (0) to (1000)",
            "alter table notes detach partition note; drop table notes",
            "public.note is a partition now: what is written through public.notes leaves no jobs",
        ),
        ("create table special () inherits (note)", "drop table special", "public.special inherits from public.note now"),
        ("create table special () inherits (shelf)", "drop table special", "public.special inherits from public.shelf now"),
        ("alter table note set unlogged", "alter table note set logged", "public.note is unlogged now"),
    ] {
        world.sql(change).await;
        eventually("the worker stops serving it", async || world.one::<String>(refused).await.contains(told)).await;
        assert!(worker.lines().iter().any(|line| line.contains("not served") && line.contains(told)), "{told}");
        let (code, said, _) = world.run(&["status"]).await;
        assert!(code == 1 && said.contains(told), "{said}");
        let (code, said, _) = world.run(&["check"]).await;
        assert!(code == 1 && said.contains(told), "{said}");
        world.sql(back).await;
        eventually("it is served again", async || world.one::<String>(refused).await.is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_while_a_table_was_a_partition_is_found_when_it_is_none_any_more() {
    let sql = NOTES.replace("loud text generated always as (upper(text)) stored, ", "")
        + "create view note_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from note;";
    let world = World::with(Layout { sql, more: NOTE.to_owned(), tick: "* * * * * *", ..Layout::default() }).await;
    let _worker = start(&world).await;
    let broken = "select broken_at is not null from catchword.collection where name = 'note'";
    world.sql("create table notes (like note including all) partition by range (id); alter table notes attach partition note for values from (0) to (1000)").await;
    eventually("it is noticed", async || world.one::<bool>(broken).await).await;
    world.sql("insert into notes (id, text) values (1, 'through the parent')").await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'note'").await, 0, "no job tells of it");
    world.sql("alter table notes detach partition note").await;
    eventually("an audit is asked for", async || {
        world.one::<bool>("select exists (select from catchword.audit where collection = 'note' and reason = 'was broken')").await
    })
    .await;
    assert!(!world.one::<bool>(broken).await);
    let mut upkeep = world.another().await.upkeep(&["note"]);
    eventually("it is found", async || {
        upkeep.round(&CancellationToken::new()).await.unwrap();
        world.source("note", "1").await.is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_could_see_is_found_by_the_audit_of_each_day_and_by_explain() {
    let world = notes("", "(select name from country where country.id = note.country)", "unwatched = [\"country\"]", true).await;
    world.sql("insert into country values (1, 'old'); insert into note (id, country) select i, 1 from generate_series(1, 50) i").await;
    world.settle_notes().await;
    let (code, said, _) = world.run(&["explain", "note", "7"]).await;
    assert!(code == 0 && said.contains("in step, nothing to do"), "{said}");
    world.sql("update country set name = 'new'").await;
    let (code, said, _) = world.run(&["explain", "note", "7"]).await;
    assert!(code == 1 && said.contains("the numbers agree, and the document is another than the view builds"), "{said}");
    assert!(said.contains("catchword reindex note --ids 7 --rewrite"), "{said}");
    let (code, said, _) = world.run(&["audit", "note", "--content"]).await;
    assert!(code == 1 && said.contains("likely cause: the view reads public.country, which unwatched names"), "{said}");

    world.sql("update catchword.collection set attached_at = now() - interval '2 days'; delete from catchword.audit").await;
    // as if they were 2,000: then every other one is looked into
    world.sql("update pg_class set reltuples = 2000 where oid = 'note'::regclass").await;
    let mut upkeep = world.catchword.upkeep(&["note"]);
    // what a share shows concerns all
    let asked = "select string_agg(reason || ' ' || content || ' ' || coalesce(content_share, 0), ', ' order by id) from catchword.audit where collection = 'note'";
    eventually("all of them are healed", async || {
        upkeep.round(&CancellationToken::new()).await.unwrap();
        world.settle_notes().await;
        let mut healed = world.one::<String>(asked).await == "schedule false 0.5, other content true 0";
        for key in 1..=50 {
            healed &= world.note(key).await == "new";
        }
        healed
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_table_is_sampled_and_not_read_as_a_whole() {
    let world = World::new().await;
    world.sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:a', 'u', 'u' from generate_series(1, 4000); analyze annotation").await;
    world.sql("select catchword.ask_audit('annotation', false, 'schedule')").await;
    let share: f64 = world.one("select content_share from catchword.audit").await;
    assert!((0.2..0.3).contains(&share), "{share}");
    world.sql("update pg_class set reltuples = 1e9 where oid = 'annotation'::regclass; delete from catchword.audit").await;
    world.sql("select catchword.ask_audit('annotation', false, 'schedule')").await;
    assert_eq!(world.one::<f64>("select content_share from catchword.audit").await, 0.01);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_our_mark_is_refused_by_name_in_every_path() {
    let sql = "create table raw (id integer primary key, body json, catchword_revision bigint);
        comment on column raw.catchword_revision is 'catchword: revision';
        create view raw_document as select id as key, catchword_revision as revision, body from raw;";
    let more = NOTE.replace("note", "raw");
    let world = World::with(Layout { sql: sql.into(), more, ..Layout::default() }).await;
    let kept = world
        .catchword
        .store_and_schedule("raw", async |tx: &mut PgConnection| {
            sqlx::query("insert into raw values (1, '{\"text\": \"live\", \"catchword_deleted\": true}')").execute(tx).await?;
            Ok::<_, Error>(Stored::new((), [1]))
        })
        .await
        .unwrap();
    assert!(matches!(&kept.direct, Direct::Left(why) if why.contains("catchword_deleted")), "{:?}", kept.direct);
    world
        .sql(r#"insert into raw values (2, '{"text": "live", "catchword\u005fdeleted": true}'), (3, '{"text": "catchword_deleted"}')"#)
        .await;
    for _ in 0..6 {
        world.sql("update catchword.job set scheduled_at = now() - interval '1 second' where collection = 'raw'").await;
        world.catchword.drain("test", &["raw"]).await.unwrap();
    }
    assert_eq!(
        world.all::<String>("select key || ' ' || reason from catchword.dead_job order by key").await,
        ["1 unbuildable", "2 unbuildable"]
    );
    let error: String = world.one("select last_error from catchword.dead_job limit 1").await;
    assert!(error.contains("a field catchword_deleted, which is catchword's own"), "{error}");
    assert_eq!(world.version("raw", "1").await, None);
    assert!(world.version("raw", "3").await.is_some());
    let (code, said, _) = world.run(&["audit", "raw", "--content"]).await;
    assert!(code == 1 && said.contains("dead      2"), "{said}");
    let (code, said, _) = world.run(&["explain", "raw", "1"]).await;
    assert!(code == 1 && said.contains("catchword_deleted, which is catchword's own"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_role_do_not_change_documents() {
    let text = "concat_ws(' ', interval '30 days 01:02', '\\x0001'::bytea, timestamptz '2026-02-01 12:00+00', date '2026-02-01', 0.1::float8 + 0.2::float8, to_char(1234.5, '9G999D9'), to_char(date '2026-02-01', 'TMMonth'), xmlelement(name a, '\\x00'::bytea))";
    let world = notes("", text, "", true).await;
    world.sql("insert into note (id) values (1)").await;
    world.settle_notes().await;
    let before = world.note(1).await;
    let database: String = world.one("select current_database()::text").await;
    for setting in [
        "IntervalStyle = iso_8601",
        "bytea_output = escape",
        "TimeZone = 'America/New_York'",
        "DateStyle = 'SQL, DMY'",
        "extra_float_digits = 0",
        "xmlbinary = hex",
        "xmloption = document",
    ] {
        world.sql(&format!("alter role current_user in database {database} set {setting}")).await;
    }
    let other = world.another().await;
    world.sql("insert into note (id) values (2), (3)").await;
    assert_eq!(other.index_now("note", [3]).await, Direct::Indexed);
    other.drain("test", &["note"]).await.unwrap();
    assert_eq!((world.note(2).await, world.note(3).await), (before.clone(), before));
    let (code, said, errors) = world.run(&["audit", "note", "--content"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    let (code, said, _) = world.run(&["explain", "note", "1"]).await;
    assert_eq!(code, 0, "{said}");
    world.sql(&format!("alter role current_user in database {database} reset all")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_inside_an_application_does_the_upkeep_too() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let gone = world.in_step("acct:a", "gone").await;
    world.in_step("acct:a", "stays").await;
    world.sql(&format!("delete from annotation where id = '{gone}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert!(world.version("annotation", &gone).await.is_some(), "a tombstone");
    world.sql("update catchword.record set recorded_at = now() - interval '8 days'").await;
    world.sql("update catchword.collection set attached_at = now() - interval '2 days'").await;
    let stop = CancellationToken::new();
    let (worker, token) = (world.catchword.worker("test", &["annotation"]), stop.clone());
    let running = tokio::spawn(async move { worker.run(token).await });
    eventually("a sentinel stands in the index", async || world.version("annotation", "catchword-sentinel").await.is_some()).await;
    eventually("the audit that was due came to its end", async || {
        world.one::<bool>("select exists (select from catchword.audit where reason = 'schedule' and finished_at is not null)").await
    })
    .await;
    eventually("the old tombstone is swept", async || world.version("annotation", &gone).await.is_none()).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    world.both_sides_agree().await;
}
