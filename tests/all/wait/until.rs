//! Waiting until a write is in the index, or until search shows it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catchword::{Became, Catchword, Error, Key, Stored, Until, Waited};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{bury, settle};
use crate::attach::collection_lines;
use crate::common::{Layout, World, eventually};

/// Longer than a busy machine takes; whoever waits for so long waits in vain.
const LONG: Duration = Duration::from_secs(120);

async fn wait(catchword: &Catchword, key: &str, until: Until, limit: Duration) -> Became {
    wait_in(catchword, "annotation", key, until, limit).await
}

async fn wait_in(catchword: &Catchword, collection: &str, key: &str, until: Until, limit: Duration) -> Became {
    let mut waited = catchword.wait_until(collection, [key], until, limit).await.unwrap();
    assert_eq!((waited.len(), waited[0].key.as_str()), (1, key));
    waited.remove(0).became
}

impl World {
    /// What search shows now of a key, without a refresh of the test's own.
    async fn shown(&self, collection: &str, id: &str) -> Option<i64> {
        let query = json!({ "version": true, "_source": false, "query": { "ids": { "values": [id] } } });
        let (status, answer) = self.http("POST", &format!("/{}/_search", self.alias(collection)), Some(query)).await;
        assert_eq!(status, 200, "{answer}");
        answer["hits"]["hits"][0]["_version"].as_i64()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_waited_for_until_the_index_has_it_and_until_search_shows_it() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "x").await;
    let revision = world.revision(&key).await;
    for until in [Until::Indexed, Until::Searchable] {
        let waiting = wait(&world.catchword, &key, until, Duration::ZERO).await;
        assert_eq!(waiting, Became::Waiting("it is not in the index yet".into()), "nobody has worked on it");
    }
    let waited = tokio::spawn({
        let (catchword, key) = (world.catchword.clone(), key.clone());
        async move { wait(&catchword, &key, Until::Searchable, LONG).await }
    });
    settle(&world, &world.catchword, "annotation").await;
    assert_eq!(waited.await.unwrap(), Became::Searchable);
    assert_eq!(world.shown("annotation", &key).await, Some(revision), "a search of anybody's shows it");
    assert_eq!(wait(&world.catchword, &key, Until::Indexed, Duration::ZERO).await, Became::Indexed);

