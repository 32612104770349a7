//! Late, lost and overtaken messages: each of these orders of events has once lost or resurrected something.

use serde_json::json;

use crate::common::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_row_changed_between_look_and_settle_keeps_its_new_job() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    let changed = world.in_step("acct:a", "before").await;
    world.sql(&format!("select catchword.schedule('annotation', array['{changed}'])")).await;
    // another key is missing, so the batch writes a bulk between its looks and its end
    world.annotate("acct:b", "missing").await;

    gate.hold("_bulk");
    let pass = tokio::spawn({
        let catchword = world.catchword.clone();
        async move { catchword.sync("test", &["annotation"]).await.unwrap() }
    });
    gate.holds_something().await;
    world.sql(&format!("update annotation set text = 'after' where id = '{changed}'")).await;
    gate.pass();

    let outcome = pass.await.unwrap();
    assert_eq!(outcome.settled, 1, "the old job of the changed row: {outcome}");
    let open: i64 = world.one(&format!("select count(*) from catchword.job where key = '{changed}'")).await;
    assert_eq!(open, 1, "the new job survives");
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.source("annotation", &changed).await.unwrap()["text"], json!("after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_held_up_until_after_its_delete_was_settled_stays_deleted() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    let key = world.annotate("acct:a", "a ghost").await;

    // the direct write is held up: its caller has long given up when it lands
    gate.hold("_bulk");
    let direct = tokio::spawn({
        let (catchword, key) = (world.catchword.clone(), key.clone());
        async move { catchword.index_now("annotation", [key]).await }
    });
    gate.holds_something().await;
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    // a worker that is not behind the gate settles the delete meanwhile
    let worker = world.past_the_gate().await;
    worker.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.jobs().await, 0);
    let tombstone = world.version("annotation", &key).await;

    gate.pass();
    direct.await.unwrap();
    gate.late_requests_are_answered().await;
    assert_eq!(world.version("annotation", &key).await, tombstone, "the late write changed nothing");
    assert!(world.found("annotation").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_old_write_after_a_newer_one_was_settled_changes_nothing() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    let key = world.annotate("acct:a", "old").await;
    gate.hold("_bulk");
    let direct = tokio::spawn({
        let (catchword, key) = (world.catchword.clone(), key.clone());
        async move { catchword.index_now("annotation", [key]).await }
    });
    gate.holds_something().await;
    world.sql(&format!("update annotation set text = 'new' where id = '{key}'")).await;
    world.past_the_gate().await.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.jobs().await, 0);

    gate.pass();
    direct.await.unwrap();
    gate.late_requests_are_answered().await;
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("new"));
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_insert_delete_with_the_middle_life_arriving_last_stays_deleted() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "first life").await;
    let insert = format!(
        "insert into annotation (id, userid, target_uri, target_uri_normalized, text) values ('{key}', 'acct:a', 'u', 'u', 'second life')"
    );
    world.sql(&format!("delete from annotation where id = '{key}'; {insert}")).await;
    let middle = world.revision(&key).await;
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.jobs().await, 0);
    let tombstone = world.version("annotation", &key).await.unwrap();
    assert!(tombstone > middle);

    assert_eq!(world.put("annotation", &key, middle, json!({ "text": "second life" })).await, 409);
    assert_eq!(world.version("annotation", &key).await, Some(tombstone));
    assert!(world.found("annotation").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_deleted_and_inserted_again_by_overlapping_transactions_is_found() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "first life").await;
    let mut deleting = world.pool.begin().await.unwrap();
    sqlx::query("update annotation set text = 'last words' where id = $1::text::uuid").bind(&key).execute(&mut *deleting).await.unwrap();
    // the insert draws its number, then waits at the unique index for the row's fate
    let inserting = tokio::spawn({
        let (pool, key) = (world.pool.clone(), key.clone());
        async move {
            sqlx::query("insert into annotation (id, userid, target_uri, target_uri_normalized, text) values ($1::text::uuid, 'acct:a', 'u', 'u', 'second life')")
                .bind(&key)
                .execute(&pool)
                .await
                .unwrap()
        }
    });
    crate::common::eventually("the insert waits", async || {
        world.one::<i64>("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").await == 1
    })
    .await;
    // the delete draws later, and commits first
    sqlx::query("delete from annotation where id = $1::text::uuid").bind(&key).execute(&mut *deleting).await.unwrap();
    deleting.commit().await.unwrap();
    inserting.await.unwrap();

    let recorded: i64 = world.one(&format!("select revision from catchword.record where key = '{key}'")).await;
    assert!(world.revision(&key).await > recorded, "the later life has the higher number");
    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert!(!outcome.verdicts.contains_key("ahead"), "{outcome:?}");
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("second life"));
    assert_eq!(world.jobs().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_floor_waits_for_open_writers_and_makes_everything_stale() {
    let world = World::new().await;
    let (settled, open) = (world.in_step("acct:a", "settled").await, world.in_step("acct:b", "open").await);
    let before = world.version("annotation", &settled).await.unwrap();
    let mut writer = world.pool.begin().await.unwrap();
    sqlx::query("update annotation set text = 'changed' where id = $1::text::uuid").bind(&open).execute(&mut *writer).await.unwrap();
    let reindex = tokio::spawn({
        let pool = world.pool.clone();
        async move { sqlx::query_scalar::<_, i64>("select catchword.reindex('annotation', p_rewrite => true)").fetch_one(&pool).await.unwrap() }
    });
    crate::common::eventually("the floor waits for the writer", async || {
        world.one::<i64>("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").await == 1
    })
    .await;
    writer.commit().await.unwrap();
    assert_eq!(reindex.await.unwrap(), 2);

    let floor: i64 = world.one("select floor from catchword.collection where name = 'annotation'").await;
    let drawn: i64 = world.one(&format!("select catchword_revision from annotation where id = '{open}'")).await;
    assert!(floor > drawn, "drawn after the writer's number");
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert!(floor > before);
    assert_eq!(world.version("annotation", &settled).await, Some(floor));
    assert_eq!(world.version("annotation", &open).await, Some(floor));
    assert_eq!(world.source("annotation", &open).await.unwrap()["text"], json!("changed"));
    assert_eq!(world.jobs().await, 0);
}
