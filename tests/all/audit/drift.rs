//! A mapping file or a view that changed after the index was filled: noticed, and said what is due.

use serde_json::{Value, json};

use crate::common::{Layout, World, eventually, start};

impl World {
    fn change_mapping(&self, change: impl FnOnce(&mut Value)) {
        let path = self.folder.join("annotation.json");
        let mut file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut file);
        std::fs::write(&path, file.to_string()).unwrap();
    }

    async fn due(&self) -> Option<String> {
        let config = self.catchword.config().collection(Some("annotation")).unwrap();
        self.catchword.drift(config).await.unwrap().due()
    }

    /// The mapping of the index that readers see, without what is catchword's own.
    async fn live_mapping(&self) -> Value {
        let index = self.targets("annotation").await.remove(0);
        let (_, found) = self.http("GET", &format!("/{index}/_mapping"), None).await;
        found[&index]["mappings"].clone()
    }

    /// The document's body gets a field more.
    async fn widen_view(&self) {
        self.sql("create or replace view annotation_document as select id as key, catchword_revision as revision, json_build_object('userid', userid, 'lang', 'en') as body from annotation where not deleted").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_are_only_added_are_added_by_migrate_and_then_the_view_may_have_them() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    assert_eq!(world.due().await, None);
    world.change_mapping(|file| {
        file["mappings"]["properties"]["lang"] = json!({ "type": "keyword" });
        file["mappings"]["properties"]["text"]["fields"] = json!({ "raw": { "type": "keyword" } });
        file["mappings"]["properties"]["document"]["properties"]["license"] = json!({ "type": "keyword" });
    });
    assert_eq!(world.due().await.as_deref(), Some("the mapping file has new fields (document.license, lang, text.raw): catchword migrate"));
    let (_, status, _) = world.run(&["status"]).await;
    assert!(status.contains("drift     the mapping file has new fields"), "{status}");

    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{errors}");
    assert!(said.contains("added to the mapping: document.license, lang, text.raw"), "{said}");
    let mapping = world.live_mapping().await;
    assert_eq!(mapping["properties"]["lang"]["type"], "keyword");
    assert_eq!(mapping["properties"]["text"]["fields"]["raw"]["type"], "keyword");
    assert_eq!(mapping["_meta"]["catchword"]["collection"], "annotation", "it is still ours: {mapping}");
    assert_eq!(world.due().await, None);
    let (_, said, _) = world.run(&["migrate"]).await;
    assert!(!said.contains("mapping"), "repeating it changes nothing: {said}");

    world.widen_view().await;
    assert_eq!(
        world.due().await.as_deref(),
        Some("the view or touches changed since the documents were built: catchword reindex annotation --all --rewrite")
    );
    let (_, said, _) = world.run(&["doctor"]).await;
    assert!(said.contains("the view or touches changed since the documents were built"), "{said}");
    // scheduling everything without a new floor writes nothing again
    assert_eq!(world.run(&["reindex", "annotation", "--all", "--yes"]).await.0, 0);
    assert!(world.due().await.is_some());
    assert_eq!(world.run(&["reindex", "annotation", "--all", "--rewrite", "--yes"]).await.0, 0);
    assert_eq!(world.due().await, None);
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.source("annotation", &key).await.unwrap()["lang"], "en");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_index_cannot_take_is_a_rebuilds_and_nothing_of_it_is_done_by_migrate() {
    let world = World::new().await;
    world.in_step("acct:a", "x").await;
    world.change_mapping(|file| {
        file["mappings"]["properties"]["lang"] = json!({ "type": "keyword" });
        file["mappings"]["properties"]["text"] = json!({ "type": "keyword" });
    });
    let before = world.live_mapping().await;
    let due = world.due().await.unwrap();
    assert!(due.contains("text: analyzer is not said, was standard and 1 more") && due.ends_with("catchword rebuild annotation"), "{due}");
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{errors}");
    assert!(said.contains("catchword rebuild annotation"), "{said}");
    assert_eq!(world.live_mapping().await, before, "nothing half done");

    let (code, _, errors) = world.run(&["rebuild", "annotation", "--keep", "0s", "--yes"]).await;
    assert_eq!(code, 0, "{errors}");
    assert_eq!(world.due().await, None);
    assert_eq!(world.live_mapping().await["properties"]["text"]["type"], "keyword");
    assert_eq!(world.live_mapping().await["properties"]["lang"]["type"], "keyword");
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_an_index_can_take_are_reported_and_changed_by_migrate() {
    let world = World::new().await;
    world.in_step("acct:a", "x").await;
    world.change_mapping(|file| {
        file["settings"]["index"]["refresh_interval"] = json!("30s");
        file["settings"]["index.max_result_window"] = json!(20_000);
        file["mappings"]["properties"]["lang"] = json!({ "type": "keyword" });
    });
    let due = world.due().await.unwrap();
    assert!(due.contains("new fields (lang)") && due.ends_with("catchword migrate"), "{due}");
    world.change_mapping(|file| _ = file["mappings"]["properties"].as_object_mut().unwrap().remove("lang"));
    let settings = "setting index.max_result_window is 20000, was not said, setting index.refresh_interval is 30s, was 1s";
    assert_eq!(world.due().await, Some(format!("the mapping file has other settings ({settings}): catchword migrate")));
    let (_, status, _) = world.run(&["status"]).await;
    assert!(status.contains("drift     the mapping file has other settings"), "{status}");

    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{errors}");
    assert!(said.contains("setting index.refresh_interval is 30s, was 1s"), "{said}");
    let index = world.index("annotation");
    let (_, live) = world.http("GET", &format!("/{index}/_settings?flat_settings=true"), None).await;
    let live = &live[&index]["settings"];
    assert_eq!((&live["index.refresh_interval"], &live["index.max_result_window"]), (&json!("30s"), &json!("20000")));
    assert_eq!(world.due().await, None);

    // by hand is no drift, and doctor tells it with what undoes it
    world.http("PUT", &format!("/{index}/_settings"), Some(json!({ "index.refresh_interval": "5s" }))).await;
    assert_eq!(world.due().await, None);
    let (_, said, _) = world.run(&["doctor"]).await;
    assert!(said.contains("index.refresh_interval is 5s, and the file says \"30s\""), "{said}");
    assert!(said.contains(&format!("PUT {index}/_settings {{\"index.refresh_interval\":\"30s\"}}")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_and_a_view_below_the_view_are_part_of_it() {
    let world = World::new().await;
    world.sql("create function label(text) returns text language sql immutable as 'select $1'; create view below as select id, catchword_revision, deleted, label(userid) as userid from annotation").await;
    world.sql("create or replace view annotation_document as select id as key, catchword_revision as revision, json_build_object('userid', userid) as body from below where not deleted").await;
    assert_eq!(world.run(&["reindex", "annotation", "--all", "--rewrite", "--yes"]).await.0, 1, "there is nothing yet");
    world.in_step("acct:a", "x").await;
    assert_eq!(world.run(&["reindex", "annotation", "--all", "--rewrite", "--yes"]).await.0, 0);
    assert_eq!(world.due().await, None);
    for change in [
        "create or replace function label(text) returns text language sql immutable as 'select upper($1)'",
        "create or replace view below as select id, catchword_revision, deleted, label(groupid) as userid from annotation",
    ] {
        world.sql(change).await;
        assert!(world.due().await.unwrap().contains("--rewrite"), "{change}");
        assert_eq!(world.run(&["reindex", "annotation", "--all", "--rewrite", "--yes"]).await.0, 0);
        assert_eq!(world.due().await, None);
    }
}

/// Where the view changed, the new index must not hold other documents under the numbers that the old one has.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_after_a_change_of_the_view_writes_everything_again_to_both() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    let before = world.version("annotation", &key).await;
    world.sql("create or replace view annotation_document as select id as key, catchword_revision as revision, json_build_object('userid', upper(userid)) as body from annotation where not deleted").await;
    let (code, _, errors) = world.run(&["rebuild", "annotation"]).await;
    assert_eq!(code, 0, "{errors}");
    assert!(world.version("annotation", &key).await > before, "the old index has it again too");
    assert_eq!(world.due().await, None);
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_says_what_is_due_and_goes_on() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let key = world.in_step("acct:a", "x").await;
    world.sql("create or replace view annotation_document as select id as key, catchword_revision as revision, json_build_object('userid', userid) as body from annotation where not deleted").await;
    let mut worker = world.binary();
    worker.args(["worker", "--listen", "127.0.0.1:0"]).stderr(std::process::Stdio::piped());
    let mut worker = worker.spawn().unwrap();
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(worker.stderr.take().unwrap()));
    let said = tokio::time::timeout(std::time::Duration::from_secs(120), async {
        loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if line.contains("catchword reindex annotation --all --rewrite") {
                return line;
            }
        }
    });
    said.await.expect("it says so");
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    world.sql(&format!("update annotation set userid = 'acct:b' where id = '{key}'")).await;
    eventually("and goes on", async || world.source("annotation", &key).await.is_some_and(|source| source["userid"] == "acct:b")).await;
    worker.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_changes_and_changes_back_is_remembered() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    world.in_step("acct:a", "x").await;
    let view: String = world.one("select rtrim(pg_get_viewdef('annotation_document'), ';')").await;
    let _worker = start(&world).await;
    world.widen_view().await;
    let forgotten = "select filled_view is null from catchword.collection where name = 'annotation'";
    eventually("a worker noticed", async || world.one::<bool>(forgotten).await).await;
    world.sql(&format!("create or replace view annotation_document as {view}")).await;
    let due = world.due().await.unwrap();
    assert!(due.contains("catchword reindex annotation --all --rewrite"), "{due}");
    let (code, said, errors) = world.run(&["reindex", "annotation", "--all", "--rewrite", "--yes"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    assert_eq!(world.due().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_were_changed_and_not_migrated_are_told_by_doctor_status_and_the_log() {
    let world = World::with(Layout {
        tick: "* * * * * *",
        sql: "create table author (id bigint primary key, name text); create table page (id bigint primary key, author bigint, text text, at timestamptz, catchword_revision bigint);
              comment on column page.catchword_revision is 'catchword';
              create view page_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from page"
            .into(),
        more: "[[collection]]\nname = \"page\"\ntable = \"page\"\nkey = \"id\"\nview = \"page_document\"\nmapping = \"bystander.json\"\n#more\n".into(),
        ..Layout::default()
    })
    .await;
    let file = world.folder.join("catchword.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let (_, words, _) = world.run(&["doctor"]).await;
    assert!(!words.contains("and the database differ"), "{words}");

    for (lines, named, level) in [
        ("delay = \"5m\"", "delay", "warn "),
        ("scopes = { author = \"author\" }", "scopes", "warn "),
        ("period = \"at\"", "period", "warn "),
        ("watch = [\"text\"]", "watch", "FAIL "),
        ("touches = [{ table = \"author\", column = \"id\", row_column = \"author\" }]", "touches", "FAIL "),
    ] {
        std::fs::write(&file, config.replace("#more", lines)).unwrap();
        let says = format!("{named}: the configuration and the database differ");
        let (code, words, _) = world.run(&["status"]).await;
        assert!(code == 1 && words.contains(&format!("  migrate   {says}; run: catchword migrate")), "{words}");
        let (_, words, _) = world.run(&["doctor"]).await;
        let line = words.lines().find(|line| line.contains(&says)).unwrap_or_else(|| panic!("{named}: {words}"));
        assert!(line.trim_start().starts_with(level), "{line}");
    }
    // a worker logs it once, and when it is over
    let others = std::fs::read_to_string(&file).unwrap();
    let migrate = async |text: &str| {
        std::fs::write(&file, text).unwrap();
        let (code, _, err) = world.run(&["migrate"]).await;
        assert_eq!(code, 0, "{err}");
    };
    migrate(&config).await;
    let worker = start(&world).await;
    let logged = async |what: &str| eventually(what, async || worker.lines().iter().filter(|line| line.contains(what)).count() == 1).await;
    migrate(&others).await;
    logged("touches: the configuration and the database differ").await;
    migrate(&config).await;
    logged("the database has what the configuration says").await;
    logged("touches: the configuration and the database differ").await;
    let (_, words, _) = world.run(&["doctor"]).await;
    assert!(!words.contains("and the database differ"), "{words}");
}
