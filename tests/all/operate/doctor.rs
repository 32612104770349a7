//! `catchword doctor`: each thing that a promise rests on, broken on the real servers and told with what helps.

use serde_json::{Value, json};

use crate::common::World;

impl World {
    /// Exit code, and each line as (group, what, level, sentence and fix).
    async fn doctor(&self) -> (i32, Vec<(String, String, String, String)>) {
        let (code, out, err) = self.run(&["doctor", "--json"]).await;
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
        let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
        let read = |line: &Value| {
            let words = format!("{}; {}", text(line, "says"), text(line, "fix"));
            (text(line, "group"), text(line, "what"), text(line, "level"), words)
        };
        (code, report["lines"].as_array().unwrap().iter().map(read).collect())
    }

    /// Nothing fails, and the warnings are those that are true of a world of tests.
    async fn is_healthy(&self, after: &str) {
        let (code, lines) = self.doctor().await;
        let bad: Vec<_> = lines.iter().filter(|line| line.2 != "ok").collect();
        let known =
            |line: &&&(String, String, String, String)| line.2 == "warn" && ["disk", "not more", "replicas"].contains(&line.1.as_str());
        assert!(code == 0 && bad.iter().all(|line| known(&line)), "{after}: {bad:?}");
    }

    /// Breaks something, sees the line and what it says, fixes it, and sees that all is well.
    async fn sees(&self, make: &str, group: &str, what: &str, level: &str, said: &str, undo: &str) {
        self.does(make).await;
        let (code, lines) = self.doctor().await;
        let found = lines.iter().find(|line| line.0 == group && line.1 == what && line.2 == level);
        let found = found.unwrap_or_else(|| panic!("{make}: {:?}", lines.iter().filter(|line| line.2 != "ok").collect::<Vec<_>>()));
        assert!(found.3.contains(said), "{make}: {found:?}");
        assert_eq!(code, i32::from(level == "fail"), "{make}: {found:?}");
        self.does(undo).await;
        self.is_healthy(undo).await;
    }

    /// SQL, or a request: `PUT path body`.
    async fn does(&self, what: &str) {
        let words: Vec<&str> = what.splitn(3, ' ').collect();
        match words.as_slice() {
            [method @ ("PUT" | "POST"), path, body] => {
                let path = path.replace("ANNOTATION", &self.index("annotation")).replace("BYSTANDER", &self.index("bystander"));
                let body = body.replace("INDEX", &self.index("bystander")).replace("ALIAS", &self.alias("bystander"));
                let (status, answer) = self.http(method, &path, Some(serde_json::from_str(&body).unwrap())).await;
                assert_eq!(status, 200, "{what}: {answer}");
            }
            ["run", command] => assert_eq!(self.run(&[command]).await.0, 0, "{what}"),
            _ => self.sql(what).await,
        }
    }
}

