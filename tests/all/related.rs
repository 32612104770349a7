//! Related tables: a changed title reaches every document that shows it.

use serde_json::json;

use crate::common::{Layout, World};

async fn title(world: &World, key: &str) -> serde_json::Value {
    world.source("annotation", key).await.unwrap()["document"]["title"].clone()
}

async fn annotate_document(world: &World, document: i64, count: i32) {
    world
        .sql(&format!(
            "insert into annotation (userid, target_uri, target_uri_normalized, document_id) select 'acct:' || i, 'u', 'u', {document} from generate_series(1, {count}) i"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_title_reaches_all_its_documents_and_no_other() {
    let world = World::new().await;
    world.sql("insert into document (title, web_uri) values ('old', 'http://a/'), ('other', 'http://b/')").await;
    annotate_document(&world, 1, 30).await;
    annotate_document(&world, 2, 3).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let others: Vec<String> = world.all("select id::text || catchword_revision from annotation where document_id = 2 order by 1").await;

    world.sql("update document set title = 'new' where id = 1").await;
    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(outcome.touched, 30, "{outcome}");
    for key in world.all::<String>("select id::text from annotation where document_id = 1").await {
        assert_eq!(title(&world, &key).await, json!("new"));
    }
    let untouched: Vec<String> = world.all("select id::text || catchword_revision from annotation where document_id = 2 order by 1").await;
    assert_eq!(untouched, others);
    assert_eq!(world.jobs().await, 0);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_being_inserted_while_the_rename_was_open_is_found_too() {
    let world = World::new().await;
    world.sql("insert into document (title, web_uri) values ('old', 'http://a/')").await;
    // the insert's transaction is open when the rename commits: nobody can see its row then
    let mut inserting = world.pool.begin().await.unwrap();
    let key: uuid::Uuid =
        sqlx::query_scalar("insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u') returning id")
            .fetch_one(&mut *inserting)
            .await
            .unwrap();
    sqlx::query("update annotation set document_id = 1 where id = $1").bind(key).execute(&mut *inserting).await.unwrap();
    let key = key.to_string();

    let mut renaming = world.pool.begin().await.unwrap();
    sqlx::query("update document set title = 'new' where id = 1").execute(&mut *renaming).await.unwrap();
    // committed and indexed while the rename is open: with the old title
    inserting.commit().await.unwrap();
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(title(&world, &key).await, json!("old"));
    renaming.commit().await.unwrap();

    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(title(&world, &key).await, json!("new"));
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_related_change_is_expanded_in_chunks_and_stands_behind_live_writes() {
    let world = World::new().await;
    world.sql("insert into document (title, web_uri) values ('old', 'http://a/')").await;
    annotate_document(&world, 1, 6000).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();

    world.sql("update document set title = 'new' where id = 1").await;
    assert_eq!(world.jobs().await, 1, "one job, however many rows refer to it");
    let expanded = catchword::collection::expand_touches(world.catchword.pool(), "annotation").await.unwrap();
    assert_eq!((expanded.jobs, expanded.touched), (1, 2500));
    let priorities: Vec<i32> =
        world.all("select distinct priority from catchword.job where collection = 'annotation' and name = 'index'").await;
    assert_eq!(priorities, [100]);
    let cursor: Option<String> = world.one("select cursor from catchword.job where name = 'touch'").await;
    assert!(cursor.is_some(), "a worker that dies here is followed by one that goes on");

    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(outcome.touched, 3500);
    let (status, answer) = world.http("POST", &format!("/{}/_refresh", world.index("annotation")), None).await;
    assert_eq!(status, 200, "{answer}");
    let (_, answer) = world
        .http("POST", &format!("/{}/_count", world.alias("annotation")), Some(json!({ "query": { "match": { "document.title": "new" } } })))
        .await;
    assert_eq!(answer["count"], json!(6000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_row_is_not_waited_for_and_not_forgotten() {
    let world = World::new().await;
    world.sql("insert into document (title, web_uri) values ('old', 'http://a/')").await;
    annotate_document(&world, 1, 3).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let keys: Vec<String> = world.all("select id::text from annotation order by id").await;

    let mut writer = world.pool.begin().await.unwrap();
    sqlx::query("update annotation set text = 'x' where id = $1::text::uuid").bind(&keys[1]).execute(&mut *writer).await.unwrap();
    world.sql("update document set title = 'new' where id = 1").await;
    world.pass().await;
    let open: i64 = world.one("select count(*) from catchword.job where name = 'touch'").await;
    assert_eq!(open, 1, "the touch stays: the writer may roll back");
    writer.rollback().await.unwrap();

    world.make_due().await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    for key in &keys {
        assert_eq!(title(&world, key).await, json!("new"));
    }
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_touch_that_the_table_refuses_becomes_a_dead_letter_and_others_go_on() {
    let world = World::new().await;
    world.sql("insert into document (title, web_uri) values ('a', 'http://a/'), ('b', 'http://b/')").await;
    annotate_document(&world, 1, 1).await;
    annotate_document(&world, 2, 1).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world
        .sql(
            "create function no() returns trigger language plpgsql as $$ begin if new.document_id = 1 then raise 'not this one'; end if; return new; end $$;
             create trigger a_no before update on annotation for each row execute function no()",
        )
        .await;
    world.sql("update document set title = 'new'").await;
    for _ in 0..6 {
        world.make_due().await;
        world.pass().await;
    }
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let other: String = world.one("select id::text from annotation where document_id = 2").await;
    assert_eq!(title(&world, &other).await, json!("new"));
    let dead: Vec<String> = world.all("select name || ' ' || key || ' ' || reason || ' ' || last_error from catchword.dead_job").await;
    assert_eq!(dead, ["touch document_id=1 refused not this one"]);
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_a_padded_column_reaches_its_rows() {
    let world = World::with(Layout {
        more: "[[collection]]\nname = \"item\"\ntable = \"item\"\nkey = \"id\"\nview = \"item_document\"\nmapping = \"bystander.json\"\ntouches = [{ table = \"kind\", column = \"code\", row_column = \"kind\" }]\ndelay = \"0s\"\n".into(),
        sql: "create table kind (code char(8) primary key, label text);
              create table item (id bigint primary key, kind char(8) references kind, catchword_revision bigint);
              comment on column item.catchword_revision is 'catchword: revision';
              create view item_document as select id as key, catchword_revision as revision,
                json_build_object('text', (select label from kind where kind.code = item.kind)) as body from item;"
            .into(),
        ..Layout::default()
    })
    .await;
    world.sql("insert into kind values ('book', 'Book')").await;
    world.sql("insert into item values (1, 'book')").await;
    world.catchword.drain("test", &["item"]).await.unwrap();
    world.sql("update kind set label = 'Volume' where code = 'book'").await;
    world.sql("update catchword.job set scheduled_at = now() where collection = 'item'").await;
    world.catchword.drain("test", &["item"]).await.unwrap();
    assert_eq!(world.source("item", "1").await.unwrap()["text"], serde_json::json!("Volume"));
}
