//! What a worker does beside the loop: it notices an index that lost writes, audits without being asked, and sweeps old tombstones.

use catchword::upkeep::Upkeep;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::common::{Layout, World, eventually, start};
use crate::operate::metrics::scrape;

const SENTINEL: &str = "catchword-sentinel";

impl World {
    fn upkeep(&self) -> Upkeep {
        self.catchword.upkeep(&["annotation"])
    }

    /// One round, whenever the last one was.
    async fn keep_up(&self, upkeep: &mut Upkeep) {
        self.sql("update catchword.sentinel set renewed_at = renewed_at - interval '1 minute'").await;
        upkeep.round(&CancellationToken::new()).await.unwrap();
    }

    async fn standing(&self) -> Value {
        serde_json::to_value(self.catchword.status().await.unwrap()).unwrap()["collections"][0].clone()
    }

    /// Rounds and passes until the audit that was asked for has come to its end and everything is healed.
    async fn audited_and_healed(&self, upkeep: &mut Upkeep) {
        eventually("the audit has come to its end", async || {
            self.keep_up(upkeep).await;
            self.one::<i64>("select count(*) from catchword.audit where finished_at is null").await == 0
        })
        .await;
        eventually("everything is healed", async || {
            self.catchword.drain("test", &["annotation"]).await.unwrap();
            self.jobs().await == 0
        })
        .await;
        self.both_sides_agree().await;
    }

