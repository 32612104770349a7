//! Attaching again, repairing, changing, detaching.

use std::cell::Cell;
use std::time::Duration;

use catchword::collection::{self, Attached};
use catchword::config::Touch;
use catchword::{Catchword, migrate};

use super::{Session, attached, attached_with, config_of_item, floor, forget, keys};
use crate::common::{Layout, World, eventually};

/// Everything that attaching makes, with the identity of each trigger, function and column.
const MADE: &str = "select md5(string_agg(line, chr(10) order by line)) from (
    select to_jsonb(c)::text as line from catchword.collection c
    union all select to_jsonb(m)::text from catchword._migrations m
    union all select to_jsonb(j)::text from catchword.journal j
    union all select t.oid || t.tgname || t.xmin from pg_trigger t where not tgisinternal
    union all select p.oid || p.proname || p.xmin from pg_proc p where pronamespace = 'catchword'::regnamespace
    union all select attrelid || attname || a.xmin from pg_attribute a where attname = 'catchword_revision') as made";

async fn triggers(world: &World, table: &str) -> Vec<String> {
    let sql = format!("select tgname::text from pg_trigger where tgrelid = '{table}'::regclass and not tgisinternal order by 1");
    world.all(&sql).await
}

async fn refused_by_connect(world: &World) -> String {
    match Catchword::connect(world.catchword.config().clone(), &world.environment).await {
        Ok(_) => panic!("connect refuses nothing"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrating_twice_changes_nothing() {
    let world = World::new().await;
    world.annotate("acct:a", "hello").await;
    let jobs = world.jobs().await;
    let before: String = world.one(MADE).await;

    let (applied, done) = world.catchword.migrate().await.unwrap();

    assert!(applied.is_empty(), "{applied:?}");
    assert!(done.iter().all(|done| done.attached == Attached::Unchanged), "{done:?}");
    assert_eq!(world.one::<String>(MADE).await, before);
    assert_eq!(world.jobs().await, jobs, "the row that was touched for a look left no job");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_is_off_or_gone_is_refused_and_repaired_with_a_new_floor() {
    for (harm, sentence) in [
        ("alter table item disable trigger catchword_item_deleted", "trigger catchword_item_deleted on public.item is disabled"),
        ("alter table item disable trigger all", "is disabled"),
        ("alter table item enable replica trigger catchword_item_inserted", "trigger catchword_item_inserted on public.item is disabled"),
        ("drop trigger zzz_catchword_item_revision on item", "trigger zzz_catchword_item_revision on public.item is missing"),
        ("drop function catchword.item_updated() cascade", "trigger catchword_item_updated on public.item is missing"),
        ("drop trigger catchword_item_1_update on label", "trigger catchword_item_1_update on public.label is missing"),
        (
            "create or replace trigger catchword_item_deleted after delete on item referencing old table as old_rows for each statement execute function catchword.item_updated()",
            "trigger catchword_item_deleted on public.item is not the one that catchword made",
        ),
        (
            "drop trigger catchword_item_inserted on item;
             create trigger catchword_item_inserted after update on item referencing new table as new_rows for each statement execute function catchword.item_inserted()",
            "trigger catchword_item_inserted on public.item is not the one that catchword made",
        ),
        (
            "create or replace trigger zzz_catchword_item_revision before insert or update of text on item for each row execute function catchword.item_revision()",
            "trigger zzz_catchword_item_revision on public.item is not the one that catchword made",
        ),
        (
            "create or replace trigger zzz_catchword_item_revision before insert or update on item for each row when (new.id > 5) execute function catchword.item_revision()",
            "trigger zzz_catchword_item_revision on public.item is not the one that catchword made",
        ),
    ] {
        let world = attached_with("touches = [{ table = \"label\", column = \"name\", row_column = \"label\" }]").await;
        world.sql("insert into item (id) values (1)").await;
        let before = floor(&world).await;
        world.sql(harm).await;

        let refusal = refused_by_connect(&world).await;
        assert!(refusal.contains(sentence), "{harm}: {refusal}");
        assert!(refusal.contains("run: catchword migrate"), "{refusal}");

        let done = collection::attach(&world.pool, &config_of_item(&world)).await.unwrap();
        assert_eq!(done, Attached::Stale("repaired".into()), "{harm}");
        assert!(floor(&world).await > before, "nobody knows what changed meanwhile: {harm}");
        Catchword::connect(world.catchword.config().clone(), &world.environment).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_renamed_or_retyped_is_noticed_and_attached_again() {
    let world = attached().await;
    world.sql("insert into item (id) values (1)").await;
    world.sql("alter table item rename column id to number").await;
    assert!(sqlx::query("insert into item (number) values (2)").execute(&world.pool).await.is_err(), "the application's writes fail");
    let refusal = refused_by_connect(&world).await;
    let sentence = "the key public.item.id is missing, and writes fail; correct key = \"…\"; run: catchword migrate";
    assert!(refusal.contains(sentence), "{refusal}");
    let (code, out, _) = world.run(&["status"]).await;
    assert_eq!(code, 1);
    assert!(out.contains(sentence), "{out}");

    let mut config = config_of_item(&world);
    let error = collection::attach(&world.pool, &config).await.unwrap_err().to_string();
    assert!(error.contains("has no column id"), "{error}");
    config.key = vec!["number".into()];
    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Stale("repaired".into()));
    world.sql("insert into item (number) values (2)").await;
    let refusal = refused_by_connect(&world).await;
    let sentence = "the configuration says key = id, and the collection was attached with number; run: catchword migrate";
    assert!(refusal.contains(sentence), "{refusal}");

    world.sql("drop view item_document; alter table item alter number type integer").await;
    world.sql("create view item_document as select number as key, catchword_revision as revision, json_build_object('text', text) as body from item").await;
    let refusal = refused_by_connect(&world).await;
    assert!(refusal.contains("the key public.item.number is of type integer now, and was bigint"), "{refusal}");
    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Stale("repaired".into()));
    let mut connection = world.pool.acquire().await.unwrap();
    assert_eq!(collection::problems(&mut connection, &config).await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_not_the_attached_one_is_noticed() {
    let world = attached().await;
    let mut connection = world.pool.acquire().await.unwrap();
    let mut config = config_of_item(&world);
    world.sql("create view other_document as select * from item_document").await;
    config.view = "other_document".into();
    let problem = "the configuration says view = other_document, and the collection was attached with public.item_document";
    assert_eq!(collection::problems(&mut connection, &config).await.unwrap(), [problem]);
    assert!(matches!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Stale(_)));
    assert_eq!(collection::problems(&mut connection, &config).await.unwrap(), Vec::<String>::new());

    world.sql("drop view other_document; create view other_document as select id::text as key, catchword_revision as revision, null::json as body from item").await;
    let problem = "the view public.other_document does not return (key bigint, revision bigint, body)";
    assert_eq!(collection::problems(&mut connection, &config).await.unwrap(), [problem]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_was_dropped_is_made_again() {
    let world = attached().await;
    world.sql("insert into item (id) values (1)").await;
    let before = floor(&world).await;
    world.sql("drop view item_document").await;
    assert!(refused_by_connect(&world).await.contains("the view public.item_document of collection item is gone"));
    world
        .sql(
            "alter table item drop column catchword_revision;
             create view item_document as select id as key, 1::bigint as revision, json_build_object('text', text) as body from item",
        )
        .await;
    let refusal = refused_by_connect(&world).await;
    assert!(refusal.contains("the column public.item.catchword_revision is missing; run: catchword migrate"), "{refusal}");
    let refusal = collection::attach(&world.pool, &config_of_item(&world)).await.unwrap_err().to_string();
    assert!(refusal.contains("revision in the view item_document is not the column catchword_revision"), "{refusal}");

    // as an operator does it in psql, where the view is not looked at
    let done: String = world.one("select catchword.attach('item', 'item', '{id}', 'item_document')").await;
    assert_eq!(done, "repaired");
    assert!(floor(&world).await > before);
    world.sql("insert into item (id) values (2)").await;
    assert!(super::number(&world, 2).await > before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_trigger_that_fires_after_ours_is_refused() {
    let world = attached().await;
    world
        .sql(
            "create function later() returns trigger language plpgsql as $$ begin return new; end $$;
             create trigger zzzz_later before update on item for each row execute function later()",
        )
        .await;
    let refusal = refused_by_connect(&world).await;
    assert!(refusal.contains("trigger zzzz_later on public.item fires after zzz_catchword_item_revision"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_delay_replaces_the_triggers_and_keeps_the_floor() {
    let world = attached().await;
    let before = floor(&world).await;
    let mut config = config_of_item(&world);
    config.delay = Some(Duration::from_secs(5));

    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Changed);

    assert_eq!(floor(&world).await, before);
    world.sql("insert into item (id) values (1)").await;
    let waits: i64 = world.one("select extract(epoch from scheduled_at - enqueued_at)::bigint from catchword.job").await;
    assert_eq!(waits, 5);
    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Unchanged);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_columns_to_watch_raise_the_floor_and_a_related_table_more_asks_for_a_reindex() {
    let world = attached().await;
    let mut config = config_of_item(&world);
    let mut last = floor(&world).await;
    let label = Touch { table: "label".into(), column: vec!["name".into()], row_column: vec!["label".into()], ..Touch::default() };

    config.watch = vec!["text".into()];
    let done = collection::attach(&world.pool, &config).await.unwrap();
    assert_eq!(done, Attached::Stale("attached again".into()));
    assert!(floor(&world).await > last);
    last = floor(&world).await;

    config.touches = vec![label];
    let done = collection::attach(&world.pool, &config).await.unwrap();
    assert_eq!(done, Attached::Changed, "nothing is stale yet");
    assert_eq!(floor(&world).await, last);
    let filled = "select filled_view is not null from catchword.collection where name = 'item'";
    assert!(!world.one::<bool>(filled).await, "its earlier changes left no touch: status asks for a reindex");
    assert_eq!(triggers(&world, "label").await.len(), 4);
    // what was scheduled without a new number wrote nothing again
    world.sql("select catchword.reindex('item')").await;
    assert!(!world.one::<bool>(filled).await);
    world.sql("select catchword.reindex('item', p_rewrite => true)").await;
    assert!(world.one::<bool>(filled).await);
    assert!(floor(&world).await > last);
    last = floor(&world).await;
    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Unchanged);
    assert!(world.one::<bool>(filled).await);
    forget(&world).await;

    config.touches.clear();
    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Changed);
    assert_eq!(floor(&world).await, last, "one less leaves nothing stale");
    assert_eq!(triggers(&world, "label").await, [""; 0]);
    world.sql("insert into label (name) values ('red')").await;
    assert_eq!(keys(&world).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn detaching_undoes_attaching_and_attaching_again_works() {
    let world = attached_with("touches = [{ table = \"label\", column = \"name\", row_column = \"label\" }]").await;
    world.sql("insert into item (id) values (1), (2); delete from item where id = 2; insert into label values ('red')").await;

    let said = collection::detach(&world.pool, "item").await.unwrap();
    assert!(said.contains("detached") && said.contains("item.catchword_revision stays, because a view uses it"), "{said}");
    assert_eq!((triggers(&world, "item").await.len(), triggers(&world, "label").await.len()), (0, 0));
    let left: i64 = world
        .one("select (select count(*) from catchword.job where collection = 'item') + (select count(*) from catchword.record where collection = 'item')
              + (select count(*) from catchword.collection where name = 'item') + (select count(*) from pg_proc where pronamespace = 'catchword'::regnamespace and proname like 'item%')")
        .await;
    assert_eq!(left, 0);
    world.sql("insert into item (id) values (3); delete from item where id = 1; truncate label").await;
    assert_eq!(keys(&world).await, [""; 0]);
    assert!(refused_by_connect(&world).await.contains("collection item is not attached; run: catchword migrate"));
    assert_eq!(collection::detach(&world.pool, "item").await.unwrap(), "not attached");

    let again = collection::attach(&world.pool, &config_of_item(&world)).await.unwrap();
    assert_eq!(again, Attached::Stale("attached".into()));
    world.sql("insert into item (id) values (4)").await;
    assert_eq!(keys(&world).await, ["4"]);
    assert!(floor(&world).await > 2);
    let others: i64 = world.one("select count(*) from catchword.collection").await;
    assert_eq!(others, 3, "the other collections were left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn detaching_drops_a_column_that_nothing_uses() {
    let world = attached().await;
    world.sql("drop view item_document").await;
    assert_eq!(collection::detach(&world.pool, "item").await.unwrap(), "detached");
    let columns: Vec<String> = world
        .all("select attname::text from pg_attribute where attrelid = 'item'::regclass and attnum > 0 and not attisdropped order by attnum")
        .await;
    assert_eq!(columns, ["id", "text", "label"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_was_dropped_is_said_to_be_gone_and_can_be_detached() {
    let world = attached().await;
    world.sql("drop table item cascade").await;
    let refusal = refused_by_connect(&world).await;
    assert!(refusal.contains("run: catchword detach item"), "{refusal}");
    assert_eq!(collection::detach(&world.pool, "item").await.unwrap(), "detached; its table was gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_was_made_again_under_its_name_is_attached_again() {
    let world = attached().await;
    let before = floor(&world).await;
    world.sql("drop table item cascade").await;
    world.sql(&super::item("item", "uuid")).await;
    let done = collection::attach(&world.pool, &config_of_item(&world)).await.unwrap();
    assert_eq!(done, Attached::Stale("repaired".into()));
    assert!(floor(&world).await > before);
    assert_eq!(world.one::<String>("select key_types[1] from catchword.collection where name = 'item'").await, "uuid");
    world.sql("insert into item (id) values (gen_random_uuid())").await;
    assert_eq!(keys(&world).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_migrates_at_once_make_one_attachment() {
    let world = World::with(Layout { migrated: false, ..Layout::default() }).await;
    let another = Catchword::open(world.catchword.config().clone(), &world.environment).unwrap();

    let (first, second) = tokio::join!(world.catchword.migrate(), another.migrate());

    let done = [first.unwrap().1, second.unwrap().1].concat();
    for name in ["annotation", "bystander"] {
        let mut how: Vec<&Attached> = done.iter().filter(|d| d.collection == name).map(|d| &d.attached).collect();
        how.sort_by_key(|attached| **attached == Attached::Unchanged);
        assert_eq!(how, [&Attached::Stale("attached".into()), &Attached::Unchanged]);
    }
    assert_eq!(world.one::<i64>("select count(*) from catchword._migrations").await as usize, migrations());
    Catchword::connect(world.catchword.config().clone(), &world.environment).await.unwrap();
}

fn migrations() -> usize {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations")).unwrap();
    files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with('0')).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migrate_gives_way_while_a_long_transaction_holds_the_table() {
    let world = attached().await;
    let mut holder = Session::open(&world).await;
    holder.sql("begin; insert into item (id) values (1)").await;
    let mut config = config_of_item(&world);
    config.delay = Some(Duration::from_secs(5));
    let released = Cell::new(false);

    let traffic = async {
        let waits = "select exists (select from pg_stat_activity where datname = current_database() and application_name = 'catchword' and wait_event_type = 'Lock')";
        eventually("attach waits for the table", async || world.one(waits).await).await;
        // writers one after another, each let through within the two seconds that attach waits
        let mut writer = Session::open(&world).await;
        for id in 2..=4 {
            writer.sql(&format!("set statement_timeout = '2900ms'; insert into item (id) values ({id})")).await;
        }
        assert_eq!(keys(&world).await, ["2", "3", "4"], "with the triggers that were there");
        released.set(true);
        holder.sql("commit").await;
    };
    let attaching = async {
        let attached = collection::attach(world.catchword.pool(), &config).await.unwrap();
        assert!(released.get(), "it tries until the table is free");
        attached
    };
    let (done, ()) = tokio::join!(attaching, traffic);

    assert_eq!(done, Attached::Changed);
    assert_eq!(keys(&world).await, ["1", "2", "3", "4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_prints_the_statements_and_changes_nothing() {
    let world = World::with(Layout { migrated: false, ..Layout::default() }).await;
    let (code, printed, said) = world.run(&["migrate", "--dry-run"]).await;
    assert_eq!(code, 0, "{said}");
    for part in ["create table catchword.job", "create or replace trigger zzz_catchword_annotation_revision", "annotation-000001"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(world.one::<bool>("select to_regnamespace('catchword') is null").await);
    assert_eq!(triggers(&world, "annotation").await, [""; 0]);
    let mut connection = world.pool.acquire().await.unwrap();
    assert!(!migrate::pending(&mut connection).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_prints_just_what_attaching_ran() {
    let touches = "touches = [{ table = \"label\", column = \"name\", row_column = \"label\", watch = [\"colour\"] }]";
    let world = attached_with(&format!("watch = [\"text\", \"label\"]\n{touches}")).await;
    let config = config_of_item(&world);
    let ran = async || {
        let mut connection = world.pool.acquire().await.unwrap();
        let printed = collection::attach_statements(&mut connection, &config).await.unwrap().join(";");
        let ran = sqlx::query_scalar("select definition = md5($1) from catchword.collection where name = 'item'").bind(printed);
        ran.fetch_one(&mut *connection).await.unwrap()
    };
    let inserts_are_seen =
        "select exists (select from pg_trigger where tgrelid = 'label'::regclass and tgtype & 4 = 4 and not tgisinternal)";
    assert!(ran().await && world.one::<bool>(inserts_are_seen).await);
    // under a foreign key an insert of the related table concerns nobody, and pays for nothing
    world.sql("alter table item add foreign key (label) references label (name)").await;
    assert!(!ran().await);
    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Changed);
    assert!(ran().await && !world.one::<bool>(inserts_are_seen).await);
    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Unchanged, "nothing is missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_view_makes_everything_stale_because_its_documents_are_others() {
    let world = attached().await;
    world
        .sql("create view item_short as select id as key, catchword_revision as revision, json_build_object('text', left(text, 9)) as body from item")
        .await;
    let mut config = config_of_item(&world);
    let floor = "select floor from catchword.collection where name = 'item'";
    let before: i64 = world.one(floor).await;
    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Unchanged);
    assert_eq!(world.one::<i64>(floor).await, before);

    config.view = "item_short".into();
    let done = collection::attach(&world.pool, &config).await.unwrap();
    assert_eq!(done, Attached::Stale("attached again".into()));
    assert!(world.one::<i64>(floor).await > before);
    assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Unchanged);
}

/// A migration that was undone took the column. Writes fail then, and detaching ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_whose_revision_was_dropped_can_be_detached() {
    let world = attached().await;
    world.sql("drop view item_document; alter table item drop column catchword_revision").await;
    assert!(sqlx::query("insert into item (id) values (1)").execute(&world.pool).await.is_err());
    let said = collection::detach(&world.pool, "item").await.unwrap();
    assert_eq!(said, "detached");
    world.sql("insert into item (id) values (1)").await;
}

/// What `pg_dump --schema-only` leaves behind: all tables, and nothing in them.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_from_a_dump_without_rows_is_refused_with_what_to_do() {
    let world = attached().await;
    world.sql("delete from catchword._migrations").await;
    let error = migrate::apply(&world.pool).await.unwrap_err().to_string();
    assert!(error.contains("from a dump without rows") && error.contains("drop schema catchword cascade"), "{error}");
}
