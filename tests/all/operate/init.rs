//! `catchword init`: what it writes passes `migrate` and `doctor` unchanged, and its documents come into step.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::roles::Roles;
use crate::common::{Layout, Truth, World};

/// Tables as other people make them.
const HABITS: &str = include_str!("init/habits.sql");

/// A world without a schema of ours, and an empty folder to write into.
struct Empty {
    world: World,
    folder: PathBuf,
}

async fn empty(sql: &str) -> Empty {
    let world = World::with(Layout { migrated: false, sql: sql.into(), ..Layout::default() }).await;
    let folder = world.folder.join("empty");
    std::fs::create_dir(&folder).unwrap();
    Empty { world, folder }
}

impl Empty {
    /// Runs the binary in the folder, where its configuration is or will be.
    async fn run(&self, words: &[&str]) -> (i32, String, String) {
        let mut binary = self.world.binary();
        let output = binary.env_remove("CATCHWORD_CONFIG").current_dir(&self.folder).args(words).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    async fn well(&self, words: &[&str]) -> String {
        let (code, out, err) = self.run(words).await;
        assert_eq!(code, 0, "{words:?}: {out}{err}");
        out
    }

    /// The files of the folder, by name.
    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.join(file)).unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.join(file), text).unwrap();
    }

    /// Init, apply, migrate, doctor, fill: as the help says, with nothing changed in between.
    async fn all_the_way(&self, tables: &[(&str, &str)]) {
        self.write("catchword.toml", "[worker]\ncanary = false\n");
        for (table, name) in tables {
            self.well(&["init", table, "--write"]).await;
            self.world.sql(&format!("begin; {} commit", self.read(&format!("{name}.sql")))).await;
        }
        let migrated = self.well(&["migrate"]).await;
        assert!(!migrated.contains("warning"), "{migrated}");
        let report: Value = serde_json::from_str(&self.well(&["doctor", "--json"]).await).unwrap();
        let of_ours = |line: &&Value| {
            let group = line["group"].as_str().unwrap();
            // this cluster has one node
            tables.iter().any(|(_, name)| group.starts_with(&format!("{name} "))) && line["level"] != "ok" && line["what"] != "replicas"
        };
        let bad: Vec<&Value> = report["lines"].as_array().unwrap().iter().filter(of_ours).collect();
        assert!(bad.is_empty(), "{bad:#?}");
        assert!(
            report["lines"].as_array().unwrap().iter().any(|line| line["group"].as_str().unwrap().starts_with(tables[0].1)),
            "{report:#}"
        );
        for (_, name) in tables {
            let text = self.read(&format!("{name}.sql"));
            let fill = text.lines().find_map(|line| line.split_once("catchword reindex ")).unwrap().1;
            let words: Vec<&str> = ["reindex"].into_iter().chain(fill.split(' ')).chain(["--yes"]).collect();
            self.well(&words).await;
        }
        self.come_into_step().await;
    }

    async fn come_into_step(&self) {
        self.drain().await;
        let (code, out, err) = self.run(&["audit", "--content"]).await;
        assert_eq!(code, 0, "{out}{err}");
    }

    async fn drain(&self) {
        // a job waits for a direct write, and nobody writes directly here
        self.world.sql("update catchword.job set scheduled_at = now() - interval '1 second'").await;
        self.well(&["sync", "--drain"]).await;
        let open: i64 = self.world.one("select (select count(*) from catchword.job) + (select count(*) from catchword.dead_job)").await;
        assert_eq!(
            open,
            0,
            "{:?}",
            self.world.all::<String>("select collection || ': ' || coalesce(error, reason) from catchword.dead_job").await
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_comes_into_step_with_what_init_writes() {
    let empty = empty("").await;
    empty.world.sql("insert into document (title, web_uri) values ('Tea', 'http://tea/')").await;
    let key = empty.world.annotate("acct:a", "first").await;
    empty.world.sql(&format!("update annotation set document_id = 1, tags = '{{one}}' where id = '{key}'")).await;
    empty.world.sql("insert into bystander values (1, 'hello')").await;
    // the example has a view of its own under the name that comes first
    empty.all_the_way(&[("annotation", "annotation"), ("document", "document"), ("bystander", "bystander")]).await;
    assert!(empty.read("catchword.toml").contains("view = \"annotation_search_document\""));
    let truth = Truth {
        collection: "annotation",
        rows: "select id::text as key, catchword_revision as revision from annotation",
        documents: "select key::text as key, revision, body::json as body from annotation_search_document",
    };
    empty.world.agree_on(truth).await;
    let source = empty.world.source("annotation", &key).await.unwrap();
    assert_eq!((&source["text"], &source["tags"], &source["document"]), (&json!("first"), &json!(["one"]), &json!({ "title": "Tea" })));

    empty.world.sql("update document set title = 'Coffee'").await;
    empty.world.sql(&format!("update annotation set text = 'second' where id = '{key}'")).await;
    empty.come_into_step().await;
    empty.world.agree_on(truth).await;
    let source = empty.world.source("annotation", &key).await.unwrap();
    assert_eq!((&source["text"], &source["document"]), (&json!("second"), &json!({ "title": "Coffee" })));
    empty.world.sql(&format!("update annotation set deleted = true where id = '{key}'")).await;
    empty.come_into_step().await;
    assert_eq!(empty.world.source("annotation", &key).await, Some(json!({ "catchword_deleted": true })), "a soft delete leaves the index");
}

const ORDER: &str = "00000000-0000-4000-8000-000000000001";

#[tokio::test(flavor = "multi_thread")]
async fn tables_with_foreign_habits_come_into_step_with_what_init_writes() {
    let empty = empty(HABITS).await;
    let tables = [
        (r#""My Shop"."Order""#, "order"),
        (r#""My Shop"."Person""#, "person"),
        (r#""My Shop"."orderLine""#, "order_line"),
        (r#""My Shop".tag"#, "tag"),
        (r#""My Shop"."orderTag""#, "order_tag"),
        ("booking", "booking"),
        ("room", "room"),
        ("booking_item", "booking_item"),
        ("reading", "reading"),
        ("wide", "wide"),
    ];
    empty.all_the_way(&tables).await;
    let order = async || empty.world.source("order", ORDER).await.unwrap();
    let source = order().await;
    for (field, value) in [
        ("author", json!("by hand")),
        ("editor", json!({ "displayName": "Otto" })),
        ("Person", json!({ "displayName": "Mina" })),
        ("it's \"so\"", json!("quoted")),
        ("id", json!("x")),
        ("moods", json!(["calm", "it's loud"])),
        ("padded", json!("ab")),
        ("price", json!(9.99)),
        ("ratio", json!("NaN")),
        ("place", json!("10.0.0.1")),
        ("meta", json!(["any", { "json": null }])),
        ("picture_size", json!(1)),
        ("orderNote", json!({ "id": 1, "note": "fragile" })),
        ("tag", json!([{ "id": 1, "name": "blue" }, { "id": 2, "name": "red" }])),
        ("shelf", json!([{ "id": 1, "label": "top" }])),
        ("orderStep", json!([{ "id": 1, "step": "packed" }])),
    ] {
        assert_eq!(source[field], value, "{field}: {source:#}");
    }
    let lines: Vec<&Value> = source["orderLine"].as_array().unwrap().iter().map(|line| &line["product"]).collect();
    assert_eq!(lines, ["tea", "cup"], "one that is removed is not there");
    for absent in ["picture", "rawHash", "doubled", "words", "at", "stray", "order_log", "deletedAt"] {
        assert_eq!(source.get(absent), None, "{absent}");
    }
    let person = empty.world.source("person", "1").await.unwrap();
    assert_eq!(person["displayName"], "Mina");
    assert!(!person.to_string().contains("hunter2") && !person.to_string().contains("example.org"), "{person}");
    assert_eq!(empty.world.source("wide", "1").await.unwrap()["column_210"], "last");
    let booking = empty.world.source("booking", "8/1").await.unwrap();
    assert_eq!((&booking["room"], &booking["booking_item"][0]["what"]), (&json!({ "title": "red room" }), &json!("dog")));
    assert_eq!(booking.get("guest_token"), None);

    // each related table is followed, by each way that leads to it
    for (sql, field, value) in [
        (r#"update "My Shop"."Person" set "displayName" = 'Mina II' where "Id" = 1"#, "/Person/displayName", json!("Mina II")),
        (r#"update "My Shop"."Person" set "displayName" = 'Otto II' where "Id" = 2"#, "/editor/displayName", json!("Otto II")),
        (r#"update "My Shop"."orderLine" set product = 'green tea' where id = 1"#, "/orderLine/0/product", json!("green tea")),
        (r#"update "My Shop"."orderLine" set is_removed = true where id = 1"#, "/orderLine/0/product", json!("cup")),
        (r#"delete from "My Shop"."orderTag" where tag_id = 1"#, "/tag/0/name", json!("red")),
        (r#"update "My Shop".shelf set label = 'bottom'"#, "/shelf/0/label", json!("bottom")),
        (r#"update "My Shop"."orderStep" set step = 'sent'"#, "/orderStep/0/step", json!("sent")),
        (r#"update "My Shop"."orderNote" set note = 'heavy'"#, "/orderNote/note", json!("heavy")),
        (r#"update "My Shop"."Order" set picture = '\x000102' where author = 'by hand'"#, "/picture_size", json!(3)),
    ] {
        empty.world.sql(sql).await;
        empty.drain().await;
        assert_eq!(order().await.pointer(field), Some(&value), "{sql}");
    }
    empty.world.sql(r#"update "My Shop"."Order" set code = 'C3' where author = 'by hand'"#).await;
    empty.drain().await;
    let answer = empty.world.source("order", "00000000-0000-4000-8000-000000000002").await.unwrap();
    assert_eq!(answer["Order"], json!({ "code": "C3" }), "a row of the same table");
    empty.world.sql("update room set title = 'green room' where tenant_id = 8").await;
    empty.come_into_step().await;
    assert_eq!(empty.world.source("booking", "8/1").await.unwrap()["room"]["title"], "green room");
    assert_eq!(empty.world.source("booking", "7/1").await.unwrap()["room"]["title"], "blue room");

    empty.world.sql("update sensor set label = 'cellar'; update reading_2026 set value = 7").await;
    empty.come_into_step().await;
    let reading = empty.world.source("reading", "1/2026-06-01").await.unwrap();
    assert_eq!((&reading["sensor"]["label"], &reading["value"]), (&json!("cellar"), &json!(7.0)), "{reading}");

    // what the documents do not show schedules nothing
    empty
        .world
        .sql(r#"update "My Shop"."Person" set visits = visits + 1, email = 'new'; update "My Shop"."orderLine" set updated_at = now()"#)
        .await;
    let jobs: Vec<String> = empty.world.all("select distinct collection || ' ' || name from catchword.job order by 1").await;
    assert_eq!(jobs, ["order_line index", "person index"], "they show these columns themselves, and nobody else does");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_needs_an_address_only_and_changes_nothing() {
    let empty = empty(HABITS).await;
    let catalog = "select md5(string_agg(c.oid || relname || relnatts, ',' order by c.oid)) from pg_class c";
    let before: String = empty.world.one(catalog).await;
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_catchword"))
        .env_clear()
        .env("DATABASE_URL", &empty.world.database_url)
        .current_dir(&empty.folder)
        .args(["init", r#""My Shop"."Order""#])
        .output()
        .await
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for said in [
        "──── order.sql\n",
        "──── order.json\n",
        "──── catchword.toml\n",
        "-- left out: picture: bytes have no place in a document",
        "-- left out: \"My Shop\".stray: no index begins with orderId",
        "-- left out: \"My Shop\".order_log: looks like it gets ever more rows",
        "the row of \"My Shop\".\"Order\" that parent.order refers to",
        "where t.\"deletedAt\" is null",
        "unwatched = ['\"My Shop\".tag']",
        "nothing was written; add --write",
    ] {
        assert!(out.contains(said), "{said} is not in:\n{out}");
    }
    assert_eq!(empty.files(), [] as [&str; 0]);
    assert_eq!(empty.world.one::<String>(catalog).await, before);
    assert!(!empty.world.one::<bool>("select to_regnamespace('catchword') is not null").await);

    let told: Value = serde_json::from_str(&empty.well(&["init", r#""My Shop"."Person""#, "--json"]).await).unwrap();
    assert_eq!((&told["collection"], &told["key"], &told["written"]), (&json!("person"), &json!(["Id"]), &json!(false)));
    let left_out: Vec<&Value> = told["left_out"].as_array().unwrap().iter().map(|left| &left["what"]).collect();
    for column in ["email", "passwordHash", "api_key"] {
        assert!(left_out.contains(&&json!(column)), "{column}: {told:#}");
    }
    assert_eq!(told["files"]["migration"]["path"], "person.sql");
    assert_eq!(empty.files(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_there_is_overwritten() {
    let empty = empty("").await;
    empty.write("catchword.toml", "# mine\n[worker]\ncanary = false");
    empty.write("document.json", "mine");
    let (code, out, err) = empty.run(&["init", "document", "--write"]).await;
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("document.json is there already, and nothing was written; move it away, or choose another name"), "{err}");
    assert_eq!(empty.files(), ["catchword.toml", "document.json"], "nothing is half done");
    assert_eq!((empty.read("catchword.toml").as_str(), empty.read("document.json").as_str()), ("# mine\n[worker]\ncanary = false", "mine"));

    empty.well(&["init", "document", "--write", "--name", "page", "--view", r#""Page View""#]).await;
    assert_eq!(empty.files(), ["catchword.toml", "document.json", "page.json", "page.sql"]);
    let config = empty.read("catchword.toml");
    assert!(config.starts_with("# mine\n[worker]\ncanary = false\n\n# page:") && config.contains(r#"view = '"Page View"'"#), "{config}");

    // once more, before and after it is applied
    for _ in 0..2 {
        let before: Vec<String> = empty.files().iter().map(|file| empty.read(file)).collect();
        let (code, out, err) = empty.run(&["init", "document", "--write", "--name", "page", "--view", r#""Page View""#]).await;
        assert_eq!(code, 1, "{out}{err}");
        assert!(out.contains("have all of it already; nothing was written"), "{out}");
        assert_eq!(empty.files().iter().map(|file| empty.read(file)).collect::<Vec<_>>(), before);
        empty.world.sql(&format!("drop view if exists \"Page View\"; {}", empty.read("page.sql"))).await;
    }
    // the name is in the configuration, its files are gone
    std::fs::remove_file(empty.folder.join("page.sql")).unwrap();
    std::fs::remove_file(empty.folder.join("page.json")).unwrap();
    let (code, _, err) = empty.run(&["init", "document", "--write", "--name", "page", "--view", "another"]).await;
    assert_eq!(code, 2);
    assert!(err.contains("is the name of an earlier collection too"), "{err}");
    assert_eq!((empty.files(), empty.read("catchword.toml")), (vec!["catchword.toml".to_owned(), "document.json".to_owned()], config));

    // a folder that cannot be written to
    let (code, _, err) = empty.run(&["init", "document", "--write", "--name", "page", "--config", "nowhere/catchword.toml"]).await;
    assert_eq!(code, 2);
    assert!(err.contains("nowhere/page.sql cannot be written"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_cannot_be_attached_is_refused_with_what_to_do() {
    let empty = empty(
        "create table \"Capital\" (id bigint primary key);
         create table keyless (id bigint, name text);
         create table late (id bigint primary key deferrable initially deferred);
         create table timed (at timestamptz primary key);
         create table parent (id bigint primary key); create table child () inherits (parent);
         create unlogged table fleeting (id bigint primary key);
         create table taken (id bigint primary key, catchword_revision bigint);
         create function f() returns trigger language plpgsql as 'begin return new; end';
         create table zeal (id bigint primary key); create trigger zzzz before insert on zeal for each row execute function f();
         create table measured (id bigint, at date, primary key (id, at)) partition by range (at);
         create table measured_2026 partition of measured for values from ('2026-01-01') to ('2027-01-01')",
    )
    .await;
    for (words, said) in [
        (&["nope"][..], "there is no table nope; write it as in SQL"),
        (&["Capital"], "there is no table Capital; did you mean 'public.\"Capital\"'?"),
        (&["annotations"], "did you mean 'public.annotation'?"),
        (&["a.b.c.d"], "a.b.c.d"),
        (&["keyless"], "keyless has no key: no column that is unique and never null; a key is of type uuid, bigint"),
        (&["late"], "the primary key of late (id) cannot name documents"),
        (&["timed"], "the primary key of timed (at) cannot name documents"),
        (&["child"], "child inherits or is inherited from"),
        (&["parent"], "parent inherits or is inherited from"),
        (&["fleeting"], "fleeting is temporary or unlogged"),
        (&["taken"], "taken has a column catchword_revision that catchword did not make; choose another name with --revision"),
        (
            &["zeal"],
            "the trigger zzzz on zeal fires after zzz_catchword_zeal_revision; BEFORE ROW triggers fire in the order of their names",
        ),
        (&["measured_2026"], "measured_2026 is a partition of public.measured; name the whole table: catchword init public.measured"),
        (&["bystander_document"], "bystander_document is not a plain table"),
        (&["pg_catalog.pg_class"], "belongs to Postgres or to catchword"),
        (&["document", "--name", "../x"], "\"../x\" cannot be the name of a collection"),
        (&["document", "--view", "a b"], "a b"),
    ] {
        let mut all = vec!["init"];
        all.extend(words);
        for write in [&[][..], &["--write"]] {
            let (code, out, err) = empty.run(&[&all, write].concat()).await;
            assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
            assert!(err.contains(said), "{words:?}: {err}");
        }
    }
    assert_eq!(empty.files(), [] as [&str; 0]);
    let out = empty.well(&["init", "taken", "--revision", "Order"]).await;
    assert!(out.contains("add column if not exists \"Order\" bigint") && out.contains("revision = '\"Order\"'"), "{out}");
    empty.well(&["init", "measured"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_whose_rows_are_hidden_from_the_role_is_refused_and_row_security_stays_on() {
    let roles = Roles::prepared().await;
    let migrator = roles.names.of("migrator");
    let tables = format!(
        "create table tenant (id bigint primary key, name text); create table room (id bigint primary key, tenant_id bigint references tenant);
         create index on room (tenant_id); alter table tenant owner to {migrator}; alter table room owner to {migrator};
         alter table tenant enable row level security; alter table room enable row level security"
    );
    roles.world.sql(&tables).await;
    let run = async |role: &str| {
        let output = roles.world.binary().env("DATABASE_URL", roles.url(role)).args(["init", "room"]).output().await.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, out, err) = run("migrator").await;
    assert!(code == 0 && out.contains("'tenant', ("), "{out}{err}");
    let (code, out, err) = run("application").await;
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    let said = format!(
        "row security of room applies to the role {}, and a hidden row would look deleted; leave row security on",
        roles.names.of("application")
    );
    assert!(err.contains(&said), "{err}");
    roles.world.sql("alter table room disable row level security").await;
    let (code, out, err) = run("application").await;
    assert!(code == 0 && out.contains("-- left out: tenant: has row security that applies to this role"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_collection_of_a_table_has_a_column_of_its_own() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "twice").await;
    let config = std::fs::read_to_string(world.folder.join("catchword.toml")).unwrap();
    let (code, out, err) = world.run(&["init", "annotation", "--write", "--name", "page_note"]).await;
    assert_eq!(code, 0, "{out}{err}");
    let sql = std::fs::read_to_string(world.folder.join("page_note.sql")).unwrap();
    assert!(!sql.contains("'catchword_revision'"), "catchword's own columns are not in the document: {sql}");
    world.sql(&sql).await;
    for words in [
        &["migrate"][..],
        &["reindex", "page_note", "--all", "--hidden", "--yes"],
        &["sync", "--drain"],
        &["audit", "page_note"],
        &["doctor"],
    ] {
        let (code, out, err) = world.run(words).await;
        assert_eq!(code, 0, "{words:?}: {out}{err}");
    }
    assert_eq!(world.source("page_note", &key).await.unwrap()["text"], "twice");
    let added = std::fs::read_to_string(world.folder.join("catchword.toml")).unwrap();
    assert!(added.starts_with(&config) && added.contains("revision = \"catchword_revision_page_note\""), "{added}");
    world.noise_is_untouched().await;
}
