//! Fair among tenants: one's flood does not stand before everybody else's single writes, and lanes are only an order.

use std::collections::HashMap;
use std::time::Duration;

use catchword::database;
use catchword::job::{Cursor, Fairly, Job, Lanes, claim_fairly};

use crate::common::{Layout, World, eventually, start};

const BY_USER: &str = "delay = \"0s\"\nfair_by = \"userid\"";
const OTHERS: &str = "insert into annotation (userid, text, target_uri, target_uri_normalized) select 'acct:other' || n, 'other', 'u', 'u' from generate_series(1, 20) n";

impl World {
    /// So many inserts of one row each.
    async fn flood(&self, user: &str, rows: u32) {
        self.sql(&format!(
            "do $$ begin for n in 1..{rows} loop
               insert into annotation (userid, text, target_uri, target_uri_normalized) values ('{user}', 'flood', 'u', 'u');
             end loop; end $$"
        ))
        .await;
    }

    async fn lanes(&self, what: &str) -> Vec<Option<i16>> {
        self.all(&format!("select lane from catchword.job j where collection = 'annotation' and {what} order by id")).await
    }

    /// Claims batches of quick jobs until none is left, as one pass would.
    async fn claim_batches(&self, limit: u32, share: f64) -> Vec<Vec<Job>> {
        let mut transaction = database::begin(&self.pool).await.unwrap();
        let (mut lanes, mut from, mut batches) = (Lanes::default(), Cursor::TOP, Vec::new());
        loop {
            let Fairly { jobs, next } = claim_fairly(&mut transaction, "annotation", from, &mut lanes, limit, share).await.unwrap();
            batches.push(jobs);
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        // what is only dropped may still hold its locks when the next ones are claimed
        transaction.rollback().await.unwrap();
        batches
    }

    async fn lane_of(&self, user: &str) -> i16 {
        self.one(&format!("select catchword.lane('{user}')")).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn single_writes_of_others_are_claimed_in_the_first_two_batches_of_a_flood_and_every_job_once() {
    let world = World::with(Layout { annotation: BY_USER, ..Layout::default() }).await;
    world.flood("acct:flood", 10_000).await;
    world.sql(OTHERS).await;
    let others: Vec<String> = world.all("select id::text from annotation where text = 'other'").await;
    let batches = world.claim_batches(500, 1.0).await;
    let early = batches[..2].iter().flatten().filter(|job| others.contains(&job.key)).count();
    // who shares the flood's lane waits as long as without lanes
    let beside = world.lane_of("acct:flood").await;
    let sharing = world.all::<i16>("select lane from catchword.job j join annotation a on a.id::text = j.key where a.text = 'other'").await;
    assert_eq!(early, sharing.iter().filter(|lane| **lane != beside).count());
    assert!(early >= 15, "{early}");
    let mut ids: Vec<i64> = batches.iter().flatten().map(|job| job.id).collect();
    assert_eq!(ids.len(), 10_020);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10_020, "none twice");
    assert!(batches.iter().all(|batch| batch.len() <= 500));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_lanes_have_work_alike_time_decides_and_a_flood_behind_it_is_noticed() {
    let world = World::with(Layout { annotation: BY_USER, ..Layout::default() }).await;
    // somebody in each lane, who all write in turn
    world
        .sql(
            "insert into annotation (userid, text, target_uri, target_uri_normalized)
             select userid, 'alike', 'u', 'u' from generate_series(1, 15) as turn,
                    lateral (select distinct on (catchword.lane('acct:' || n)) 'acct:' || n from generate_series(1, 2000) n) as everybody (userid)
              order by turn, userid",
        )
        .await;
    world.flood("acct:flood", 3_000).await;
    world.sql(OTHERS).await;
    let text: HashMap<String, String> =
        sqlx::query_as("select id::text, text from annotation").fetch_all(&world.pool).await.unwrap().into_iter().collect();
    let batches = world.claim_batches(200, 1.0).await;
    let count = |batch: &[Job], what: &str| batch.iter().filter(|job| text[&job.key] == what).count();
    let ids = |batch: &[Job]| batch.iter().map(|job| job.id).collect::<Vec<_>>();
    assert!(batches[1..4].iter().all(|batch| ids(batch).is_sorted() && count(batch, "alike") == 200), "by time alone");
    let flooded = batches.iter().position(|batch| count(batch, "flood") > 100).unwrap();
    let beside = world.lane_of("acct:flood").await;
    let (early, late) = batches.split_at(flooded + 3);
    let shared: i64 =
        world.one(&format!("select count(*) from annotation where text = 'other' and catchword.lane(userid) = {beside}")).await;
    assert!(early.iter().map(|batch| count(batch, "other")).sum::<usize>() >= 20 - usize::try_from(shared).unwrap());
    assert!(late.iter().map(|batch| count(batch, "flood")).sum::<usize>() > 2_000, "the flood waits");
    let mut all: Vec<i64> = batches.iter().flat_map(|batch| ids(batch)).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!((all.len(), batches.iter().map(Vec::len).sum::<usize>()), (960 + 3_020, 960 + 3_020), "every job once");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_floods_have_equal_parts_and_a_share_is_never_passed_while_others_have_work() {
    let world = World::with(Layout { annotation: BY_USER, ..Layout::default() }).await;
    let (one, other) = ("acct:one", "acct:three");
    assert_ne!(world.lane_of(one).await, world.lane_of(other).await);
    world.flood(one, 3_000).await;
    world.flood(other, 3_000).await;
    let lane = Some(world.lane_of(one).await);
    let of_one = |batch: &[Job]| batch.iter().filter(|job| job.lane == lane).count();
    for batch in &world.claim_batches(400, 1.0).await[..10] {
        assert_eq!(batch.len(), 400);
        assert!((150..=250).contains(&of_one(batch)), "{}", of_one(batch));
    }
    for batch in &world.claim_batches(400, 0.25).await[..10] {
        assert!(of_one(batch) <= 100 && batch.len() - of_one(batch) <= 100, "{} of {}", of_one(batch), batch.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_writes_the_others_long_before_the_flood_is_over() {
    for quick in ["off", "25ms"] {
        let annotation = "delay = \"0s\"\nfair_by = \"userid\"\nfair_share = 0.5";
        let layout = Layout { annotation, gated: true, batch: 250, quick, tick: "* * * * * *", ..Layout::default() };
        let world = World::with(layout).await;
        world.flood("acct:flood", 10_000).await;
        world.sql(OTHERS).await;
        let beside = world.lane_of("acct:flood").await;
        let waiting = format!(
            "select count(*) from catchword.job j join annotation a on a.id::text = j.key where text = 'other' and lane <> {beside}"
        );
        let gate = world.gate.as_ref().unwrap();
        gate.delay(Duration::from_millis(100));
        let worker = start(&world).await;
        eventually("the others are settled", async || world.one::<i64>(&waiting).await == 0).await;
        let left = world.jobs().await;
        assert!(left > 3_000, "of the flood {left} are left");
        gate.reset();
        drop(worker);
        world.settle_and_compare().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_schedule_a_live_job_knows_the_tenants_lane_and_a_bulk_has_none() {
    let annotation = "delay = \"0s\"\nfair_by = \"userid\"\nwatch = [\"text\"]";
    let world = World::with(Layout { annotation, ..Layout::default() }).await;
    let (a, b) = (Some(world.lane_of("acct:a").await), Some(world.lane_of("acct:b").await));
    let drained = async || _ = world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.sql("insert into document (title, web_uri) values ('old', 'http://a/')").await;
    world.sql("insert into annotation (userid, text, target_uri, target_uri_normalized, document_id) values ('acct:a', 'x', 'u', 'u', 1), ('acct:b', 'y', 'u', 'u', 1)").await;
    assert_eq!(world.lanes("true").await, [a, b]);
    drained().await;
    world.sql("update annotation set text = text || '!' where userid = 'acct:b'").await;
    assert_eq!(world.lanes("true").await, [b], "only what is watched");
    drained().await;
    world.sql("update document set title = 'new'").await;
    world.sql("select catchword.expand_touches('annotation', 1000)").await;
    let mut both = [a, b];
    both.sort_unstable();
    let mut touched = world.lanes("name = 'index'").await;
    touched.sort_unstable();
    assert_eq!(touched, both);
    drained().await;
    world.sql("select catchword.schedule('annotation', array(select id::text from annotation order by userid))").await;
    assert_eq!(world.lanes("true").await, [a, b]);
    drained().await;
    world.sql("delete from annotation where userid = 'acct:a'").await;
    assert_eq!(world.lanes("true").await, [a]);
    drained().await;
    world
        .sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:a', 'u', 'u' from generate_series(1, 1001)")
        .await;
    assert_eq!(world.lanes("lane is not null").await, []);
    assert_eq!(world.jobs().await, 1001);
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_partitions_have_the_lane_of_their_tenant_too() {
    let sql = "create table part (id bigint primary key, owner text, catchword_revision bigint) partition by range (id);
               create table part_1 partition of part for values from (0) to (1000000);
               comment on column part.catchword_revision is 'catchword: revision';
               create view part_document as select id as key, catchword_revision as revision, json_build_object('text', owner) as body from part;";
    let more = "\n[[collection]]\nname = \"part\"\ntable = \"part\"\nkey = \"id\"\nview = \"part_document\"\nmapping = \"bystander.json\"\nfair_by = \"owner\"\n";
    let world = World::with(Layout { sql: sql.into(), more: more.into(), ..Layout::default() }).await;
    let lane = world.lane_of("a").await;
    world.sql("insert into part (id, owner) values (1, 'a'), (2, 'b'); update part set owner = 'a' where id = 2; delete from part where id = 1").await;
    let of_a: i64 = world.one(&format!("select count(*) from catchword.job where collection = 'part' and lane = {lane}")).await;
    assert_eq!(of_a, 3, "the insert, the update and the delete");
    world.sql("insert into part (id, owner) select n, 'a' from generate_series(11, 1511) n").await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'part' and lane is null").await, 501);
    world.catchword.drain("test", &["part"]).await.unwrap();
    world.sides_agree("part").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_fair_by_or_none_loses_no_job_and_a_renamed_column_fails_no_write() {
    let world = World::with(Layout { annotation: BY_USER, ..Layout::default() }).await;
    let file = world.folder.join("catchword.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    for fair_by in ["fair_by = \"groupid\"", "", "fair_by = \"userid\""] {
        world.flood("acct:a", 30).await;
        world.annotate("acct:b", "x").await;
        std::fs::write(&file, text.replace("fair_by = \"userid\"", fair_by)).unwrap();
        let (code, _, error) = world.run(&["migrate"]).await;
        assert_eq!(code, 0, "{error}");
        world.flood("acct:a", 30).await;
    }
    let kinds: i64 = world.one("select count(distinct lane is null) from catchword.job where collection = 'annotation'").await;
    assert_eq!(kinds, 2, "some have a lane, some have none");
    world.settle_and_compare().await;
    // its view, too, follows a renamed column
    world.sql("alter table annotation rename userid to owner").await;
    world.sql("insert into annotation (owner, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u')").await;
    world.sql("update annotation set text = 'changed'; delete from annotation where text is null").await;
    assert_eq!(world.lanes("lane is not null").await, []);
    let (code, said, _) = world.run(&["doctor"]).await;
    assert!(said.contains("fair_by: the configuration and the database differ"), "{code} {said}");
    let (code, _, error) = world.run(&["migrate"]).await;
    assert_ne!(code, 0);
    assert!(error.contains("no column userid") && error.contains("fair_by"), "{error}");
}