/// A setting of this database, for every session from now on.
fn database(what: &str) -> String {
    format!("do $$ begin execute format('alter database %I {what}', current_database()); end $$")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_in_postgres_is_told_with_what_helps() {
    let world = World::new().await;
    world.in_step("acct:a", "hello").await;
    world.is_healthy("a fresh world").await;

    for (make, group, what, level, said, undo) in [
        (
            "alter table annotation disable trigger catchword_annotation_updated",
            "annotation table",
            "triggers",
            "fail",
            "catchword migrate",
            "alter table annotation enable trigger catchword_annotation_updated",
        ),
        (
            "create function late() returns trigger language plpgsql as 'begin return new; end'; create trigger zzzz before update on annotation for each row execute function late()",
            "annotation table",
            "triggers",
            "fail",
            "sorts before zzz_catchword_",
            "drop trigger zzzz on annotation; drop function late()",
        ),
        (
            "alter table bystander set unlogged",
            "bystander table",
            "plain table",
            "fail",
            "plain table that is logged",
            "alter table bystander set logged",
        ),
        ("create table child () inherits (bystander)", "bystander table", "plain table", "fail", "inherits", "drop table child"),
        (
            "set allow_system_table_mods = on; insert into pg_subscription_rel (srsubid, srrelid, srsubstate) values (1, 'bystander'::regclass, 'r'); reset allow_system_table_mods",
            "bystander table",
            "writers",
            "fail",
            "subscription",
            "set allow_system_table_mods = on; delete from pg_subscription_rel; reset allow_system_table_mods",
        ),
        (
            "set allow_system_table_mods = on; update pg_index set indisvalid = false where indrelid = 'annotation'::regclass and indkey[0] = (select attnum from pg_attribute where attrelid = 'annotation'::regclass and attname = 'userid'); update pg_class set reltuples = 1000000 where oid = 'annotation'::regclass; reset allow_system_table_mods",
            "annotation table",
            "indexes",
            "warn",
            "create index concurrently",
            "set allow_system_table_mods = on; update pg_index set indisvalid = true where indrelid = 'annotation'::regclass; update pg_class set reltuples = 1 where oid = 'annotation'::regclass; reset allow_system_table_mods",
        ),
        (
            "alter table annotation disable trigger zzz_catchword_annotation_revision; update annotation set catchword_revision = 9000000000000000; alter table annotation enable trigger zzz_catchword_annotation_revision",
            "annotation table",
            "revisions",
            "fail",
            "catchword.raise_revision(9000000000000000)",
            "update annotation set catchword_revision = -1",
        ),
        (
            "alter sequence catchword.revision cache 32",
            "schema",
            "sequence",
            "fail",
            "cache 1",
            "alter sequence catchword.revision cache 1",
        ),
        (
            "alter sequence catchword.revision increment 1",
            "schema",
            "sequence",
            "fail",
            "increment 4",
            "alter sequence catchword.revision increment 4; select catchword.raise_revision(last_value) from catchword.revision",
        ),
        (
            "update catchword.installation set last_revision = last_revision + 1000000000",
            "schema",
            "sequence",
            "fail",
            "numbers are given twice",
            "update catchword.installation set last_revision = last_revision - 1000000000",
        ),
        (
            "alter table catchword.job set (autovacuum_enabled = false)",
            "schema",
            "job table",
            "fail",
            "autovacuum_vacuum_scale_factor = 0",
            "alter table catchword.job reset (autovacuum_enabled), set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0)",
        ),
        (
            "alter table catchword.job reset (autovacuum_vacuum_scale_factor)",
            "schema",
            "job table",
            "warn",
            "alter table",
            "alter table catchword.job set (autovacuum_vacuum_scale_factor = 0)",
        ),
        (
            &database("set session_replication_role = replica"),
            "postgres",
            "writes seen",
            "fail",
            "reset session_replication_role",
            &database("reset session_replication_role"),
        ),
        (
            &database("set synchronous_commit = off"),
            "postgres",
            "commits stay",
            "fail",
            "set it to on",
            &database("reset synchronous_commit"),
        ),
        (
            &database("set idle_session_timeout = ''30s''"),
            "postgres",
            "sessions",
            "warn",
            "raise it",
            &database("reset idle_session_timeout"),
        ),
        (
            "insert into catchword.job (collection, key, priority, tag) values ('stranger', '1', 1, 'test')",
            "work",
            "served",
            "warn",
            "catchword detach",
            "delete from catchword.job where tag = 'test'",
        ),
    ] {
        world.sees(make, group, what, level, said, undo).await;
    }
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_does_not_return_what_it_should_is_told() {
    let world = World::new().await;
    let view = |key: &str, revision: &str, body: &str, rest: &str| {
        format!(
            "drop view bystander_document; create view bystander_document as select {key} as key, {revision} as revision, {body} as body from bystander{rest}"
        )
    };
    let well = view("id", "catchword_revision", "json_build_object('text', text)", "");
    for (key, revision, body, rest, what, said) in [
        (
            "id",
            "catchword_revision",
            "json_build_object('text', text)",
            " cross join (values (1), (2)) as twice (n)",
            "unique keys",
            "scalar subselect",
        ),
        ("id", "catchword_revision", "json_build_object('text', 1 / (id - 1))", "", "documents", "dead letters"),
        ("id", "catchword_revision + 2", "json_build_object('text', text)", "", "revision", "the attached table's own revision column"),
        ("id::text", "catchword_revision", "json_build_object('text', text)", "", "shape", "correct the view"),
        ("id", "catchword_revision", "text", "", "shape", "correct the view"),
    ] {
        world.sees(&view(key, revision, body, rest), "bystander view", what, "fail", said, &well).await;
    }

    let slow = view("id", "catchword_revision", "json_build_object('text', slowly(id, text))", "");
    let slowly = "create function slowly(id bigint, text text) returns text language plpgsql stable as
                  $$ begin if id = (select min(b.id) from bystander b) then perform pg_sleep(3.5); end if; return text; end $$";
    world
        .sees(&format!("{slowly}; {slow}"), "bystander view", "time", "warn", "a smaller batch", &format!("{well}; drop function slowly"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_in_elasticsearch_is_told_with_what_helps() {
    let world = World::new().await;
    let remove = r#"POST /_aliases {"actions":[{"remove":{"index":"INDEX","alias":"ALIAS"}}]}"#;
    let unfiltered = r#"POST /_aliases {"actions":[{"add":{"index":"INDEX","alias":"ALIAS"}}]}"#;
    let not_for_writes = r#"POST /_aliases {"actions":[{"add":{"index":"INDEX","alias":"INDEX-write","is_write_index":false}}]}"#;
    for (make, what, said, undo) in [
        (
            r#"PUT /BYSTANDER/_settings {"index.translog.durability":"async"}"#,
            "translog",
            r#""index.translog.durability": "request""#,
            r#"PUT /BYSTANDER/_settings {"index.translog.durability":"request"}"#,
        ),
        (
            r#"PUT /BYSTANDER/_settings {"index.blocks.write":true}"#,
            "writable",
            r#""index.blocks.write": null"#,
            r#"PUT /BYSTANDER/_settings {"index.blocks.write":null}"#,
        ),
        (
            r#"PUT /BYSTANDER/_settings {"index.default_pipeline":"stamp"}"#,
            "pipelines",
            "catchword reindex --all --rewrite",
            r#"PUT /BYSTANDER/_settings {"index.default_pipeline":"_none"}"#,
        ),
        (
            r#"PUT /BYSTANDER/_mapping {"dynamic":true}"#,
            "dynamic",
            r#""dynamic": "strict""#,
            r#"PUT /BYSTANDER/_mapping {"dynamic":"strict"}"#,
        ),
        (remove, "aliases", "run `catchword migrate`", "run migrate"),
        (unfiltered, "aliases", "run `catchword migrate`", "run migrate"),
        (
            not_for_writes,
            "aliases",
            "run `catchword migrate`",
            r#"POST /_aliases {"actions":[{"add":{"index":"INDEX","alias":"INDEX-write","is_write_index":true}}]}"#,
        ),
    ] {
        world.sees(make, "bystander index", what, "fail", said, undo).await;
    }

    // the file knows a field that the index does not, another type, and less than the index
    let file = world.folder.join("bystander.json");
    let before = std::fs::read_to_string(&file).unwrap();
    for (properties, level, said) in [
        (json!({ "text": { "type": "text" }, "title": { "type": "text" } }), "fail", "the index lacks title"),
        (json!({ "text": { "type": "keyword" } }), "fail", "text: type is keyword, was text"),
        (json!({}), "warn", "the index has text, which the file does not"),
    ] {
        std::fs::write(&file, json!({ "mappings": { "dynamic": "strict", "properties": properties } }).to_string()).unwrap();
        let (code, lines) = world.doctor().await;
        let line = lines.iter().find(|line| line.0 == "bystander index" && line.1 == "mapping").unwrap();
        assert!(line.2 == level && line.3.contains(said), "{said}: {line:?}");
        assert_eq!(code, i32::from(level == "fail"), "{line:?}");
    }
    std::fs::write(&file, before).unwrap();
    world.is_healthy("the file as it was").await;
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_looks_at_what_is_there_when_a_server_is_away_or_silent() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    for away in ["refused", "silent"] {
        match away {
            "refused" => gate.refuse(),
            _ => gate.hold("GET /"),
        }
        let (code, lines) = world.doctor().await;
        assert_eq!(code, 2, "{away}: {lines:?}");
        let answers = lines.iter().find(|line| line.0 == "elasticsearch").unwrap();
        assert!(answers.2 == "fail" && answers.3.contains("ELASTICSEARCH_URL"), "{away}: {answers:?}");
        assert!(lines.iter().any(|line| line.0 == "annotation table" && line.2 == "ok"), "postgres is looked at: {lines:?}");
    }
    gate.pass();
    for (away, url) in world.postgres_away().await {
        let output = world.binary().env("DATABASE_URL", &url).args(["doctor", "--all"]).output().await.unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(2), &[][..]), "{away}: {words}");
        assert!(words.starts_with("postgres\n  FAIL  answers ") && words.contains("correct DATABASE_URL"), "{away}: {words}");
        let looked_at = words.contains("Elasticsearch ") || words.contains("OpenSearch ");
        assert!(looked_at && words.trim_end().ends_with("1 to fix"), "{away}: {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_migrate_the_doctor_says_what_to_run() {
    let world = World::with(crate::common::Layout { migrated: false, ..Default::default() }).await;
    let (code, out, _) = world.run(&["doctor"]).await;
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("FAIL  version") && out.contains("do: run: catchword migrate"), "{out}");
    world.run(&["migrate"]).await;
    world.is_healthy("migrated").await;
    world.run(&["detach", "bystander", "--yes"]).await;
    let (code, lines) = world.doctor().await;
    let line = lines.iter().find(|line| line.0 == "bystander table").unwrap();
    assert!(code == 1 && line.2 == "fail" && line.3.contains("run: catchword migrate"), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_somebody_locked_is_told_with_who_did_and_the_rest_is_looked_at() {
    let world = World::new().await;
    world.in_step("acct:a", "x").await;
    // of the attached table nothing can be read; of a related one not what the view shows; and a row cannot be given a number
    for (table, mode) in [("annotation", "access exclusive"), ("document", "access exclusive"), ("annotation", "exclusive")] {
        let mut holder = world.pool.begin().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("lock table {table} in {mode} mode"))).execute(&mut *holder).await.unwrap();
        let (pid, role): (i32, String) =
            sqlx::query_as("select pg_backend_pid(), session_user::text").fetch_one(&mut *holder).await.unwrap();
        let (code, lines) = world.doctor().await;
        let failed: Vec<_> = lines.iter().filter(|line| line.2 == "fail").collect();
        assert!(code == 1 && failed.len() == 1, "{table}: {failed:?}");
        let (group, what, _, said) = failed[0];
        assert_eq!((group.as_str(), what.as_str()), ("annotation table", "locked"));
        assert!(said.contains(&format!("public.{table} by process {pid} of {role} for ")), "{said}");
        for looked in ["schema", "bystander table", "bystander view", "work", "elasticsearch", "annotation index"] {
            assert!(lines.iter().any(|line| line.0 == looked), "{looked} was not looked at: {lines:?}");
        }
        holder.rollback().await.unwrap();
        world.is_healthy("the lock is gone").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ok_comes_first_and_the_long_list_is_for_who_asks() {
    let world = World::new().await;
    world.in_step("acct:a", "x").await;
    world.sql("alter table annotation disable trigger catchword_annotation_updated").await;
    let (code, short, _) = world.run(&["doctor"]).await;
    let (again, long, _) = world.run(&["doctor", "--all"]).await;
    assert_eq!((code, again), (1, 1), "{short}");
    let level = |line: &&str| ["  ok ", "  warn ", "  FAIL "].iter().any(|level| line.starts_with(level));
    assert!(short.lines().filter(level).all(|line| !line.starts_with("  ok ")), "{short}");
    assert!(short.contains("annotation table\n  FAIL  triggers ") && !short.contains("bystander table"), "{short}");
    let counted = short.lines().last().unwrap();
    assert!(counted.ends_with(" to fix; everything that was looked at: catchword doctor --all"), "{counted}");
    // the short one, then what is ok, each below the name of its group
    let not_ok = short.strip_suffix(&format!("{counted}\n")).unwrap();
    let ok = long.strip_prefix(not_ok).unwrap_or_else(|| panic!("{long}"));
    assert!(ok.lines().filter(level).all(|line| line.starts_with("  ok ")), "{long}");
    assert!(ok.contains("\nbystander table\n  ok ") && counted.starts_with(long.lines().last().unwrap()), "{long}");
    assert_eq!(long.lines().filter(level).count(), world.doctor().await.1.len(), "as many as the JSON has");
}
