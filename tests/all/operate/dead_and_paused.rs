//! Dead letters, pauses and the journal, as an operator uses them.

use serde_json::{Value, json};

use crate::common::{World, eventually};

/// Three dead letters of two kinds, made by the loop itself.
async fn with_dead_letters() -> World {
    let world = World::new().await;
    world.sql("alter table annotation drop constraint annotation_names_length").await;
    world
        .sql("insert into annotation (userid, target_uri, target_uri_normalized) select repeat('x', 40000) || i, 'u', 'u' from generate_series(1, 2) i")
        .await;
    world.sql("insert into catchword.job (collection, key, priority, tag) values ('annotation', 'no uuid', 1, 'a stranger')").await;
    for _ in 0..5 {
        world.make_due().await;
        world.pass().await;
    }
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 3);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_by_error_and_shown_one_by_one() {
    let world = with_dead_letters().await;
    let (code, out, _) = world.run(&["dead", "list"]).await;
    assert_eq!(code, 1, "there are some");
    let counts: Vec<&str> = out.lines().filter(|line| line.contains("annotation")).map(|line| line.trim()).collect();
    assert!(counts[0].starts_with("2  annotation refused") && counts[1].starts_with("1  annotation bad_key"), "{out}");
    assert!(!out.contains("xxxx"), "no value of a document: {out}");

    let (code, out, _) = world.run(&["dead", "list", "--reason", "bad_key", "--json"]).await;
    let groups: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &groups[0]["count"], groups.as_array().unwrap().len()), (1, &json!(1), 1));

    let (_, out, _) = world.run(&["dead", "list", "--each", "--tag", "a stranger", "--since", "2000-01-01", "--json"]).await;
    let letters: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(letters[0]["key"], json!("no uuid"));
    let id = letters[0]["id"].to_string();
    let (code, out, _) = world.run(&["dead", "show", &id]).await;
    assert_eq!(code, 0);
    assert!(out.contains("not of type uuid") && out.contains("asked for by a stranger") && out.contains("dead replay"), "{out}");

    assert_eq!(world.run(&["dead", "show", "99999"]).await.0, 1);
    for wrong in [
        &["dead", "list", "--reason", "nonsense"][..],
        &["dead", "list", "--since", "yesterday"],
        &["dead", "list", "--collection", "nobody"],
        &["dead", "replay"],
        &["dead", "replay", "abc"],
        &["dead", "discard", "--all"],
        &["dead"],
    ] {
        let (code, _, complained) = world.run(wrong).await;
        assert!(code == 2 && !complained.is_empty(), "{wrong:?}");
    }
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 3, "nothing was touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_dead_letter_is_a_fresh_job_and_settles_when_its_cause_is_mended() {
    let world = with_dead_letters().await;
    let (code, out, _) = world.run(&["dead", "replay", "--reason", "refused"]).await;
    assert_eq!((code, out.as_str()), (0, "scheduled again: 2\n"));
    let fresh: i64 =
        world.one("select count(*) from catchword.job where collection = 'annotation' and attempts = 0 and scheduled_at <= now()").await;
    assert_eq!(fresh, 2);
    world.sql("update annotation set userid = right(userid, 10)").await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!((world.jobs().await, world.found("annotation").await.len()), (0, 2));
    assert_eq!(world.run(&["dead", "replay", "--reason", "refused"]).await.0, 1, "none fits any more");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discarding_asks_and_is_written_down() {
    let world = with_dead_letters().await;
    let id: i64 = world.one("select id from catchword.dead_job where reason = 'bad_key'").await;
    let (code, _, complained) = world.run(&["dead", "discard", &id.to_string()]).await;
    assert!(code == 2 && complained.contains("--yes"), "{complained}");
    let (code, out, _) = world.run(&["dead", "discard", &id.to_string(), "--yes", "--json"]).await;
    assert_eq!((code, serde_json::from_str::<Value>(&out).unwrap()), (0, json!({ "count": 1 })));
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 2);
    let (_, out, _) = world.run(&["journal", "--json"]).await;
    let lines: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&lines[0]["what"], &lines[0]["count"], &lines[0]["detail"]), (&json!("discard"), &json!(1), &json!(id.to_string())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_stops_claims_and_direct_writes_and_loses_nothing() {
    let world = World::new().await;
    let (code, out, _) = world.run(&["pause", "annotation", "--reason", "fixing the mapping"]).await;
    assert!(code == 0 && out.contains("catchword resume annotation"), "{out}");
    assert_eq!(world.run(&["pause", "annotation", "--reason", "again"]).await.0, 1, "paused already");
    let (_, out, _) = world.run(&["status"]).await;
    assert!(out.contains("fixing the mapping"), "{out}");

    let key = world.annotate("acct:a", "x").await;
    let claimed = world.pass().await.claimed;
    let direct = world.catchword.index_now("annotation", [&key]).await;
    assert_eq!((claimed, world.version("annotation", &key).await, world.jobs().await), (0, None, 1), "{direct}");

    let (code, _, _) = world.run(&["resume", "annotation"]).await;
    assert_eq!(code, 0);
    assert_eq!(world.run(&["resume", "annotation"]).await.0, 1, "not paused any more");
    eventually("it goes on", async || {
        world.catchword.drain("test", &["annotation"]).await.unwrap();
        world.jobs().await == 0
    })
    .await;
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));

    let (_, out, _) = world.run(&["journal", "annotation"]).await;
    let what: Vec<&str> = out.lines().filter_map(|line| line.split_whitespace().nth(4)).collect();
    assert_eq!(&what[..2], ["resume", "pause"], "{out}");
    for wrong in [
        &["pause", "annotation"][..],
        &["pause", "nobody", "--reason", "x"],
        &["pause", "annotation", "--reason", " "],
        &["resume", "nobody"],
    ] {
        let (code, _, complained) = world.run(wrong).await;
        assert!(code == 2 && !complained.is_empty(), "{wrong:?}");
    }
}

