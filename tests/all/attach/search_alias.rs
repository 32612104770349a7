//! One alias over several collections: it finds the documents of each once, follows rebuilds, and goes when nobody names it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::common::{Layout, Traffic, World, eventually, start};

const NOTE: &str = r#"
[[collection]]
name = "note"
table = "note"
key = "id"
view = "note_document"
mapping = "bystander.json"
search_alias = "everything"
delay = "0s"
"#;

const NOTE_SQL: &str = "
create table note (id bigint primary key, text text, catchword_revision bigint);
comment on column note.catchword_revision is 'catchword: revision';
create view note_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from note;
";

const ANNOTATION: &str = "delay = \"0s\"\nsearch_alias = \"everything\"";

fn layout() -> Layout {
    Layout { annotation: ANNOTATION, more: NOTE.into(), sql: NOTE_SQL.into(), ..Layout::default() }
}

impl World {
    /// What readers find under the search alias, after a refresh. Nothing may be found twice.
    async fn found_in_everything(&self) -> BTreeSet<String> {
        self.http("POST", &format!("/{}/_refresh", self.alias("everything")), None).await;
        self.search_everything().await
    }

    async fn search_everything(&self) -> BTreeSet<String> {
        let query = json!({ "size": 10_000, "_source": false, "sort": ["_doc"], "track_total_hits": true });
        let (status, answer) = self.http("POST", &format!("/{}/_search", self.alias("everything")), Some(query)).await;
        assert_eq!(status, 200, "{answer}");
        let hits = answer["hits"]["hits"].as_array().unwrap();
        assert_eq!(answer["hits"]["total"]["value"].as_u64(), Some(hits.len() as u64), "more than one page");
        let ids: BTreeSet<String> = hits.iter().map(|hit| hit["_id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids.len(), hits.len(), "a document is found twice");
        ids
    }

    /// The indices that an alias leads to, without the prefix.
    async fn behind(&self, alias: &str) -> Vec<String> {
        let (status, found) = self.http("GET", &format!("/_alias/{}", self.alias(alias)), None).await;
        let indices = found.as_object().filter(|_| status == 200).cloned().unwrap_or_default();
        indices.keys().map(|index| index.trim_start_matches(&self.prefix).to_owned()).collect()
    }

    /// Changes the configuration's file.
    fn reconfigure(&self, from: &str, to: &str) {
        let path = self.folder.join("catchword.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_alias_finds_the_documents_of_all_its_collections_and_no_tombstone() {
    let world = World::with(layout()).await;
    world.sql("insert into note values (1, 'one'), (2, 'two')").await;
    let (kept, deleted) = (world.in_step("acct:a", "kept").await, world.in_step("acct:a", "deleted").await);
    world.sql(&format!("delete from note where id = 2; delete from annotation where id = '{deleted}'")).await;
    world.catchword.drain("test", &["annotation", "note"]).await.unwrap();
    assert_eq!(world.version("note", "2").await.map(|version| version % 2), Some(1), "a tombstone is there");
    assert_eq!(world.found_in_everything().await, BTreeSet::from(["1".to_owned(), kept]), "and the bystander is not in it");
    assert_eq!(world.behind("everything").await, ["annotation-000001", "note-000001"]);
    let (code, said, errors) = world.run(&["doctor", "--all"]).await;
    assert!(code < 2 && said.contains(&format!("it is found under {}", world.alias("everything"))), "{said}{errors}");
    let said = world.migrated().await;
    assert!(!said.contains("everything"), "repeating it changes nothing: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_alias_follows_a_rebuild_and_nothing_is_missing_or_twice() {
    let world = Arc::new(World::with(layout()).await);
    world.sql("insert into note select n, 'note' from generate_series(1, 50) as n").await;
    world
        .sql(
            "insert into annotation (userid, text, target_uri, target_uri_normalized)
             select 'acct:fixed', 'fixed', 'u', 'u' from generate_series(1, 300)",
        )
        .await;
    let deleted = world.in_step("acct:b", "deleted").await;
    world.sql(&format!("delete from annotation where id = '{deleted}'")).await;
    world.catchword.drain("test", &["annotation", "note"]).await.unwrap();
    let fixed: Vec<String> =
        world.all("select id::text from annotation where userid = 'acct:fixed' union all select id::text from note").await;
    let fixed: BTreeSet<String> = fixed.into_iter().collect();
    assert!(world.found_in_everything().await.is_superset(&fixed));

    let (over, traffic) = (CancellationToken::new(), Traffic::steady(&world));
    let searching = tokio::spawn({
        let (world, over, fixed) = (world.clone(), over.clone(), fixed.clone());
        async move {
            let mut searches = 0;
            while !over.is_cancelled() {
                let now = world.search_everything().await;
                let missing: Vec<&String> = fixed.difference(&now).collect();
                assert!(missing.is_empty(), "{} are missing: {missing:?}", missing.len());
                assert!(!now.contains(&deleted), "a tombstone is found");
                searches += 1;
            }
            searches
        }
    });
    for (words, index) in [
        (&["rebuild", "annotation"][..], "annotation-000002"),
        (&["rebuild", "annotation", "--back"], "annotation-000001"),
        (&["rebuild", "annotation", "--back"], "annotation-000002"),
        (&["rebuild", "annotation", "--drop", "--yes"], "annotation-000002"),
    ] {
        let (code, said, errors) = world.run(words).await;
        assert_eq!(code, 0, "{said}{errors}");
        assert_eq!(world.behind("everything").await, [index, "note-000001"], "after {words:?}");
        assert_eq!(world.behind("annotation").await, [index], "after {words:?}");
    }
    traffic.end().await;
    over.cancel();
    assert!(searching.await.unwrap() > 10);
    world.settle_and_compare().await;
    let rows: Vec<String> = world.all("select id::text from annotation union all select id::text from note").await;
    assert_eq!(world.found_in_everything().await, rows.into_iter().collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_alias_is_added_changed_and_removed_by_migrate() {
    let world = World::with(Layout { annotation: "delay = \"0s\"", ..layout() }).await;
    let key = world.in_step("acct:a", "x").await;
    world.sql("insert into note values (1, 'one')").await;
    world.catchword.drain("test", &["note"]).await.unwrap();
    assert_eq!(world.behind("everything").await, ["note-000001"]);

    world.reconfigure("name = \"annotation\"", "name = \"annotation\"\nsearch_alias = \"everything\"");
    let (_, said, _) = world.run(&["status"]).await;
    assert!(said.contains("search_alias: the configuration and the database differ; run: catchword migrate"), "{said}");
    let said = world.migrated().await;
    assert!(said.contains(&format!("found under the search alias {}", world.alias("everything"))), "{said}");
    assert_eq!(world.found_in_everything().await, BTreeSet::from(["1".to_owned(), key.clone()]));

    // as if somebody had made an alias of their own: it is not catchword's to take off
    world.aliases(json!([{ "add": { "index": world.index("annotation"), "alias": world.alias("theirs") } }])).await;
    world.reconfigure("search_alias = \"everything\"", "search_alias = \"all\"");
    world.migrated().await;
    assert_eq!(world.behind("all").await, ["annotation-000001", "note-000001"]);
    assert!(world.behind("everything").await.is_empty());

    world.reconfigure("name = \"annotation\"\nsearch_alias = \"all\"", "name = \"annotation\"");
    let said = world.migrated().await;
    assert!(said.contains(&format!("search alias {} taken off index {}", world.alias("all"), world.index("annotation"))), "{said}");
    assert_eq!(world.behind("all").await, ["note-000001"]);
    assert_eq!(world.behind("theirs").await, ["annotation-000001"]);
    assert_eq!(world.found("annotation").await, [key], "its own readers notice nothing");

    let (code, said, errors) = world.run(&["detach", "note", "--yes"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    assert!(world.behind("all").await.is_empty());
    assert_eq!(world.behind("note").await, ["note-000001"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_alias_that_is_lost_is_told_and_put_back_and_holds_nothing_up() {
    let world = World::with(Layout { tick: "* * * * * *", ..layout() }).await;
    let (index, alias) = (world.index("note"), world.alias("everything"));
    let worker = start(&world).await;
    let lost = format!("index {index} is not found under the search alias {alias}; run `catchword migrate`");
    let bare = format!("the alias {alias} shows deleted documents, its filter is missing on index {index}; run `catchword migrate`");
    for (rounds, (harm, told)) in
        [(json!({ "remove": { "index": index, "alias": alias } }), lost), (json!({ "add": { "index": index, "alias": alias } }), bare)]
            .into_iter()
            .enumerate()
    {
        world.aliases(json!([harm])).await;
        let (code, said, errors) = world.run(&["check"]).await;
        assert!(code == 1 && said.contains(&format!("CatchwordAuditDrift note: {told}")), "exits {code}: {said}{errors}");
        assert!(!said.contains("CatchwordCollectionBlocked"), "it is served: {said}");
        let (code, said, errors) = world.run(&["doctor"]).await;
        assert!(code == 1 && said.contains(told.split(';').next().unwrap()), "{said}{errors}");
        eventually("the worker tells it", async || worker.lines().iter().any(|line| line.contains(&told))).await;
        let (code, said, _) = world.run(&["status"]).await;
        assert!(code == 1 && said.contains(&told) && !said.contains("blocked"), "{said}");
        assert_eq!(worker.get(&world, "/readyz").await.0, 200, "it is worked on");
        world
            .sql("insert into note values (7, 'written meanwhile') on conflict (id) do update set text = excluded.text || note.text")
            .await;
        eventually("the worker works on it all the same", async || {
            world.one::<i64>("select count(*) from catchword.job where collection = 'note'").await == 0
        })
        .await;
        assert_eq!(world.found("note").await, ["7"]);
        let said = world.migrated().await;
        assert!(said.contains(&format!("found under the search alias {alias}")), "{said}");
        assert_eq!(world.found_in_everything().await, BTreeSet::from(["7".to_owned()]));
        let ended = || worker.lines().iter().filter(|line| line.contains("it is found under its search alias")).count();
        eventually("the worker tells that it is over", async || ended() == rounds + 1).await;
    }
    // a second index of the collection would show documents twice; one of somebody else's would show theirs
    let old = format!("{}note-000009", world.prefix);
    let (_, mark) = world.http("GET", &format!("/{index}/_mapping"), None).await;
    let (status, _) = world.http("PUT", &format!("/{old}"), Some(json!({ "mappings": mark[&index]["mappings"] }))).await;
    assert_eq!(status, 200);
    world.aliases(json!([{ "add": { "index": old, "alias": alias } }])).await;
    let (code, said, _) = world.run(&["check"]).await;
    assert!(
        code == 1 && said.contains(&format!("the search alias {alias} leads to {old}, and the collection is read from {index}")),
        "{said}"
    );
    world.migrated().await;
    assert_eq!(world.behind("everything").await, ["annotation-000001", "note-000001"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_alias_that_is_somebody_elses_is_refused_and_nothing_is_made() {
    let world = World::with(Layout { migrated: false, ..layout() }).await;
    let (alias, theirs) = (world.alias("everything"), format!("{}legacy", world.prefix));
    let refused = async |why: &str| {
        let (code, said, errors) = world.run(&["migrate"]).await;
        assert_eq!(code, 2, "{said}{errors}");
        assert!(errors.contains(&format!("{alias} cannot be a search alias: {why}")) && errors.contains("write another"), "{errors}");
        assert!(!world.one::<bool>("select exists (select from catchword.collection)").await, "a table was attached");
        assert!(world.behind("annotation").await.is_empty() && world.behind("note").await.is_empty(), "an index was made");
    };
    world.http("PUT", &format!("/{alias}"), None).await;
    refused("it is an index").await;
    world.http("DELETE", &format!("/{alias}"), None).await;

    world.http("PUT", &format!("/{theirs}"), None).await;
    world.aliases(json!([{ "add": { "index": theirs, "alias": alias } }])).await;
    refused(&format!("it leads to index {theirs}, which this installation did not make")).await;
    world.aliases(json!([{ "remove": { "index": theirs, "alias": alias } }])).await;
    world.migrated().await;

    // a collection that is detached, and whose readers still use its alias
    world.reconfigure("name = \"note\"", "name = \"note\"\nindex = \"papers\"");
    let (code, said, errors) = world.run(&["detach", "note", "--yes"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    world.reconfigure("search_alias = \"everything\"", "search_alias = \"note\"");
    let (code, _, errors) = world.run(&["migrate"]).await;
    assert!(code == 2 && errors.contains(&format!("it is the readers' alias of index {}", world.index("note"))), "{errors}");
    assert_eq!(world.behind("everything").await, ["annotation-000001"], "nothing was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn detaching_waits_for_elasticsearch_where_a_search_alias_must_be_taken_off() {
    let world = World::with(Layout { gated: true, ..layout() }).await;
    world.gate.as_ref().unwrap().refuse();
    let (code, said, errors) = world.run(&["detach", "note", "--yes"]).await;
    assert!(
        code == 2 && errors.contains("is still found under the search alias") && errors.contains("nothing was changed"),
        "{said}{errors}"
    );
    assert!(world.one::<bool>("select exists (select from catchword.collection where name = 'note')").await);
    let (code, said, errors) = world.run(&["detach", "bystander", "--yes"]).await;
    assert_eq!(code, 0, "one without a search alias needs no elasticsearch: {said}{errors}");
}