    // an update is not there yet, though search shows the row as it was
    world.sql(&format!("update annotation set text = 'y' where id = '{key}'")).await;
    assert_eq!(wait(&world.catchword, &key, Until::Searchable, Duration::ZERO).await, Became::Waiting("the index has an older one".into()));
    settle(&world, &world.catchword, "annotation").await;
    assert_eq!(wait(&world.catchword, &key, Until::Searchable, LONG).await, Became::Searchable);
    assert_eq!(world.shown("annotation", &key).await, Some(world.revision(&key).await));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_indexed_and_not_refreshed_yet_is_indexed_and_not_searchable() {
    let world = World::new().await;
    let off = json!({ "index": { "refresh_interval": "-1" } });
    world.http("PUT", &format!("/{}/_settings", world.index("annotation")), Some(off)).await;
    let key = world.in_step("acct:a", "x").await;
    let started = Instant::now();
    assert_eq!(wait(&world.catchword, &key, Until::Searchable, Duration::from_millis(700)).await, Became::Indexed);
    assert!(started.elapsed() >= Duration::from_millis(700), "it waited");
    assert_eq!(world.shown("annotation", &key).await, None);
    let waited = tokio::spawn({
        let (catchword, key) = (world.catchword.clone(), key.clone());
        async move { wait(&catchword, &key, Until::Searchable, LONG).await }
    });
    world.http("POST", &format!("/{}/_refresh", world.index("annotation")), None).await;
    assert_eq!(waited.await.unwrap(), Became::Searchable);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_and_a_hidden_row_have_come_when_search_no_longer_finds_them() {
    let world = World::new().await;
    for (n, change) in
        ["delete from annotation where id = $1", "update annotation set deleted = true where id = $1"].into_iter().enumerate()
    {
        let key = world.in_step("acct:a", "x").await;
        assert_eq!(wait(&world.catchword, &key, Until::Searchable, LONG).await, Became::Searchable);
        let off = |interval: serde_json::Value| Some(json!({ "index": { "refresh_interval": interval } }));
        let settings = format!("/{}/_settings", world.index("annotation"));
        world.http("PUT", &settings, off(json!("-1"))).await;
        sqlx::query(change).bind(Uuid::parse_str(&key).unwrap()).execute(&world.pool).await.unwrap();
        let waiting = wait(&world.catchword, &key, Until::Indexed, Duration::ZERO).await;
        assert!(matches!(waiting, Became::Waiting(_)), "{n}: {waiting}");
        settle(&world, &world.catchword, "annotation").await;
        assert_eq!(wait(&world.catchword, &key, Until::Indexed, Duration::ZERO).await, Became::Indexed, "{n}: the tombstone is there");
        assert_eq!(wait(&world.catchword, &key, Until::Searchable, Duration::ZERO).await, Became::Indexed, "{n}: search still finds it");
        assert!(world.shown("annotation", &key).await.is_some());
        world.http("PUT", &settings, off(serde_json::Value::Null)).await;
        assert_eq!(wait(&world.catchword, &key, Until::Searchable, LONG).await, Became::Searchable, "{n}");
        assert_eq!(world.shown("annotation", &key).await, None);
    }
    // what never was is not found
    assert_eq!(wait(&world.catchword, &Uuid::new_v4().to_string(), Until::Searchable, LONG).await, Became::Searchable);
}

/// The write that was waited for never reaches the index: a later one of the same row comes first.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_a_later_one_overtook_is_superseded() {
    for until in [Until::Indexed, Until::Searchable] {
        let world = World::gated().await;
        let key = world.annotate("acct:a", "first").await;
        let (revision, gate) = (world.revision(&key).await, world.gate.as_ref().unwrap());
        gate.hold("_mget");
        let waited = tokio::spawn({
            let (catchword, key) = (world.catchword.clone(), key.clone());
            async move { catchword.wait_until("annotation", [key], until, LONG).await.unwrap().remove(0) }
        });
        // its revision is read, and its first look is under way
        gate.holds_something().await;
        world.sql(&format!("update annotation set text = 'second' where id = '{key}'")).await;
        settle(&world, &world.past_the_gate().await, "annotation").await;
        gate.pass();
        let Waited { revision: meant, became, .. } = waited.await.unwrap();
        assert_eq!((meant, became), (Some(revision), Became::Superseded));
        if until == Until::Searchable {
            assert_eq!(world.shown("annotation", &key).await, Some(world.revision(&key).await), "search shows the later one");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_committed_is_not_taken_for_a_later_write() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    let ahead = world.revision(&key).await + 4_000;
    assert_eq!(world.put("annotation", &key, ahead, json!({ "text": "from elsewhere" })).await, 200);
    let waiting = wait(&world.catchword, &key, Until::Indexed, Duration::ZERO).await;
    assert_eq!(waiting, Became::Waiting("the index is ahead of Postgres".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_was_given_up_is_dead_at_once_and_says_why() {
    let world = World::new().await;
    world.sql("alter table annotation drop constraint annotation_names_length").await;
    let key = world.annotate(&"x".repeat(40_000), "x").await;
    let waited = tokio::spawn({
        let (catchword, key) = (world.catchword.clone(), key.clone());
        async move { wait(&catchword, &key, Until::Searchable, LONG).await }
    });
    bury(&world).await;
    let started = Instant::now();
    assert_eq!(waited.await.unwrap(), Became::Dead("refused".into()));
    assert!(started.elapsed() < LONG / 2, "it does not wait for the limit");
    assert_eq!(wait(&world.catchword, &key, Until::Indexed, LONG).await, Became::Dead("refused".into()));
    // a later write is on its way again, while the letter is still there
    world.sql(&format!("update annotation set userid = 'acct:a' where id = '{key}'")).await;
    assert!(matches!(wait(&world.catchword, &key, Until::Indexed, Duration::ZERO).await, Became::Waiting(_)));
    settle(&world, &world.catchword, "annotation").await;
    assert_eq!(wait(&world.catchword, &key, Until::Searchable, LONG).await, Became::Searchable);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_elasticsearch_is_down_or_a_collection_paused_it_waits_and_does_not_fail() {
    let world = World::gated().await;
    let key = world.annotate("acct:a", "x").await;
    let gate = world.gate.as_ref().unwrap();
    gate.refuse();
    for limit in [Duration::ZERO, Duration::from_millis(900)] {
        let started = Instant::now();
        let waiting = wait(&world.catchword, &key, Until::Searchable, limit).await;
        assert!(matches!(waiting, Became::Waiting(_)), "{waiting}");
        assert!(started.elapsed() >= limit);
    }
    // a server that takes the question and never answers
    gate.pass();
    gate.hold("_mget");
    let waiting = wait(&world.catchword, &key, Until::Searchable, Duration::ZERO).await;
    assert!(matches!(waiting, Became::Waiting(_)), "{waiting}");
    gate.refuse();
    // the breaker opens, and from then on nothing is sent
    for _ in 0..3 {
        world.catchword.index_now("annotation", [&key]).await;
    }
    gate.pass();
    gate.passed();
    let waiting = wait(&world.catchword, &key, Until::Searchable, Duration::from_millis(300)).await;
    assert!(matches!(&waiting, Became::Waiting(_)), "{waiting}");
    assert_eq!(gate.passed().len(), 0, "nothing is sent while the breaker is open");

    let other = world.past_the_gate().await;
    world.sql("select catchword.pause('annotation', 'the mapping is being changed')").await;
    let paused = world.past_the_gate().await;
    let Became::Waiting(why) = wait(&paused, &key, Until::Indexed, Duration::ZERO).await else { panic!() };
    assert!(why.contains("paused") && why.contains("the mapping is being changed"), "{why}");
    world.sql("select catchword.resume('annotation')").await;
    settle(&world, &other, "annotation").await;
    assert_eq!(wait(&paused, &key, Until::Searchable, LONG).await, Became::Searchable, "a look tells, whatever this process last heard");
    // the breaker closes by a probe of the waiting process' own
    assert_eq!(wait(&world.catchword, &key, Until::Searchable, LONG).await, Became::Searchable);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_several_columns_and_documents_with_ids_of_their_own_are_waited_for() {
    let world = World::with(Layout {
        sql: "create table place (tenant integer, name text, text text, catchword_revision bigint, primary key (tenant, name));
              comment on column place.catchword_revision is 'catchword: revision';
              create view place_document as select tenant, name, catchword_revision as revision, json_build_object('text', text) as body from place;
              create table page (id bigint primary key, slug text, text text, catchword_revision bigint);
              comment on column page.catchword_revision is 'catchword: revision';
              create view page_document as select id as key, slug as id, catchword_revision as revision, json_build_object('text', text) as body from page;"
            .into(),
        more: collection_lines("place", "delay = \"0s\"").replace("key = \"id\"", "key = [\"tenant\", \"name\"]")
            + &collection_lines("page", "delay = \"0s\""),
        ..Layout::default()
    })
    .await;
    world.sql("insert into place values (7, 'a/b%', 'x'), (8, 'c', 'y'); insert into page values (1, 'one', 'x'), (2, 'two', 'y')").await;
    let places = [Key::from((7, "a/b%")).to_string(), "8/c".to_owned()];
    for (collection, keys) in [("place", places.to_vec()), ("page", vec!["1".into(), " 2".into(), "1".into()])] {
        let became = async |limit| {
            let waited = world.catchword.wait_until(collection, &keys, Until::Searchable, limit).await.unwrap();
            assert_eq!(waited.iter().map(|key| &key.key).collect::<Vec<_>>(), keys.iter().collect::<Vec<_>>(), "each, in their order");
            waited
        };
        assert!(became(Duration::ZERO).await.iter().all(|key| matches!(key.became, Became::Waiting(_))));
        settle(&world, &world.catchword, collection).await;
        let came = became(LONG).await;
        assert!(came.iter().all(|key| key.became == Became::Searchable), "{came:?}");
    }
    assert!(world.shown("page", "one").await.is_some());
    world.sql("delete from page where id = 1").await;
    settle(&world, &world.catchword, "page").await;
    assert_eq!(wait_in(&world.catchword, "page", "1", Until::Searchable, LONG).await, Became::Searchable);
    assert_eq!(world.shown("page", "one").await, None);
}

/// Two indices must agree before a job is settled; whoever waits asks for the one that readers see.
#[tokio::test(flavor = "multi_thread")]
async fn during_a_rebuild_the_readers_index_counts() {
    let world = World::new().await;
    let key = world.in_step("acct:a", "x").await;
    let other = world.another().await;
    let second = world.second_index().await;
    assert_eq!(wait(&world.catchword, &key, Until::Searchable, LONG).await, Became::Searchable, "the new one has nothing yet");
    // the readers move, and this process has not heard of it: what it would look at is not what they see
    let (first, alias) = (world.index("annotation"), world.alias("annotation"));
    let hidden = json!({ "bool": { "must_not": { "term": { "catchword_deleted": true } } } });
    let actions = json!({ "actions": [
        { "remove": { "index": first, "alias": alias } }, { "add": { "index": second, "alias": alias, "filter": hidden } }] });
    assert_eq!(world.http("POST", "/_aliases", Some(actions)).await.0, 200);
    world.sql("update catchword.collection set targets = array[targets[2], targets[1]] where name = 'annotation'").await;
    for until in [Until::Indexed, Until::Searchable] {
        let waiting = wait(&other, &key, until, Duration::from_millis(300)).await;
        assert!(matches!(waiting, Became::Waiting(_)), "{until:?}: {waiting}");
    }
    world.sql(&format!("select catchword.schedule('annotation', array['{key}'])")).await;
    settle(&world, &world.another().await, "annotation").await;
    assert_eq!(wait(&other, &key, Until::Searchable, LONG).await, Became::Searchable);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_wait_share_their_requests() {
    let world = Arc::new(World::gated().await);
    let mut keys = Vec::new();
    for n in 0..100 {
        keys.push(world.annotate("acct:a", &n.to_string()).await);
    }
    let gate = world.gate.as_ref().unwrap();
    // a look takes a tenth of a second at least, so whoever comes meanwhile must wait for the next one
    gate.delay(Duration::from_millis(100));
    gate.passed();
    let limit = Duration::from_secs(2);
    let waiting = futures_util::future::join_all(keys.iter().map(|key| wait(&world.catchword, key, Until::Searchable, limit))).await;
    assert!(waiting.iter().all(|became| matches!(became, Became::Waiting(_))));
    let requests = gate.passed().len();
    // alone each would look as often as all of them together
    assert!((2..=2 * 21).contains(&requests), "{requests} requests");
    assert!(gate.most_in_flight() <= 2, "one look at a time");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_directly_is_searchable_within_the_wait() {
    let world = World::new().await;
    let kept = world
        .catchword
        .store_and_schedule("annotation", async |tx: &mut PgConnection| {
            let insert = "insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u') returning id";
            let id: Uuid = sqlx::query_scalar(insert).fetch_one(tx).await?;
            Ok::<_, Error>(Stored::new(id, [id]))
        })
        .await
        .unwrap();
    let key = kept.value.to_string();
    if !matches!(kept.direct, catchword::Direct::Indexed) {
        settle(&world, &world.catchword, "annotation").await;
    }
    let waited = world.catchword.wait_until("annotation", [kept.value], Until::Searchable, LONG).await.unwrap().remove(0);
    assert_eq!((waited.revision, &waited.became), (kept.revisions.get(&key).copied(), &Became::Searchable));
    assert!(waited.has_come(Until::Searchable) && waited.has_come(Until::Indexed));
    assert_eq!(world.jobs().await, if kept.direct == catchword::Direct::Indexed { 1 } else { 0 }, "waiting settles nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_waited_for_is_refused() {
    let world = World::new().await;
    let ask = async |collection: &str, keys: Vec<String>| {
        world.catchword.wait_until(collection, keys, Until::Indexed, LONG).await.map_err(|error| error.to_string())
    };
    for (collection, keys, says) in [
        ("nobody", vec!["1".into()], "nobody"),
        ("annotation", vec!["x".into()], "not a key of annotation, whose keys are of type uuid"),
        ("annotation", vec![String::new()], "the key is empty"),
        ("annotation", (0..1001).map(|n| n.to_string()).collect(), "1001 keys are too many for one wait; wait for 1000 at most"),
    ] {
        let refused = ask(collection, keys).await.unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }
    assert_eq!(ask("annotation", vec![]).await, Ok(vec![]));
    // a Postgres that does not answer holds nobody for longer than the limit
    let mut holder = world.pool.begin().await.unwrap();
    sqlx::query("lock table catchword.record").execute(&mut *holder).await.unwrap();
    let started = Instant::now();
    let late = world.catchword.wait_until("annotation", [Uuid::new_v4()], Until::Indexed, Duration::from_millis(600)).await.unwrap_err();
    assert!(late.to_string().contains("did not say within the limit") && started.elapsed() < Duration::from_secs(4), "{late}");
    holder.rollback().await.unwrap();
    eventually("not served", async || {
        world.sql("alter table annotation disable trigger user").await;
        _ = world.catchword.sync("test", &[]).await;
        ask("annotation", vec![Uuid::new_v4().to_string()]).await.is_err_and(|error| error.contains("not served"))
    })
    .await;
}
