//! What can happen to a rebuilt index, and what stands in the way of a rebuild and should not.

use serde_json::json;

use super::AT_ONCE;
use crate::common::World;

impl World {
    /// A collection with one document, kept in its second index alone.
    async fn rebuilt_once() -> (World, String) {
        let world = World::new().await;
        let key = world.in_step("acct:a", "x").await;
        world.rebuilt(AT_ONCE).await;
        assert_eq!(world.annotation_indices().await, ["annotation-000002"]);
        (world, key)
    }

    pub async fn aliases(&self, actions: serde_json::Value) {
        let (status, said) = self.http("POST", "/_aliases", Some(json!({ "actions": actions }))).await;
        assert_eq!(status, 200, "{said}");
    }

    pub async fn migrated(&self) -> String {
        let (code, said, errors) = self.run(&["migrate"]).await;
        assert_eq!(code, 0, "{said}{errors}");
        said
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_alias_is_put_back_on_the_rebuilt_index() {
    let (world, key) = World::rebuilt_once().await;
    let (alias, index) = (world.alias("annotation"), format!("{}annotation-000002", world.prefix));
    world.aliases(json!([{ "remove": { "index": index, "alias": alias } }])).await;
    let said = world.migrated().await;
    assert!(said.contains("put back"), "{said}");
    assert_eq!(world.annotation_indices().await, ["annotation-000002"], "no index of the first number is made");
    assert_eq!(world.found("annotation").await, [key]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_that_leads_to_what_nobody_keeps_in_step_is_told_and_moved_back() {
    let (world, key) = World::rebuilt_once().await;
    let (alias, index) = (world.alias("annotation"), format!("{}annotation-000002", world.prefix));
    let stray = format!("{}annotation-000001", world.prefix);
    let (_, made) = world.http("GET", &format!("/{index}"), None).await;
    let filter = made[&index]["aliases"][&alias].clone();
    let body = json!({ "mappings": made[&index]["mappings"], "aliases": { alias.as_str(): filter } });
    assert_eq!(world.http("PUT", &format!("/{stray}"), Some(body)).await.0, 200);
    world.aliases(json!([{ "remove": { "index": index, "alias": alias } }])).await;

    let leads = format!("leads to {stray}, and the collection is kept in {index}");
    let outcome = world.catchword.sync("test", &["annotation"]).await.unwrap();
    assert!(outcome.blocked["annotation"].contains(&leads), "{outcome:?}");
    for command in ["doctor", "check"] {
        let (code, said, _) = world.run(&[command]).await;
        assert!(code == 1 && said.contains(&leads), "{command}: {said}");
    }
    world.migrated().await;
    assert_eq!(world.found("annotation").await, [key]);
    let outcome = world.catchword.sync("test", &["annotation"]).await.unwrap();
    assert!(outcome.blocked.is_empty(), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_index_is_made_again_under_its_own_name() {
    let (world, key) = World::rebuilt_once().await;
    let index = format!("{}annotation-000002", world.prefix);
    assert_eq!(world.http("DELETE", &format!("/{index}"), None).await.0, 200);
    let said = world.migrated().await;
    assert!(said.contains("created") && said.contains("reindex"), "{said}");
    assert_eq!(world.annotation_indices().await, ["annotation-000002"]);
    let (code, said, errors) = world.run(&["reindex", "annotation", "--all", "--yes"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.found("annotation").await, [key]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_of_an_id_that_is_no_key_stops_no_rebuild_and_no_reindex() {
    let world = World::new().await;
    world.in_step("acct:a", "x").await;
    world.put("annotation", "not-a-uuid", 900, json!({ "text": "y" })).await;
    let (code, said, _) = world.run(&["audit", "annotation", "--repair"]).await;
    assert!(code == 1 && said.contains("stray"), "{said}");
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.one::<i64>("select count(distinct key) from catchword.record where key = 'not-a-uuid'").await, 1);
    let (code, said, errors) = world.run(&["reindex", "annotation", "--all", "--hidden", "--yes"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    world.rebuilt(AT_ONCE).await;
    assert_eq!(world.found("annotation").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_index_can_have_keeps_none_from_being_swapped_in() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    let large =
        "insert into annotation (userid, target_uri, target_uri_normalized, text) values ('acct:a', 'u', 'u', repeat('x', 9000000))";
    world.sql(large).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.all::<String>("select reason from catchword.dead_job").await, ["too_large"]);
    world.rebuilt(AT_ONCE).await;
    assert_eq!(world.found("annotation").await, [key]);
}

/// Letters of other keys must not be taken for those of the documents that it refuses.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_new_index_refuses_keeps_it_out_however_many_letters_there_were() {
    let world = World::new().await;
    world.in_step("acct:a", "words").await;
    world
        .sql(
            "insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, reason)
             select -n, 'index', 'annotation', 'bad ' || n, now(), now(), now(), 1, 'test', 0, 'bad_key' from generate_series(1, 5) n",
        )
        .await;
    let mapping = world.mapping(|file| file["mappings"]["properties"]["text"] = json!({ "type": "long" }));
    assert_eq!(world.run(&["rebuild", "annotation", "--mapping", &mapping]).await.0, 2);
    world.sql("update catchword.job set attempts = 4, scheduled_at = now()").await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job where reason = 'refused'").await, 1);
    let (code, said, errors) = world.run(super::KEEP).await;
    assert_eq!(code, 2, "{said}{errors}");
    assert!(errors.contains("is not in step and is not swapped in: 1 dead"), "{errors}");
    assert_eq!(world.found("annotation").await.len(), 1, "readers see the old one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_changes_while_the_new_index_is_filled_is_refused_until_all_is_written_again() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    // as if it had been killed when the filling was done
    let (code, _, _) = world.run(&["pause", "bystander", "--reason", "noise"]).await;
    assert_eq!(code, 0);
    let view: String = world.one("select rtrim(pg_get_viewdef('annotation_document'), ';')").await;
    let other = view.replace("'text', annotation.text", "'text', upper(annotation.text)").replace("'text', text", "'text', upper(text)");
    assert_ne!(view, other);
    world
        .sql(
            "create function change_view() returns trigger language plpgsql security definer set search_path = public as $$ begin
                 if new.stage = 'drain' then execute current_setting('test.view'); end if; return new; end $$",
        )
        .await;
    world.sql(&format!("do $d$ begin execute format('alter database %I set test.view = %L', current_database(), $v$create or replace view annotation_document as {other}$v$); end $d$")).await;
    world.sql("create trigger change_view before update on catchword.rebuild for each row execute function change_view()").await;
    let (code, said, errors) = world.run(AT_ONCE).await;
    assert_eq!(code, 2, "{said}{errors}");
    assert!(errors.contains("the view changed while") && errors.contains("reindex annotation --all --rewrite"), "{errors}");
    world.sql("drop trigger change_view on catchword.rebuild").await;
    let (code, said, errors) = world.run(&["reindex", "annotation", "--all", "--rewrite", "--yes"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    world.rebuilt(AT_ONCE).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let index = format!("{}annotation-000002", world.prefix);
    let (_, found) = world.http("GET", &format!("/{index}/_doc/{key}"), None).await;
    assert_eq!(found["_source"]["text"], "X", "{found}");
}
