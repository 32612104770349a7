//! The loop: one test per verdict, end to end.

use serde_json::json;

use crate::common::{Layout, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_document_is_written_now_and_settled_by_the_next_pass() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "hello").await;

    let first = world.pass().await;
    assert_eq!((first.written, first.settled, first.left), (1, 0, 1), "{first}");
    assert_eq!(first.verdicts, [("missing", 1)].into());
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));

    let second = world.pass().await;
    assert_eq!((second.written, second.settled), (0, 1), "{second}");
    assert_eq!(second.verdicts, [("current", 1)].into());
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.found("annotation").await, std::slice::from_ref(&key));
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("hello"));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_document_is_written_again() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "old").await;
    world.sql(&format!("update annotation set text = 'new' where id = '{key}'")).await;

    let outcome = world.pass().await;
    assert_eq!(outcome.verdicts, [("stale", 1)].into(), "{outcome}");
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("new"));
    assert_eq!(world.pass().await.settled, 1);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_current_document_is_settled_without_a_write() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "same").await;
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;

    let outcome = world.pass().await;
    assert_eq!((outcome.written, outcome.settled), (0, 1));
    assert_eq!(outcome.verdicts, [("current", 1)].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_row_leaves_a_tombstone_with_the_number_of_its_delete() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "soon gone").await;
    let revision = world.revision(&key).await;
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    let recorded: i64 = world.one(&format!("select revision from catchword.record where key = '{key}'")).await;
    assert!(recorded > revision && recorded % 2 == 1);

    let outcome = world.pass().await;
    assert_eq!(outcome.verdicts, [("orphan", 1)].into());
    assert_eq!(world.version("annotation", &key).await, Some(recorded));
    assert_eq!(world.source("annotation", &key).await, Some(json!({ "catchword_deleted": true })));
    assert!(world.found("annotation").await.is_empty(), "readers do not see tombstones");

    let outcome = world.pass().await;
    assert_eq!((outcome.settled, outcome.verdicts), (1, [("gone", 1)].into()));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_that_elasticsearch_was_never_told_of_is_told_before_it_is_settled() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "never indexed").await;
    world.sql(&format!("delete from annotation where id = '{key}'")).await;

    let outcome = world.pass().await;
    assert_eq!((outcome.settled, outcome.verdicts), (0, [("untold", 1)].into()));
    let recorded: i64 = world.one(&format!("select revision from catchword.record where key = '{key}'")).await;
    assert_eq!(world.version("annotation", &key).await, Some(recorded));
    assert_eq!(world.pass().await.settled, 2, "the insert's job and the delete's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_never_was_is_settled_without_a_tombstone() {
    let world = World::new().await;
    let key = uuid::Uuid::new_v4();
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;

    let outcome = world.pass().await;
    assert_eq!((outcome.settled, outcome.written, outcome.verdicts), (1, 0, [("gone", 1)].into()));
    assert_eq!(world.version("annotation", &key.to_string()).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_without_a_row_is_given_a_number_and_then_a_tombstone() {
    let world = World::new().await;
    let key = uuid::Uuid::new_v4().to_string();
    assert_eq!(world.put("annotation", &key, 2, json!({ "text": "whose am I" })).await, 201);
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;

    let first = world.pass().await;
    assert_eq!((first.settled, first.written, first.verdicts), (0, 0, [("orphan", 1)].into()));
    let recorded: i64 = world.one(&format!("select revision from catchword.record where key = '{key}'")).await;
    assert_eq!(world.pass().await.written, 1);
    assert_eq!(world.version("annotation", &key).await, Some(recorded));
    assert_eq!(world.pass().await.settled, 1);
    assert!(world.found("annotation").await.is_empty());
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_ahead_of_a_row_is_overtaken() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "the truth").await;
    assert_eq!(world.put("annotation", &key, 1_000_000_000_000_000, json!({ "text": "not the truth" })).await, 200);
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;

    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(outcome.verdicts["ahead"], 1, "{outcome:?}");
    assert_eq!(world.jobs().await, 0);
    let revision = world.revision(&key).await;
    assert!(revision > 1_000_000_000_000_000 && revision % 2 == 0);
    assert_eq!(world.version("annotation", &key).await, Some(revision));
    assert_eq!(world.source("annotation", &key).await.unwrap()["text"], json!("the truth"));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_ahead_of_a_deleted_or_hidden_row_is_overtaken() {
    let world = World::new().await;
    let (deleted, hidden) = (world.in_step("acct:a", "one").await, world.in_step("acct:a", "two").await);
    world.sql(&format!("delete from annotation where id = '{deleted}'; update annotation set deleted = true where id = '{hidden}'")).await;
    for key in [&deleted, &hidden] {
        assert_eq!(world.put("annotation", key, 1_000_000_000_000_000, json!({ "text": "undead" })).await, 200);
    }

    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(outcome.verdicts["ahead"], 2, "{outcome:?}");
    assert_eq!(world.jobs().await, 0);
    for key in [&deleted, &hidden] {
        let version = world.version("annotation", key).await.unwrap();
        assert!(version > 1_000_000_000_000_000 && version % 2 == 1);
    }
    assert!(world.found("annotation").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_too_high_to_be_true_is_a_dead_letter() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    let last: i64 = world.one("select last_value from catchword.revision").await;
    assert_eq!(world.put("annotation", &key, i64::MAX - 1, json!({ "text": "far out" })).await, 200);
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;

    assert_eq!(world.pass().await.buried, 1);
    assert_eq!(world.all::<String>("select reason from catchword.dead_job").await, ["ahead"]);
    assert_eq!(world.one::<i64>("select last_value from catchword.revision").await, last, "the sequence was left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_elasticsearch_cannot_say_settles_nothing() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;
    world.http("POST", &format!("/{}/_close", world.index("annotation")), None).await;

    let outcome = world.pass().await;
    assert_eq!((outcome.settled, outcome.postponed, outcome.verdicts.clone()), (0, 1, [("unknown", 1)].into()), "{outcome}");
    let later: bool = world.one("select scheduled_at between now() + interval '4 seconds' and now() + interval '30 seconds' and attempts = 0 from catchword.job where collection = 'annotation'").await;
    assert!(later, "looked at again in 5 to 30 s, and nothing charged");

    world.http("POST", &format!("/{}/_open?wait_for_active_shards=1", world.index("annotation")), None).await;
    world.make_due().await;
    assert_eq!(world.pass().await.settled, 1);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_hidden_from_the_view_and_shown_again_follows() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    for (deleted, found) in [(true, 0), (false, 1), (true, 0), (false, 1)] {
        world.sql(&format!("update annotation set deleted = {deleted} where id = '{key}'")).await;
        world.catchword.drain("test", &["annotation"]).await.unwrap();
        let revision = world.revision(&key).await;
        assert_eq!(world.version("annotation", &key).await, Some(revision + i64::from(deleted)));
        assert_eq!(world.found("annotation").await.len(), found);
        assert_eq!(world.jobs().await, 0);
    }
}

/// Where nearly all of a batch had to be written, the next is written without a look: nothing of it may be settled by that.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_unseen_is_settled_by_a_later_look_only() {
    let world = World::with(Layout { batch: 20, ..Layout::default() }).await;
    let deleted = world.in_step("acct:a", "soon gone").await;
    let ahead = world.in_step("acct:a", "somebody else wrote").await;
    world.put("annotation", &ahead, world.revision(&ahead).await + 1_000, json!({ "text": "a stranger's" })).await;
    for n in 0..200 {
        world.annotate("acct:a", &format!("{n}")).await;
    }
    // all of these come when batches are written unseen
    world.sql(&format!("delete from annotation where id = '{deleted}'")).await;
    world.sql(&format!("select catchword.schedule('annotation', array['{ahead}', '{}'])", uuid::Uuid::new_v4())).await;
    world.sql("insert into catchword.job (collection, key, priority, tag) values ('annotation', 'no uuid', 0, 'test')").await;
    let jobs = world.jobs().await;

    let first = world.pass().await;
    let looked: u64 = first.verdicts.values().sum();
    assert!(looked < 200, "no batch was written unseen: {first}");
    assert_eq!((first.settled, first.buried), (0, 0), "{first}");
    assert_eq!(world.jobs().await, jobs);
    assert!(first.written >= 200 && first.conflicts >= 1, "{first}");

    let all = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!((world.jobs().await, all.buried), (0, 1), "{all}");
    assert_eq!(world.version("annotation", &deleted).await.map(|version| version % 2), Some(1));
    assert_eq!(world.version("annotation", &ahead).await, Some(world.revision(&ahead).await));
    assert_eq!(world.found("annotation").await.len(), 201);
    world.noise_is_untouched().await;
}
