//! A view may say which ids its documents have: then a document is not found by its key, and everything works all the same.

use catchword::{Direct, Error, Stored};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::keys::{drained, well};
use crate::common::{Layout, Truth, World};

/// Ids as Hypothesis has them: 22 letters of URL-safe base64 instead of a uuid.
const SCHEMA: &str = "
create function short_id(id uuid) returns text language sql immutable
  return translate(rtrim(encode(uuid_send(id), 'base64'), '='), '+/', '-_');
create table page (id uuid primary key default gen_random_uuid(), text text, hidden boolean not null default false, catchword_revision bigint);
comment on column page.catchword_revision is 'catchword: revision';
create view page_document as select id as key, short_id(id) as id, catchword_revision as revision, json_build_object('text', text) as body
  from page where not hidden;
create table name (id integer primary key, slug text, text text, catchword_revision bigint);
comment on column name.catchword_revision is 'catchword: revision';
create view name_document as select id as key, slug as id, catchword_revision as revision, json_build_object('text', text) as body from name;
";

fn lines() -> String {
    ["page", "name"].map(|name| crate::attach::collection_lines(name, "delay = \"0s\"")).concat()
}

/// Keys are compared as ids, so that the checker sees what the index has.
const PAGE: Truth = Truth {
    collection: "page",
    rows: "select id::text as key, catchword_revision as revision from page",
    documents: "select key::text as key, revision, body from page_document",
};

async fn world() -> World {
    World::with(Layout { sql: SCHEMA.into(), more: lines(), ..Layout::default() }).await
}

/// The id of a key's document.
pub fn short(key: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = Uuid::parse_str(key).unwrap().as_u128();
    let six = |n: u32| if n < 21 { bits >> (122 - 6 * n) } else { bits << 4 };
    (0..22).map(|n| char::from(LETTERS[(six(n) & 63) as usize])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_kept_in_step_under_ids_of_their_own() {
    let world = world().await;
    world.sql("insert into page (text) select 'page ' || n from generate_series(1, 60) n").await;
    world.sql("insert into page (text, hidden) select 'secret ' || n, true from generate_series(1, 5) n").await;
    let keys: Vec<String> = world.all("select id::text from page where not hidden order by id").await;
    drained(&world).await;
    world.agree_by_id(PAGE, short).await;
    assert_eq!(world.found("page").await.len(), 60);
    assert_eq!(world.source("page", &short(&keys[0])).await.unwrap()["text"].as_str().map(|text| &text[..5]), Some("page "));

    // deleted, hidden, deleted and back, changed; a hidden one that is shown; one that nobody ever showed is deleted
    world.sql(&format!("delete from page where id in ('{}', '{}')", keys[0], keys[1])).await;
    world.sql(&format!("update page set hidden = true where id = '{}'", keys[2])).await;
    world.sql(&format!("update page set text = 'changed' where id = '{}'", keys[3])).await;
    world.sql(&format!("insert into page (id, text) values ('{}', 'came back')", keys[1])).await;
    world.sql("update page set hidden = false where text = 'secret 1'; delete from page where text = 'secret 2'").await;
    drained(&world).await;
    world.agree_by_id(PAGE, short).await;
    assert_eq!(world.found("page").await.len(), 59);

    let stored = Uuid::new_v4();
    let kept = world
        .catchword
        .store_and_schedule("page", async |tx: &mut PgConnection| {
            sqlx::query("insert into page (id, text) values ($1, 'direct')").bind(stored).execute(tx).await?;
            Ok::<_, Error>(Stored::new((), [stored]))
        })
        .await
        .unwrap();
    assert_eq!(kept.direct, Direct::Indexed);
    assert_eq!(world.source("page", &short(&stored.to_string())).await.unwrap()["text"], "direct");
    drained(&world).await;

    let id = short(&keys[3]);
    let said = well(&world, &["explain", "page", &id]).await;
    assert!(said.starts_with(&format!("page {}\n  document id    {id}\n", keys[3])), "{said}");
    for words in [
        &["doctor"][..],
        &["audit", "page", "--content"],
        &["explain", "page", &keys[0]],
        &["reindex", "page", "--ids", &id, "--rewrite", "--yes"],
        &["reindex", "page", "--all", "--hidden", "--rewrite", "--yes"],
        &["sync", "--drain"],
        &["rebuild", "page", "--keep", "0s", "--yes"],
        &["migrate"],
    ] {
        well(&world, words).await;
    }
    world.agree_by_id(PAGE, short).await;
    world.noise_is_untouched().await;
}

/// What somebody else wrote or deleted is found by an audit, whatever its id.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_what_differs_under_any_id() {
    let world = world().await;
    world.sql("insert into page (text) select 'page ' || n from generate_series(1, 20) n").await;
    drained(&world).await;
    let keys: Vec<String> = world.all("select id::text from page order by id").await;
    // a foreign document under the text of a key, one under an id that nobody has, and a document that vanished
    assert_eq!(world.put("page", &keys[5], 4, json!({ "text": "foreign" })).await, 201);
    assert_eq!(world.put("page", "nobody", 4, json!({ "text": "foreign" })).await, 201);
    world.http("DELETE", &format!("/{}/_doc/{}", world.index("page"), short(&keys[6])), None).await;
    world.sql(&format!("set session_replication_role = replica; delete from page where id = '{}'", keys[7])).await;
    let (code, out, err) = world.run(&["audit", "page", "--repair"]).await;
    assert_eq!(code, 1, "{out}{err}");
    drained(&world).await;
    well(&world, &["audit", "page", "--content"]).await;
    assert_eq!(world.found("page").await.len(), 19);
    for id in [&keys[5], "nobody", &short(&keys[7])] {
        assert_eq!(world.source("page", id).await.unwrap(), json!({ "catchword_deleted": true }), "{id}");
    }
    assert_eq!(world.source("page", &short(&keys[5])).await.unwrap()["text"].as_str().map(|text| &text[..5]), Some("page "));
}

/// An audit found a document that nobody had, and before its tombstone is written a row gets just this id.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_was_nobodys_is_left_to_the_row_that_has_its_id_now() {
    let world = world().await;
    assert_eq!(world.put("name", "one", 4, json!({ "text": "foreign" })).await, 201);
    world.sql("insert into name values (1, 'one', 'first')").await;
    drained(&world).await;
    world.sql("select catchword.record_gone('name', array['catchword-id:one']); insert into catchword.job (collection, key, priority, tag) values ('name', 'catchword-id:one', 1, 'audit')").await;
    drained(&world).await;
    assert_eq!(world.source("name", "one").await.unwrap()["text"], "first");
    well(&world, &["audit", "name", "--content"]).await;
}

