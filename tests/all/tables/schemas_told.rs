//! What people are told of a collection over many schemas: one that came, one that does not fit, one that is broken.

use catchword::Catchword;

use super::keys::{drained, well};
use super::schemas::{NOTES, agree, filled, noted_and_audited, tenant};
use crate::common::{Layout, World};
use crate::operate::roles::Roles;

impl World {
    /// The exit code of `check`, and its lines about one judgement of the notes.
    async fn checked(&self, name: &str) -> (i32, Vec<String>) {
        let (code, out, _) = self.run(&["check"]).await;
        (code, out.lines().skip(1).filter(|line| line.contains(&format!("{name} note"))).map(str::to_owned).collect())
    }

    fn rewrite_configuration(&self, change: impl Fn(String) -> String) {
        let path = self.folder.join("catchword.toml");
        std::fs::write(&path, change(std::fs::read_to_string(&path).unwrap())).unwrap();
    }
}

/// Rows that were there before, and documents of a schema that went, were left to an audit: no job knows of them, and nothing is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_comes_with_rows_or_goes_with_documents_is_no_drift() {
    const DRIFT: &str = "CatchwordAuditDrift";
    let world = filled(&["tenant_a", "tenant_b"]).await;
    let (well_code, lines) = world.checked(DRIFT).await;
    assert_eq!(lines, [""; 0]);

    world.sql(&tenant("tenant_c")).await;
    world.sql("update tenant_c.note set text = 'hidden' where id = 9").await;
    let (code, lines) = world.checked(DRIFT).await;
    assert!(code == well_code && lines.len() == 1, "{code} {lines:?}");
    let warning = "warning  CatchwordAuditDrift note: schemas: the configuration and the database differ; catchword migrate";
    assert_eq!(lines, [warning]);
    well(&world, &["migrate"]).await;
    let told = well(&world, &["audit", "note"]).await;
    assert!(told.contains("  left      10: of schemas that came or went") && told.ends_with("in step\n"), "{told}");
    assert_eq!(world.checked(DRIFT).await, (well_code, Vec::new()));
    noted_and_audited(&world).await;
    agree(&world, &["tenant_a", "tenant_b", "tenant_c"]).await;
    assert_eq!(world.checked(DRIFT).await, (well_code, Vec::new()));
    assert_eq!(world.found("note").await.len(), 29);

    // from now on what is missing there is missing
    world.http("DELETE", &format!("/{}/_doc/tenant_c%2F1?refresh=true", world.index("note")), None).await;
    let (code, told, _) = world.run(&["audit", "note"]).await;
    assert!(code == 1 && told.contains("  missing   1: "), "{told}");
    well(&world, &["reindex", "note", "--ids", "tenant_c/1", "--rewrite", "--yes"]).await;
    drained(&world).await;

    // what differs for another reason is drift, also beside a schema that went
    world.sql("drop schema tenant_b cascade; set session_replication_role = replica; delete from tenant_a.note where id = 4").await;
    noted_and_audited(&world).await;
    assert_eq!(world.found("note").await.len(), 18);
    let (code, lines) = world.checked(DRIFT).await;
    assert!(code == 1 && lines.len() == 1 && lines[0].contains("the last audit found 1 difference that"), "{code} {lines:?}");
    well(&world, &["audit", "note"]).await;
    assert_eq!(world.checked(DRIFT).await, (well_code, Vec::new()));
}

const NO_KEY: &str = "create table {}.note (text text)";
const NO_VIEW: &str = "create table {}.note (id bigint primary key, author_id bigint, country text)";

