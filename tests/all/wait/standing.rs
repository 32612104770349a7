//! `catchword.standing`: what is known of a key, for an application in any language.

use catchword::{Direct, Error, Stored};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::{bury, refusal, settle};
use crate::common::{Layout, World, eventually};

/// The answer for one key.
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    revision: Option<i64>,
    open: Option<bool>,
    attempts: Option<i32>,
    dead: Option<String>,
    settled: Option<i64>,
}

async fn standing(world: &World, collection: &str, key: &str, since: Option<&str>) -> Standing {
    let sql = "select revision, open, attempts, dead, settled_revision, (since is not null) = (open is true) and (due_at is not null) = (open is true)
                      and (dead_since is not null) = (dead is not null) as fits
                 from catchword.standing($1, array[$2], $3::timestamptz)";
    let row = sqlx::query(sql).bind(collection).bind(key).bind(since).fetch_one(&world.pool).await.unwrap();
    assert!(row.get::<bool, _>("fits"), "{key}");
    Standing {
        revision: row.get("revision"),
        open: row.get("open"),
        attempts: row.get("attempts"),
        dead: row.get("dead"),
        settled: row.get("settled_revision"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_and_what_is_settled_is_told_of_each_write() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "x").await;
    let (mut before, mut revision) = (None, world.revision(&key).await);
    let changes = [
        format!("update annotation set text = 'y' where id = '{key}'"),
        // a new number without a write
        format!("select catchword.touch('annotation', array['{key}'])"),
        // hidden by the view
        format!("update annotation set deleted = true where id = '{key}'"),
        format!("delete from annotation where id = '{key}'"),
    ];
    for change in changes.iter().map(Some).chain([None]) {
        let open = standing(&world, "annotation", &key, None).await;
        assert_eq!(open, Standing { revision: Some(revision), open: Some(true), attempts: Some(0), dead: None, settled: None });
        assert!(before < Some(revision), "it only grows");
        // upper case is understood
        assert_eq!(standing(&world, "annotation", &key.to_uppercase(), None).await, open);
        settle(&world, &world.catchword, "annotation").await;
        let settled = standing(&world, "annotation", &key, None).await;
        assert_eq!(settled, Standing { open: Some(false), attempts: None, settled: Some(revision), ..open });
        before = Some(revision);
        if let Some(change) = change {
            world.sql(change).await;
            revision = match change.starts_with("delete") {
                true => world.one(&format!("select max(revision) from catchword.record where key = '{key}'")).await,
                false => world.revision(&key).await,
            };
        }
    }
    assert_eq!(revision % 2, 1, "a delete's number is odd");
    let never = standing(&world, "annotation", &Uuid::new_v4().to_string(), None).await;
    assert_eq!(never, Standing { revision: None, open: Some(false), attempts: None, dead: None, settled: None });
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_nobody_was_told_of_does_not_count_as_settled() {
    let world = World::with(Layout { sql: "insert into bystander values (100, 'older than catchword')".into(), ..Layout::default() }).await;
    let old = standing(&world, "bystander", "100", None).await;
    assert_eq!((old.open, old.settled), (Some(false), None), "it is in no index: {old:?}");
    // raising the floor makes everything stale, without a job
    let key = world.in_step("acct:a", "x").await;
    world.sql("select catchword.raise_floor('annotation')").await;
    let stale = standing(&world, "annotation", &key, None).await;
    assert_eq!((stale.open, stale.settled), (Some(false), None), "{stale:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_given_up_is_dead_with_its_reason_and_nothing_of_its_document() {
    let world = World::new().await;
    world.sql("alter table annotation drop constraint annotation_names_length").await;
    // Elasticsearch takes keywords of up to 32,766 bytes
    let key = world.annotate(&"secret".repeat(7_000), "x").await;
    eventually("it is refused", async || {
        world.pass().await;
        world.one::<i64>("select count(*) from catchword.job where attempts = 1").await == 1
    })
    .await;
    let refused = standing(&world, "annotation", &key, None).await;
    assert_eq!((refused.open, refused.attempts, refused.dead), (Some(true), Some(1), None));
    bury(&world).await;
    let dead = standing(&world, "annotation", &key, None).await;
    assert_eq!((dead.open, dead.dead.as_deref(), dead.settled), (Some(false), Some("refused"), None));
    let error: String = world.one("select last_error from catchword.dead_job where collection = 'annotation'").await;
    assert!(error.contains("userid"), "{error}");
    let all: String = world.one(&format!("select row_to_json(s)::text from catchword.standing('annotation', array['{key}']) s")).await;
    assert!(!all.contains("userid") && !all.contains("secret"), "{all}");

    // a later write has a job again, and while that is open nothing is given up
    world.sql(&format!("update annotation set userid = 'acct:a' where id = '{key}'")).await;
    let again = standing(&world, "annotation", &key, None).await;
    assert_eq!((again.open, again.dead), (Some(true), None));
    settle(&world, &world.catchword, "annotation").await;
    let settled = standing(&world, "annotation", &key, None).await;
    assert_eq!((settled.dead, settled.settled), (None, Some(world.revision(&key).await)));
}

/// There is no index on the key of a job, so the reading is bounded; what it did not see is not known. The time of a transaction helps.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_long_queue_only_a_part_is_read_and_a_time_makes_it_certain() {
    let world = World::new().await;
    let settled = world.in_step("acct:a", "settled").await;
    let old = world.annotate("acct:a", "old").await;
    world.sql("update catchword.job set priority = 1 where collection = 'annotation'").await;
    for (priority, others) in [(0, "quick"), (1, "live"), (1000, "whole")] {
        world
            .sql(&format!(
                "delete from catchword.job where tag in ('quick', 'live');
                 insert into catchword.job (collection, key, enqueued_at, priority, tag)
                 select 'annotation', gen_random_uuid(), clock_timestamp(), {priority}, '{others}' from generate_series(1, 10000)"
            ))
            .await;
        let mut transaction = world.pool.begin().await.unwrap();
        let insert = "insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u') returning id::text, now()::text";
        let (new, now): (String, String) = sqlx::query_as(insert).fetch_one(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap();
        let open = async |key: &str, since: Option<&str>| standing(&world, "annotation", key, since).await.open;
        assert_eq!(open(&settled, None).await, None, "{others}: it may be among those that were not read");
        assert_eq!(open(&settled, Some(&now)).await, Some(false), "{others}");
        assert_eq!((open(&new, None).await, open(&new, Some(&now)).await), (Some(true), Some(true)), "{others}: the newest are read");
        assert_eq!(
            open(&old, None).await,
            (others != "live").then_some(true),
            "{others}: among live ones it stands behind 10,000 newer ones"
        );
        assert_eq!(standing(&world, "annotation", &settled, Some(&now)).await.settled, None, "a time says nothing of earlier jobs");
        // a time that is still to come would pass everything over
        assert_eq!(open(&new, Some("2100-01-01 00:00:00+00")).await, Some(true), "{others}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_question_is_refused_with_what_to_write() {
    let world = World::with(Layout {
        sql: "create table place (tenant integer, name text, text text, catchword_revision bigint, primary key (tenant, name));
              comment on column place.catchword_revision is 'catchword: revision';
              create view place_document as select tenant, name, catchword_revision as revision, json_build_object('text', text) as body from place;"
            .into(),
        more: crate::attach::collection_lines("place", "delay = \"0s\"").replace("key = \"id\"", "key = [\"tenant\", \"name\"]"),
        ..Layout::default()
    })
    .await;
    for (asked, says, hint) in [
        ("'nobody', '{}'", "there is no collection 'nobody'", "there is annotation, bystander, place"),
        ("'annotation', null", "the list of keys is null", "coalesce(array_agg(…), '{}')"),
        ("'annotation', array[array['x']]", "a list of lists", "give one list"),
        ("'annotation', array[null]", "a key is null", "leave it out"),
        ("'annotation', array['x']", "not a key of annotation, whose keys are of type uuid", "write 01234567-89ab-cdef-0123-456789abcdef"),
        ("'annotation', array(select n::text from generate_series(1, 1001) n)", "1001 keys are too many", "at most 1000"),
        ("'place', array['7']", "'7' has not 2 parts", "write tenant/name"),
        ("'place', array['x/y']", "not a key of place, whose keys are of type integer, text", "write tenant/name"),
    ] {
        for function in ["standing", "known"] {
            let (message, with_hint) = refusal(&world, &format!("select * from catchword.{function}({asked})")).await;
            assert!(message.contains(says) && with_hint.contains(hint), "{asked}: {message}; {with_hint}");
        }
    }
    world.sql("insert into place values (7, 'a/b', 'x')").await;
    assert_eq!(standing(&world, "place", " 7/a%2Fb", None).await.open, Some(true));
    assert_eq!(world.one::<i64>("select count(*) from catchword.standing('annotation', '{}')").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_says_its_revision_also_when_nothing_could_be_indexed() {
    let world = World::gated().await;
    let store = async |sql: &'static str, key: Uuid| {
        let kept = world.catchword.store_and_schedule("annotation", async |tx: &mut PgConnection| {
            sqlx::query(sql).bind(key).execute(tx).await?;
            Ok::<_, Error>(Stored::new((), [key]))
        });
        kept.await.unwrap()
    };
    const INSERT: &str = "insert into annotation (id, userid, target_uri, target_uri_normalized) values ($1, 'acct:a', 'u', 'u')";
    let key = Uuid::new_v4();
    let name = key.to_string();
    let kept = store(INSERT, key).await;
    assert_eq!(kept.revisions, [(name.clone(), world.revision(&name).await)].into());
    if kept.direct == Direct::Indexed {
        assert_eq!(world.version("annotation", &name).await, kept.revisions.get(&name).copied());
    }
    // nothing is sent, and the number is known all the same; also the number of a delete
    world.sql("select catchword.pause('annotation', 'trial')").await;
    world.gate.as_ref().unwrap().refuse();
    let kept = store("update annotation set text = 'y' where id = $1", key).await;
    assert!(matches!(kept.direct, Direct::Left(_)));
    assert_eq!(kept.revisions, [(name.clone(), world.revision(&name).await)].into());
    let kept = store("delete from annotation where id = $1", key).await;
    let recorded: i64 = world.one(&format!("select max(revision) from catchword.record where key = '{name}'")).await;
    assert_eq!(kept.revisions, [(name, recorded)].into());
    assert_eq!(store("delete from annotation where id = $1", Uuid::new_v4()).await.revisions, [].into(), "there was never such a row");
}
