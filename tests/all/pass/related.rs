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
    let expanded = catchword::collection::expand_touches(world.catchword.pool(), "annotation", 2500).await.unwrap();
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
async fn a_touch_that_can_never_be_done_becomes_a_dead_letter_and_others_go_on() {
    let world = World::new().await;
    world.sql("insert into document (title, web_uri) values ('a', 'http://a/'), ('b', 'http://b/')").await;
    annotate_document(&world, 1, 1).await;
    annotate_document(&world, 2, 1).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    // what a column that changed its type leaves behind
    world.sql("update document set title = 'new'; update catchword.job set key = 'document_id=one' where key = 'document_id=1'").await;
    for _ in 0..5 {
        world.make_due().await;
        world.catchword.drain("test", &["annotation"]).await.unwrap();
    }
    let other: String = world.one("select id::text from annotation where document_id = 2").await;
    assert_eq!(title(&world, &other).await, json!("new"));
    let dead: Vec<String> = world.all("select name || ' ' || key || ' ' || reason || ' ' || last_error from catchword.dead_job").await;
    assert_eq!(dead, ["touch document_id=one refused invalid input syntax for type bigint: \"one\""]);
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

/// `item` refers to `kind` by its code.
async fn kinds(code: &str, watch: &str) -> World {
    World::with(Layout {
        more: format!("[[collection]]\nname = \"item\"\ntable = \"item\"\nkey = \"id\"\nview = \"item_document\"\nmapping = \"bystander.json\"\ntouches = [{{ table = \"kind\", column = \"code\", row_column = \"kind\"{watch} }}]\ndelay = \"0s\"\n"),
        sql: format!(
            "create table kind (id bigint primary key, code {code} not null, label text, meta json, seen integer);
             create table item (id bigint primary key, kind {code}, catchword_revision bigint);
             comment on column item.catchword_revision is 'catchword: revision';
             create view item_document as select id as key, catchword_revision as revision,
               json_build_object('text', (select string_agg(label || coalesce(meta::text, ''), ' ' order by kind.id) from kind where kind.code = item.kind)) as body from item;"
        ),
        ..Layout::default()
    })
    .await
}

async fn text(world: &World, key: i64) -> serde_json::Value {
    world.source("item", &key.to_string()).await.unwrap()["text"].clone()
}

async fn touches(world: &World) -> Vec<String> {
    world.all("select key from catchword.job where name = 'touch' and collection = 'item' order by key").await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_change_of_a_watched_column_touches() {
    let world = kinds("text", ", watch = [\"label\", \"meta\"]").await;
    world.sql("insert into kind values (1, 'a', 'A', '{}', 0), (2, 'a', 'B', '{}', 0), (3, 'c', 'C', '{}', 0); insert into item values (1, 'a'), (2, 'c')").await;
    world.catchword.drain("test", &["item"]).await.unwrap();
    for (change, touched) in [
        ("update kind set seen = seen + 1", vec![]),
        ("update kind set label = label", vec![]),
        ("update kind set label = 'x' where id = 3", vec!["kind=c"]),
        ("update kind set meta = '{ }' where id = 3", vec!["kind=c"]),
        // the same labels, of other rows
        ("update kind set label = case id when 1 then 'B' else 'A' end where id in (1, 2)", vec!["kind=a"]),
        ("update kind set code = 'd' where id = 3", vec!["kind=c", "kind=d"]),
        ("update kind set id = 30 where id = 3", vec!["kind=d"]),
        ("insert into kind values (4, 'e', 'E', null, 0)", vec!["kind=e"]),
        ("delete from kind where id = 4", vec!["kind=e"]),
    ] {
        world.sql("delete from catchword.job").await;
        world.sql(change).await;
        assert_eq!(touches(&world).await, touched, "{change}");
    }
    world.sql("select catchword.schedule('item', array['1', '2']); update kind set label = 'y' where id = 1").await;
    world.catchword.drain("test", &["item"]).await.unwrap();
    assert_eq!(text(&world, 1).await, json!("y{} A{}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_without_a_primary_key_is_refused_and_says_why() {
    let world = World::with(Layout {
        sql: "create table label (name text, colour text)".into(),
        annotation: "delay = \"0s\"",
        ..Layout::default()
    })
    .await;
    let mut config = world.catchword.config().collections[0].clone();
    let watch = vec!["colour".into()];
    config.touches.push(catchword::config::Touch {
        table: "label".into(),
        column: vec!["name".into()],
        row_column: vec!["userid".into()],
        watch,
        ..Default::default()
    });
    let refused = catchword::collection::attach(&world.pool, &config).await.unwrap_err().to_string();
    assert!(refused.contains("label has no primary key") && refused.contains("leave watch out"), "{refused}");
    world.sql("alter table label add primary key (name)").await;
    config.touches.last_mut().unwrap().watch = vec!["color".into()];
    let refused = catchword::collection::attach(&world.pool, &config).await.unwrap_err().to_string();
    assert!(refused.contains("label has no column color"), "{refused}");
}

/// The text of a value must mean the same to whoever writes and to the worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_the_same_whatever_the_writers_settings() {
    for (code, value, settings) in [
        ("date", "2026-02-01", "set datestyle = 'SQL, DMY'"),
        ("timestamptz", "2026-02-01 12:00:00.000001+00", "set datestyle = 'German'; set timezone = 'Asia/Kolkata'"),
        ("interval", "-1 mon -2 days +03:04:05", "set intervalstyle = 'sql_standard'"),
        ("bytea", "\\xdeadbeef", "set bytea_output = 'escape'"),
        ("double precision", "0.1234567890123456", "set extra_float_digits = -15"),
        ("daterange", "[2026-02-01,2026-03-01)", "set datestyle = 'SQL, DMY'"),
    ] {
        let world = kinds(code, "").await;
        world.sql(&format!("insert into kind values (1, '{value}', 'old'); insert into item values (1, '{value}')")).await;
        world.catchword.drain("test", &["item"]).await.unwrap();
        let settings = settings.replace("set ", "set local ");
        world.sql(&format!("begin; {settings}; update kind set label = 'new'; commit")).await;
        world.catchword.drain("test", &["item"]).await.unwrap();
        assert_eq!(text(&world, 1).await, json!("new"), "{code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_locked_holds_up_no_other_collection_and_charges_nobody() {
    let world = kinds("text", "").await;
    world.sql("insert into kind values (1, 'a', 'old'); insert into item values (1, 'a')").await;
    world.catchword.drain("test", &["item"]).await.unwrap();
    let mut holder = world.pool.begin().await.unwrap();
    world.sql("update kind set label = 'new'").await;
    sqlx::query("lock table item in exclusive mode").execute(&mut *holder).await.unwrap();
    for n in 1..=6 {
        let key = world.annotate("acct:a", "beside it").await;
        world.sql("update catchword.job set scheduled_at = now() where name = 'touch'").await;
        let outcome = world.catchword.sync("test", &[]).await.unwrap();
        assert_eq!(outcome.written, 1, "{n}: {outcome}");
        assert!(world.source("annotation", &key).await.is_some());
    }
    let (attempts, error): (i32, String) =
        sqlx::query_as("select attempts, last_error from catchword.job where name = 'touch'").fetch_one(&world.pool).await.unwrap();
    assert_eq!(attempts, 0, "{error}");
    assert!(error.contains("lock timeout") || error.contains("statement timeout"), "{error}");
    holder.commit().await.unwrap();
    world.sql("update catchword.job set scheduled_at = now() where name = 'touch'").await;
    world.catchword.drain("test", &["item"]).await.unwrap();
    assert_eq!(text(&world, 1).await, json!("new"));
}

#[tokio::test(flavor = "multi_thread")]
async fn touches_that_fail_or_never_end_keep_no_live_write_waiting() {
    let world = World::new().await;
    world.sql("insert into document (title, web_uri) select 'd' || i, 'http://' || i from generate_series(1, 3000) i").await;
    annotate_document(&world, 1, 6_000).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    // three thousand that can never be done, and a long one
    world
        .sql("update document set title = title || '!'; update catchword.job set key = 'document_id=x' || id where key <> 'document_id=1'")
        .await;
    let key = world.annotate("acct:a", "live").await;
    let outcome = world.pass().await;
    assert!(world.source("annotation", &key).await.is_some(), "the first batch is the live one's: {outcome}");
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(
        title(&world, &world.one::<String>("select id::text from annotation where document_id = 1 limit 1").await).await,
        json!("d1!")
    );
    let untried: i64 = world.one("select count(*) from catchword.job where name = 'touch' and (attempts = 0 or last_error is null)").await;
    assert_eq!(untried, 0, "each was tried alone, and pushed back");
}

/// Where no index serves the column, so that not even a few rows are found in time, the table is walked by its key.
#[tokio::test(flavor = "multi_thread")]
async fn a_touch_without_an_index_walks_the_table_in_steps() {
    let world = kinds("text", "").await;
    world.sql("insert into kind values (1, 'a', 'A'), (2, 'b', 'B'), (3, 'c', 'C')").await;
    world.sql("insert into item select i, case when i % 1000 = 1 then 'a' when i % 1000 = 2 then 'b' else 'c' end from generate_series(1, 3000) i").await;
    world.catchword.drain("test", &["item"]).await.unwrap();
    // as two steps that took too long leave them
    world
        .sql("update kind set label = label || '!' where code in ('a', 'b'); update catchword.job set cursor = '~' where name = 'touch'")
        .await;
    let step = catchword::collection::expand_touches(world.catchword.pool(), "item", 100).await.unwrap();
    assert_eq!((step.jobs, step.touched), (2, 2), "both at once: the rows 1 and 2 of the first thousand");
    let cursors: Vec<String> = world.all("select distinct cursor from catchword.job where name = 'touch'").await;
    assert_eq!(cursors, ["~1000"]);
    world.catchword.drain("test", &["item"]).await.unwrap();
    for key in [1, 1001, 2001] {
        assert_eq!((text(&world, key).await, text(&world, key + 1).await), (json!("A!"), json!("B!")));
    }
    assert_eq!(touches(&world).await, [""; 0]);
}