/// No document takes another's place: an id that is taken, empty, too long or ours is a dead letter that says so.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_cannot_be_taken_harms_nobody() {
    let world = world().await;
    world.sql("insert into name values (1, 'one', 'first'), (3, '3', 'third'), (2, 'x', 'named')").await;
    drained(&world).await;
    // 4's document would be that of 1; 5 and 6 have none; 7's id looks like ours; the id of 3 is the key of nobody
    world
        .sql(
            "insert into name values (4, 'one', 'thief'), (5, null, 'x'), (6, '', 'x'), (7, 'catchword-key:3', 'x'), (8, repeat('x', 513), 'x'), (9, 'nine', 'ninth')",
        )
        .await;
    for _ in 0..5 {
        world.sql("update catchword.job set scheduled_at = now()").await;
        world.run(&["sync"]).await;
    }
    let dead: Vec<String> =
        world.all("select key || ' ' || last_error from catchword.dead_job where collection = 'name' order by key").await;
    let open: Vec<String> =
        world.all("select key || ' ' || attempts || ' ' || coalesce(last_error, '') from catchword.job order by key").await;
    assert_eq!(dead.len(), 5, "{dead:?} {open:?}");
    assert!(dead[0].starts_with("4 ") && dead[0].contains("its id \"one\" is that of the key \"1\" already"), "{dead:?}");
    for (key, why) in [("4", "its id \"one\" is that of the key \"1\" already"), ("5", "the view's id is null")] {
        let (code, said, _) = world.run(&["explain", "name", key]).await;
        assert!(code == 1 && said.contains(&format!("  document id    refused: {why}\n")), "{said}");
        assert!(said.contains("because its id is refused") && !said.contains("catchword-key"), "{said}");
    }
    assert_eq!(world.found("name").await, ["3", "nine", "one", "x"]);
    assert_eq!(world.source("name", "one").await.unwrap()["text"], "first");

    // what is the key of one and the id of another means the key
    world.sql("insert into name values (10, '9', 'tenth')").await;
    drained(&world).await;
    assert!(well(&world, &["explain", "name", "9"]).await.starts_with("name 9\n  document id    nine\n"));
    world.sql("delete from name where id = 10").await;
    drained(&world).await;

    // an id is fixed: what the view says later changes nothing, and the delete still finds its document
    world.sql("update name set slug = 'other', text = 'renamed' where id = 1").await;
    drained(&world).await;
    assert_eq!(world.source("name", "one").await.unwrap()["text"], "renamed");
    assert_eq!(world.source("name", "other").await, None);
    world.sql("delete from name where id = 1").await;
    drained(&world).await;
    assert_eq!(world.found("name").await, ["3", "nine", "x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_gets_or_loses_its_ids_is_refused() {
    let world = world().await;
    world.sql("insert into name values (1, 'one', 'first')").await;
    drained(&world).await;
    world
        .sql("drop view name_document; create view name_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from name")
        .await;
    let (code, _, err) = world.run(&["migrate"]).await;
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("has no column id") && err.contains("catchword detach name"), "{err}");
    let (code, out, err) = world.run(&["doctor"]).await;
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("has no column id"), "{out}");
}