fn unfit(schema: &str, table: &str) -> String {
    format!("create schema {schema}; create table {schema}.author (id bigint primary key, name text); {};", table.replace("{}", schema))
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_that_do_not_fit_are_named_one_by_one_and_hold_up_nobody_else() {
    // the first time, and the one that does not fit is the first
    let country = "create table country (code text primary key, name text);".to_owned();
    let sql = country + &unfit("tenant_0", NO_KEY) + &tenant("tenant_a");
    let world = World::with(Layout { sql, more: NOTES.into(), migrated: false, ..Layout::default() }).await;
    let (code, out, err) = world.run(&["migrate"]).await;
    assert!(code == 2 && out.contains("note        table attached"), "{out}{err}");
    assert!(err.contains("collection note: schema tenant_0: tenant_0.note has no column id; "), "{err}");
    assert!(err.contains("1 schema is not attached, and all else is; correct that, then run catchword migrate again"), "{err}");
    well(&world, &["reindex", "note", "--all", "--yes"]).await;
    drained(&world).await;
    agree(&world, &["tenant_a"]).await;

    world.sql(&(unfit("tenant_b", NO_VIEW) + &tenant("tenant_c"))).await;
    let (code, out, err) = world.run(&["migrate"]).await;
    assert!(code == 2 && out.contains("taken in: tenant_c;"), "{out}{err}");
    assert!(err.contains("schema tenant_0: tenant_0.note has no column id; "), "{err}");
    assert!(err.contains("schema tenant_b: the view tenant_b.note_document does not exist; in a migration of your own: "), "{err}");
    assert!(err.contains("2 schemas are not attached"), "{err}");
    noted_and_audited(&world).await;
    agree(&world, &["tenant_a", "tenant_c"]).await;

    // where none fits, nothing is made
    let none = World::with(Layout { sql: unfit("tenant_0", NO_KEY), more: NOTES.into(), migrated: false, ..Layout::default() }).await;
    let (code, out, err) = none.run(&["migrate"]).await;
    assert!(code == 2 && err.contains("tenant_0.note has no column id"), "{out}{err}");
    assert_eq!(none.one::<i64>("select count(*) from catchword.collection where name ~ 'note'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_schemas_that_are_broken_three_are_named() {
    let schemas = ["tenant_a", "tenant_b", "tenant_c", "tenant_d", "tenant_e", "tenant_f"];
    let world = filled(&schemas).await;
    let gone = |schema: &str| format!("schema {schema}: the view {schema}.note_document is gone");
    let three = [gone("tenant_b"), gone("tenant_c"), gone("tenant_d")];
    for (broken, told) in [
        ("tenant_b", three[..1].join("; ")),
        ("tenant_c", three[..2].join("; ")),
        ("tenant_d", three.join("; ")),
        ("tenant_e", format!("{}; and 1 other schema", three.join("; "))),
        ("tenant_f", format!("{}; and 2 other schemas", three.join("; "))),
    ] {
        world.sql(&format!("drop view {broken}.note_document")).await;
        let (_, shown, _) = world.run(&["status"]).await;
        assert!(shown.contains(&format!("{told}\n")), "{told}: {shown}");
    }

    // of a key there, and of a key in a schema that the collection does not have, nothing is known
    let (code, told, _) = world.run(&["explain", "note", "tenant_c/1"]).await;
    assert!(code == 1 && told.contains("tenant_c is not served: the view tenant_c.note_document is gone"), "{told}");
    assert!(!told.contains("the row must be fixed") && told.contains("not known whether it is in step"), "{told}");
    let (code, told, _) = world.run(&["explain", "note", "tenant_x/1"]).await;
    assert!(code == 1 && told.contains("tenant_x is none of note: it does not exist, or catchword migrate has not taken it in"), "{told}");
    assert!(!told.contains("nothing to do"), "{told}");
    well(&world, &["explain", "note", "tenant_a/1"]).await;
}

/// One table, many schemas, and back: what is printed is what it takes.
#[tokio::test(flavor = "multi_thread")]
async fn from_one_table_to_many_schemas_and_back_by_what_migrate_says() {
    let world = filled(&["tenant_a", "tenant_b"]).await;
    for (from, to, says, found) in [
        ("tenant_*", "tenant_a", "collection note is attached to many schemas, tenant_*.note", "1"),
        ("tenant_a", "tenant_*", "collection note is attached to one table", "tenant_a/1"),
    ] {
        world.rewrite_configuration(|text| text.replace(&format!("{from}."), &format!("{to}.")));
        for words in [&["migrate"][..], &["migrate", "--dry-run"]] {
            let (code, _, err) = world.run(words).await;
            assert!(code == 2 && err.contains(says), "{words:?}: {err}");
            let remedy = "run: catchword detach note, catchword migrate, catchword reindex note --all, catchword audit note --repair";
            assert!(err.contains(remedy), "{err}");
        }
        for words in [&["detach", "note", "--yes"][..], &["migrate"], &["reindex", "note", "--all", "--yes"]] {
            well(&world, words).await;
        }
        drained(&world).await;
        world.run(&["audit", "note", "--repair"]).await;
        drained(&world).await;
        let shown = world.found("note").await;
        assert!(shown.contains(&found.to_owned()) && shown.len() == if to == "tenant_a" { 10 } else { 20 }, "{shown:?}");
        well(&world, &["audit", "note"]).await;
    }
    agree(&world, &["tenant_a", "tenant_b"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_a_collection_cannot_be_touched_under_its_own_name() {
    let world = filled(&["tenant_a"]).await;
    assert!(world.one::<bool>("select exists (select from catchword.collection where name = 'note$1')").await);
    assert!(!world.one::<bool>("select catchword.touch_later('note$1', 'author_id', 1)").await);
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where name = 'touch'").await, 0);
    assert!(world.one::<bool>("select catchword.touch_later('note', 'author_id', 1)").await);
    drained(&world).await;
    agree(&world, &["tenant_a"]).await;
    // said to whoever asks by hand
    let mut psql = tokio::process::Command::new("psql");
    psql.args(["--no-psqlrc", "-d", &world.database_url, "-c", "select catchword.touch_later('note$1', 'author_id', 1)"]);
    let told = String::from_utf8(psql.output().await.unwrap().stderr).unwrap();
    assert!(told.contains("note$1 is one schema of the collection note, and nothing was scheduled; name the collection"), "{told}");
}

/// A new tenant, and grants that nobody has run again: the worker may not read it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_rights_on_one_schema_serves_the_others() {
    let country = "create table country (code text primary key, name text);".to_owned();
    let layout = Layout { sql: country + &tenant("tenant_a") + &tenant("tenant_b"), more: NOTES.into(), ..Layout::default() };
    let roles = Roles::prepared_with(layout).await;
    let (world, migrator, worker) = (&roles.world, roles.names.of("migrator"), roles.names.of("worker"));
    let owned = |schema: &str| {
        let tables = format!("alter table {schema}.note owner to {migrator}; alter table {schema}.author owner to {migrator}");
        format!("alter schema {schema} owner to {migrator}; {tables}; alter view {schema}.note_document owner to {migrator};")
    };
    let migrate = async || Catchword::open(roles.config(), &roles.environment("migrator")).unwrap().migrate().await.unwrap();
    world.sql(&format!("alter table country owner to {migrator}; {}{}", owned("tenant_a"), owned("tenant_b"))).await;
    migrate().await;
    roles.grant().await;
    world.sql(&(tenant("tenant_c") + &owned("tenant_c"))).await;
    migrate().await;

    let left = async |schema: &str| {
        let jobs = format!("select count(*) from catchword.job where key like '{schema}/%' and attempts = 0");
        world.one::<i64>(&jobs).await
    };
    let written = async |schema: &str| world.source("note", &format!("{schema}/1")).await.map(|note| note["text"].clone());
    for (schema, text) in [("tenant_c", "new"), ("tenant_b", "revoked")] {
        world
            .sql(&format!("update tenant_a.note set text = '{text}' where id = 1; update {schema}.note set text = '{text}' where id < 4"))
            .await;
        let catchword = roles.worker().await;
        catchword.drain("test", &["note"]).await.unwrap();
        assert_eq!(written("tenant_a").await.unwrap(), format!("{text}, lucy"));
        assert_eq!((left("tenant_a").await, left(schema).await), (0, 3), "they wait, and no attempt is counted");
        let status = catchword.status().await.unwrap();
        let blocked = status.collections.iter().find(|c| c.name == "note").unwrap().blocked.clone().unwrap();
        let why = format!("schema {schema}: the role {worker} may not read {schema}.note and {schema}.note_document");
        assert!(blocked.starts_with(&why) && blocked.contains("run migrations/grants.sql again"), "{blocked}");

        roles.grant().await;
        roles.worker().await.drain("test", &["note"]).await.unwrap();
        assert_eq!((written(schema).await.unwrap(), left(schema).await), (format!("{text}, lucy").into(), 0));
        // and one that was served may lose its rights
        world.sql(&format!("revoke usage on schema tenant_b from {worker}")).await;
    }
}