/// A tag is what the application says it is: jobs of its changes may have the one of a reindex.
#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_that_is_called_off_stands_behind_everything_and_loses_no_change() {
    let world = World::new().await;
    world.sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:' || i, 'u', 'u' from generate_series(1, 1001) i").await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.sql("begin; set local catchword.tag = 'import'; update annotation set text = 'changed'; commit").await;
    let (code, said, errors) = world.run(&["reindex", "annotation", "--user", "acct:1", "--tag", "import"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    assert_eq!(world.one::<i64>("select catchword.call_off('annotation', 'import')").await, 1002);
    assert_eq!(world.all::<i32>("select distinct priority from catchword.job where collection = 'annotation'").await, [2000]);
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.jobs().await, 0);
    world.settle_and_compare().await;
}

/// It is for the moment in which a worker holds the job.
#[tokio::test(flavor = "multi_thread")]
async fn burying_a_job_that_somebody_holds_waits_and_says_so() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "held").await;
    let mut holder = world.pool.begin().await.unwrap();
    sqlx::query("select from catchword.job where key = $1 for update").bind(&key).execute(&mut *holder).await.unwrap();
    let refused = sqlx::query_scalar::<_, i64>("select catchword.bury('annotation', $1)").bind(&key).fetch_one(&world.pool).await;
    assert!(refused.unwrap_err().to_string().contains("lock timeout"));
    assert_eq!((world.jobs().await, world.one::<i64>("select count(*) from catchword.dead_job").await), (1, 0));

    let words = ["dead", "bury", "annotation", &key, "--yes"];
    let release = async {
        let began = "select query_start::text from pg_stat_activity where datname = current_database() and query like 'select catchword.bury(%' and wait_event_type = 'Lock'";
        let mut tries = std::collections::HashSet::new();
        eventually("its second try waits too", async || {
            tries.extend(world.all::<String>(began).await);
            tries.len() == 2
        })
        .await;
        holder.rollback().await.unwrap();
    };
    let ((code, said, errors), ()) = tokio::join!(world.run(&words), release);
    assert!(code == 0 && said.contains("buried: 1"), "{said}{errors}");
    assert!(errors.contains("another session holds a job") && errors.contains("waiting for it"), "{errors}");
}