    /// Replaces the index of `annotation` by a copy that has only these documents, as a restored snapshot would.
    async fn replace_index(&self, kept: &[(String, i64, Value)]) {
        let index = self.index("annotation");
        let (_, seen) = self.http("GET", &format!("/{index}"), None).await;
        let seen = &seen[&index];
        self.http("DELETE", &format!("/{index}"), None).await;
        let body = json!({ "aliases": seen["aliases"], "mappings": seen["mappings"], "settings": { "number_of_replicas": 0 } });
        let (status, answer) = self.http("PUT", &format!("/{index}"), Some(body)).await;
        assert_eq!(status, 200, "{answer}");
        for (key, version, source) in kept {
            assert_eq!(self.put("annotation", key, *version, source.clone()).await, 201);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_was_replaced_by_an_old_copy_is_noticed_and_repaired() {
    let world = World::new().await;
    let mut upkeep = world.upkeep();
    let old: Vec<String> = [world.in_step("acct:a", "one").await, world.in_step("acct:a", "two").await].into();
    world.keep_up(&mut upkeep).await;
    let mut snapshot = Vec::new();
    for key in old.iter().map(String::as_str).chain(["catchword-sentinel"]) {
        snapshot.push((key.to_owned(), world.version("annotation", key).await.unwrap(), world.source("annotation", key).await.unwrap()));
    }
    assert_eq!(snapshot[2].2, json!({ "catchword_deleted": true }));

    world.sql(&format!("update annotation set text = 'newer' where id = '{}'", old[0])).await;
    world.sql(&format!("delete from annotation where id = '{}'", old[1])).await;
    let new = world.in_step("acct:a", "three").await;
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.standing().await["audit"]["lost"], Value::Null);
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit").await, 0);

    world.replace_index(&snapshot).await;
    assert!(world.found("annotation").await.contains(&old[1]), "the deleted one is back");
    world.keep_up(&mut upkeep).await;
    let lost = world.standing().await["audit"]["lost"].as_str().map(str::to_owned);
    assert!(lost.as_ref().is_none_or(|lost| lost.contains("another index")), "{lost:?}");
    assert!(world.one::<bool>("select lost_at is not null from catchword.sentinel").await);
    assert_eq!(world.one::<String>("select reason from catchword.audit").await, "lost writes");

    world.audited_and_healed(&mut upkeep).await;
    let mut left = [old[0].clone(), new];
    left.sort();
    assert_eq!(world.found("annotation").await.into_iter().filter(|key| left.contains(key)).count(), 2);
    assert!(!world.found("annotation").await.contains(&old[1]));
    let status = world.standing().await;
    assert_eq!((&status["audit"]["lost"], &status["audit"]["scheduled"]), (&Value::Null, &json!(3)), "{status}");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_went_back_behind_what_it_acknowledged_is_noticed() {
    let world = World::new().await;
    let mut upkeep = world.upkeep();
    world.keep_up(&mut upkeep).await;
    let first = world.version("annotation", "catchword-sentinel").await.unwrap();
    world.keep_up(&mut upkeep).await;
    let second = world.version("annotation", "catchword-sentinel").await.unwrap();
    assert!(second > first && second % 2 == 1, "{first} {second}");
    assert_eq!(world.one::<i64>("select revision from catchword.sentinel").await, second);

    // as if the last minute's writes were lost
    world.sql("update catchword.sentinel set revision = revision + 1000").await;
    world.keep_up(&mut upkeep).await;
    let lost: String = world.one("select lost from catchword.sentinel").await;
    assert!(lost.contains("went back"), "{lost}");
    world.audited_and_healed(&mut upkeep).await;
    assert_eq!(world.standing().await["audit"]["lost"], Value::Null);
    // it is noticed once, not every minute
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit").await, 1);

    // it is healed, and for ten minutes everybody who looks now and then hears of it
    let check = async || world.run(&["check"]).await.1;
    let said = check().await;
    assert!(said.contains("CatchwordIndexLostWrites annotation: the index lost acknowledged writes: it went back"), "{said}");
    let worker = start(&world).await;
    let flag = "catchword_index_lost_writes{collection=\"annotation\"}";
    assert_eq!(scrape(&world, &worker).await.value(flag), 1.0);
    world.sql("update catchword.audit set finished_at = finished_at - interval '5 minutes'").await;
    assert!(check().await.contains("CatchwordIndexLostWrites"));
    world.sql("update catchword.audit set finished_at = finished_at - interval '5 minutes'").await;
    let said = check().await;
    assert!(!said.contains("CatchwordIndexLostWrites"), "{said}");
    eventually("the metric says so too", async || scrape(&world, &worker).await.value(flag) == 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_shard_of_several_lost_is_noticed() {
    let world = World::with(Layout { shards: Some(5), ..Layout::default() }).await;
    let index = world.index("annotation");
    let mut upkeep = world.upkeep();
    world.keep_up(&mut upkeep).await;
    let documents: i32 = world.one("select documents from catchword.sentinel").await;
    assert!(documents >= 5, "{documents}");
    let ids: Vec<String> = (0..documents).map(|n| if n == 0 { SENTINEL.to_owned() } else { format!("{SENTINEL}-{n}") }).collect();
    world.http("POST", &format!("/{index}/_refresh"), None).await;
    let mut alone = None;
    for shard in 0..5 {
        let query = json!({ "query": { "ids": { "values": ids } } });
        let (status, found) = world.http("POST", &format!("/{index}/_search?preference=_shards:{shard}"), Some(query)).await;
        let found = found["hits"]["hits"].as_array().unwrap_or_else(|| panic!("{status} {found}")).clone();
        assert!(!found.is_empty(), "shard {shard} has no sentinel");
        alone = found.iter().filter_map(|hit| hit["_id"].as_str()).find(|id| *id != SENTINEL).map(str::to_owned).or(alone);
    }
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.sentinel where lost is not null").await, 0);

    // as if the shard of one of them had gone back to before its first write
    let alone = alone.unwrap();
    let (status, _) = world.http("DELETE", &format!("/{index}/_doc/{alone}"), None).await;
    assert_eq!(status, 200);
    world.keep_up(&mut upkeep).await;
    let lost: String = world.one("select lost from catchword.sentinel").await;
    assert!(lost.contains("is gone"), "{lost}");
    world.audited_and_healed(&mut upkeep).await;
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit").await, 1, "it is noticed once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_with_one_sentinel_of_an_older_version_gets_the_others_without_an_alarm() {
    let world = World::with(Layout { shards: Some(3), ..Layout::default() }).await;
    let mut upkeep = world.upkeep();
    world.keep_up(&mut upkeep).await;
    let index = world.index("annotation");
    for n in 1..world.one::<i32>("select documents from catchword.sentinel").await {
        world.http("DELETE", &format!("/{index}/_doc/{SENTINEL}-{n}"), None).await;
    }
    world.sql("update catchword.sentinel set documents = 1").await;
    world.keep_up(&mut upkeep).await;
    assert!(world.one::<bool>("select documents > 1 and lost is null from catchword.sentinel").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_and_counts_never_see_the_sentinel() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "one").await;
    let before = world.found("annotation").await;
    world.keep_up(&mut world.upkeep()).await;
    assert!(world.version("annotation", "catchword-sentinel").await.is_some());
    assert_eq!(world.found("annotation").await, before);
    assert!(before.contains(&key));
    assert_eq!(world.standing().await["documents"], json!(before.len()));
    let (code, said, _) = world.run(&["audit", "annotation", "--content"]).await;
    assert_eq!(code, 0, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_audited_when_its_time_has_come_and_what_differs_is_repaired() {
    let world = World::new().await;
    let mut upkeep = world.upkeep();
    let key = world.in_step("acct:a", "one").await;
    world.put("annotation", &key, world.revision(&key).await + 100, json!({ "text": "not ours" })).await;
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit").await, 0, "it was attached a moment ago");
    let (_, said, _) = world.run(&["status"]).await;
    assert!(said.contains("verified  never"), "{said}");

    world.sql("update catchword.collection set attached_at = now() - interval '25 hours'").await;
    world.keep_up(&mut upkeep).await;
    world.audited_and_healed(&mut upkeep).await;
    assert_eq!(world.one::<String>("select reason from catchword.audit").await, "schedule");
    let (_, said, _) = world.run(&["status"]).await;
    assert!(said.contains("verified  up to") && said.contains("1 repaired"), "{said}");
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit").await, 1, "once a day");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_asks_for_an_audit_of_the_content() {
    let world = World::new().await;
    world.pass().await;
    world.sql("update catchword.installation set system_identifier = system_identifier - 1").await;
    world.pass().await;
    let asked: Vec<String> =
        world.all("select collection || ' ' || reason || ' ' || content || ' ' || repair from catchword.audit where collection <> 'catchword_canary' order by 1").await;
    assert_eq!(asked, ["annotation another server true true", "bystander another server true true"]);
    world.pass().await;
    assert_eq!(
        world.one::<i64>("select max(asked) from (select count(*) as asked from catchword.audit group by collection) as a").await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn old_tombstones_go_under_their_versions_and_their_records_after_them() {
    let world = World::new().await;
    let mut upkeep = world.upkeep();
    let keys = [("gone"), ("back"), ("young"), ("hidden")];
    let mut ids = Vec::new();
    for name in keys {
        ids.push(world.in_step("acct:a", name).await);
    }
    let [gone, back, young, hidden] = [&ids[0], &ids[1], &ids[2], &ids[3]];
    world.sql(&format!("update annotation set deleted = true where id = '{hidden}'")).await;
    world.sql(&format!("delete from annotation where id in ('{gone}', '{back}', '{young}')")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let tombstone = world.version("annotation", gone).await.unwrap();
    world
        .sql(&format!(
            "insert into annotation (id, userid, text, target_uri, target_uri_normalized) values ('{back}', 'acct:a', 'again', 'u', 'u')"
        ))
        .await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let came_back = world.version("annotation", back).await;
    world
        .sql(&format!(
            "update catchword.record set recorded_at = now() - interval '8 days' where key <> '{young}' and collection = 'annotation'"
        ))
        .await;

    // there is work to do
    let busy = world.annotate("acct:a", "due").await;
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.version("annotation", gone).await, Some(tombstone));
    world.catchword.drain("test", &["annotation"]).await.unwrap();

    let mut upkeep = world.upkeep();
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.version("annotation", gone).await, None);
    assert_eq!(world.version("annotation", back).await, came_back);
    assert!(world.version("annotation", young).await.is_some() && world.version("annotation", hidden).await.is_some());
    let left: Vec<String> = world.all("select key from catchword.record where collection = 'annotation'").await;
    assert!(left.contains(young) && !left.contains(gone) && !left.contains(back), "{left:?}");

    // what never was stays so, whoever asks for it
    world.sql(&format!("select catchword.schedule('annotation', array['{gone}', '{back}', '{busy}'])")).await;
    world.settle_and_compare().await;
    assert_eq!(world.version("annotation", gone).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_comes_back_under_a_sweep_keeps_its_document() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    let key = world.in_step("acct:a", "text").await;
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.sql("update catchword.record set recorded_at = now() - interval '8 days' where collection = 'annotation'").await;

    // it has seen the tombstone, and its delete is on its way
    gate.hold("items.delete");
    let (mut upkeep, stop) = (world.upkeep(), CancellationToken::new());
    let coming_back = async {
        gate.holds_something().await;
        let again = "insert into annotation (id, userid, text, target_uri, target_uri_normalized)";
        world.sql(&format!("{again} values ('{key}', 'acct:a', 'again', 'u', 'u')")).await;
        world.past_the_gate().await.drain("test", &["annotation"]).await.unwrap();
        gate.pass();
    };
    // a delete that is held for long fails; it arrives all the same
    let (_, ()) = tokio::join!(upkeep.round(&stop), coming_back);
    gate.late_requests_are_answered().await;
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_comes_back_and_is_deleted_again_under_a_sweep_keeps_its_tombstone() {
    let world = World::gated().await;
    let gate = world.gate.as_ref().unwrap();
    let (mut upkeep, stop) = (world.upkeep(), CancellationToken::new());
    // the sentinel is renewed and will not be looked at
    world.keep_up(&mut upkeep).await;
    let key = world.in_step("acct:a", "text").await;
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.sql("update catchword.record set recorded_at = now() - interval '8 days' where collection = 'annotation'").await;

    // it has picked the old delete, and looks for its tombstone
    gate.hold("_mget");
    let deleting_again = async {
        gate.holds_something().await;
        let again = "insert into annotation (id, userid, text, target_uri, target_uri_normalized)";
        world.sql(&format!("{again} values ('{key}', 'acct:a', 'again', 'u', 'u')")).await;
        world.sql(&format!("delete from annotation where id = '{key}'")).await;
        world.past_the_gate().await.drain("test", &["annotation"]).await.unwrap();
        gate.pass();
    };
    let (swept, ()) = tokio::join!(upkeep.round(&stop), deleting_again);
    swept.unwrap();
    let record: i64 = world.one(&format!("select revision from catchword.record where key = '{key}'")).await;
    assert_eq!(world.version("annotation", &key).await, Some(record), "the second delete is not old");
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sweep_left_half_done_is_no_difference() {
    let world = World::new().await;
    let (old, young) = (world.in_step("acct:a", "old").await, world.in_step("acct:a", "young").await);
    world.sql(&format!("delete from annotation where id in ('{old}', '{young}')")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.sql(&format!("update catchword.record set recorded_at = now() - interval '8 days' where key = '{old}'")).await;
    // it died after the tombstone and before the record; of the other, the index was robbed
    for key in [&old, &young] {
        let (status, _) = world.http("DELETE", &format!("/{}/_doc/{key}", world.index("annotation")), None).await;
        assert_eq!(status, 200);
    }
    let (code, said, _) = world.run(&["audit", "annotation", "--json"]).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said[0]["differences"], &said[0]["examples"][0]["key"]), (1, &json!({ "untold": 1 }), &json!(young)), "{said:#}");
    world.keep_up(&mut world.upkeep()).await;
    assert_eq!(world.all::<String>("select key from catchword.record where collection = 'annotation'").await, [young]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_that_another_delete_replaced_meanwhile_keeps_its_record() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "text").await;
    world.sql(&format!("delete from annotation where id = '{key}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let old: i64 = world.one(&format!("select revision from catchword.record where key = '{key}'")).await;
    // deleted again, between the sweep's look and its forgetting
    world.sql(&format!("select catchword.record_gone('annotation', array['{key}'])")).await;
    let forgotten: i64 = world.one(&format!("select catchword.forget_records('annotation', array['{key}'], array[{old}::bigint])")).await;
    assert_eq!(forgotten, 1, "the old one");
    assert!(world.one::<i64>(&format!("select revision from catchword.record where key = '{key}'")).await > old, "the later one stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_dead_letter_goes_only_when_its_key_is_in_step() {
    let world = World::new().await;
    let (fine, missing) = (world.in_step("acct:a", "fine").await, world.annotate("acct:a", "missing").await);
    world.sql("delete from catchword.job").await;
    for (n, key) in [&fine, &missing].into_iter().enumerate() {
        world
            .sql(&format!(
                "insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, died_at, reason)
                 values (-{n} - 1, 'index', 'annotation', '{key}', now(), now(), now(), 1, 'test', 5, now() - interval '8 days', 'refused')"
            ))
            .await;
    }
    world.keep_up(&mut world.upkeep()).await;
    assert_eq!(world.all::<String>("select key from catchword.dead_job where id < 0").await, [missing]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_freshness_are_forgotten_after_two_days() {
    let world = World::new().await;
    let ago = "insert into catchword.freshness (minute, collection, session, changes, slow) select now() - make_interval(hours => h), 'annotation', 1, 1, 0 from unnest(array[1, 47, 49, 999]) h";
    world.sql(ago).await;
    world.keep_up(&mut world.upkeep()).await;
    let left: Vec<i32> = world
        .all("select round(extract(epoch from now() - minute) / 3600)::integer from catchword.freshness where session = 1 order by 1")
        .await;
    assert_eq!(left, [1, 47]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_not_there_keeps_no_other_from_being_renewed() {
    let world = World::new().await;
    world
        .sql(&format!(
            "update catchword.collection set targets = targets || '{}annotation-000002'::text where name = 'annotation'",
            world.prefix
        ))
        .await;
    let mut upkeep = world.another().await.upkeep(&[]);
    assert!(upkeep.round(&CancellationToken::new()).await.is_err(), "and it is reported");
    let renewed: Vec<String> = world.all("select target from catchword.sentinel order by 1").await;
    assert_eq!(renewed, [world.index("annotation"), world.index("bystander")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_was_dropped_on_purpose_and_made_again_is_not_lost() {
    let world = World::new().await;
    world.in_step("acct:a", "one").await;
    let second = format!("{}annotation-000002", world.prefix);
    let uuid = async || {
        let mut upkeep = world.another().await.upkeep(&["annotation"]);
        world.keep_up(&mut upkeep).await;
        world.one::<String>(&format!("select index_uuid from catchword.sentinel where target = '{second}'")).await
    };
    let commands = [&["rebuild", "annotation"][..], &["rebuild", "annotation", "--back"], &["rebuild", "annotation", "--drop", "--yes"]];
    let mut first = String::new();
    for words in [commands[0], commands[1], commands[2], commands[0]] {
        let (code, said, errors) = world.run(words).await;
        assert_eq!(code, 0, "{said}{errors}");
        if first.is_empty() {
            first = uuid().await;
        }
    }
    assert_ne!(uuid().await, first, "another index under the same name");
    assert_eq!(world.one::<i64>("select count(*) from catchword.sentinel where lost is not null").await, 0);
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit where reason = 'lost writes'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_repaired_still_counts_when_its_results_are_cleared_away() {
    let world = World::new().await;
    world
        .sql(
            "insert into catchword.audit (collection, targets, whole, repair, content, reason, scheduled, finished_at)
             select name, targets, true, true, false, 'operator', scheduled, now() - make_interval(days => days)
               from catchword.collection, (values (7, 100), (20, 91), (300, 89)) as result (scheduled, days) where name = 'annotation'",
        )
        .await;
    assert_eq!(world.standing().await["audit"]["repaired"], json!(327));
    world.keep_up(&mut world.upkeep()).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit").await, 1);
    assert_eq!(world.standing().await["audit"]["repaired"], json!(327));
    world.keep_up(&mut world.upkeep()).await;
    assert_eq!(world.standing().await["audit"]["repaired"], json!(327), "it is counted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_that_never_came_to_its_end_does_not_put_off_the_daily_one() {
    let world = World::new().await;
    let mut upkeep = world.upkeep();
    world.sql("update catchword.collection set attached_at = now() - interval '25 hours'").await;
    let operators = async |finished: &str| {
        world
            .sql(&format!(
                "insert into catchword.audit (collection, targets, whole, repair, content, reason, finished_at)
                 select name, targets, true, false, false, 'operator', {finished} from catchword.collection where name = 'annotation'"
            ))
            .await
    };
    let scheduled = "select count(*) from catchword.audit where reason = 'schedule'";
    operators("now()").await;
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.one::<i64>(scheduled).await, 0, "all of it was compared just now");
    world.sql("delete from catchword.audit").await;
    operators("null").await;
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.one::<i64>(scheduled).await, 1, "nothing was compared");
    // its own is gone on with, and not asked for again
    eventually("it has come to its end", async || {
        world.keep_up(&mut upkeep).await;
        world.one::<bool>("select finished_at is not null from catchword.audit where reason = 'schedule'").await
    })
    .await;
    world.keep_up(&mut upkeep).await;
    assert_eq!(world.one::<i64>(scheduled).await, 1, "once a day");
}

/// A touch gave the row its version: without the record it would fall.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_a_row_needs_stays_and_goes_when_the_row_has_passed_it() {
    let world = World::new().await;
    let (key, reborn) = (world.in_step("acct:a", "text").await, world.in_step("acct:b", "text").await);
    world.sql(&format!("select catchword.touch('annotation', array['{key}'])")).await;
    // below the delete that it waited for, as an insert of an overlapping transaction is
    world
        .sql(&format!("with gone as (delete from annotation where id = '{reborn}' returning *) insert into annotation select * from gone"))
        .await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let versions = (world.revision(&key).await, world.revision(&reborn).await);
    let old = "update catchword.record set recorded_at = now() - interval '8 days' where collection = 'annotation'";
    let kept = "select count(*) from catchword.record where collection = 'annotation' and recorded_at > now() - interval '1 day'";
    for _ in 0..2 {
        world.sql(old).await;
        world.keep_up(&mut world.upkeep()).await;
        assert_eq!(world.one::<i64>(kept).await, 2, "looked at again in a week");
        assert_eq!((world.revision(&key).await, world.revision(&reborn).await), versions);
    }
    world.sql("update annotation set text = 'changed'").await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.sql(old).await;
    world.keep_up(&mut world.upkeep()).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.record where collection = 'annotation'").await, 0, "nothing needs them");
    world.settle_and_compare().await;
}

/// An insert that was open while its key's delete was swept: the record that its version comes from is not forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_below_which_a_row_came_meanwhile_is_not_forgotten() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "text").await;
    world
        .sql(&format!("with gone as (delete from annotation where id = '{key}' returning *) insert into annotation select * from gone"))
        .await;
    let recorded: i64 = world.one(&format!("select revision from catchword.record where key = '{key}'")).await;
    let forget = format!("select catchword.forget_records('annotation', array['{key}'], array[{recorded}::bigint])");
    assert_eq!(world.one::<i64>(&forget).await, 0);
    world.sql(&format!("update annotation set text = 'changed' where id = '{key}'")).await;
    assert_eq!(world.one::<i64>(&forget).await, 1);
}
