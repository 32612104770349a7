//! The direct path: stored and scheduled together, indexed at once, and never failed by Elasticsearch.

use std::future::Future;
use std::task::Poll;

use catchword::elastic::Refresh;
use catchword::{Catchword, Direct, Error, Stored};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::common::{Layout, World, eventually};

const INSERT: &str =
    "insert into annotation (userid, target_uri, target_uri_normalized, text) values ('acct:a', 'u', 'u', $1) returning id";

async fn save(world: &World, text: &str) -> (Uuid, Direct) {
    let kept = world
        .catchword
        .store_and_schedule("annotation", async |tx: &mut PgConnection| {
            let id: Uuid = sqlx::query_scalar(INSERT).bind(text).fetch_one(tx).await?;
            Ok::<_, Error>(Stored::new(id, [id]))
        })
        .await
        .unwrap();
    (kept.value, kept.direct)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_row_is_in_the_index_when_the_answer_comes_and_its_job_is_settled_by_a_later_pass() {
    let world = World::new().await;
    let (mut id, mut direct) = save(&world, "hello").await;
    while is_late(&direct) {
        world.settle_and_compare().await;
        (id, direct) = save(&world, "hello").await;
    }
    assert_eq!(direct, Direct::Indexed);
    let key = id.to_string();
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    assert_eq!(world.jobs().await, 1, "a write is never proof");
    let outcome = world.pass().await;
    assert_eq!((outcome.written, outcome.settled), (0, 1));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_job_waits_for_the_direct_write_unless_the_configuration_says_otherwise_and_has_its_tag() {
    let jobs = "select extract(epoch from scheduled_at - enqueued_at)::integer || ' ' || priority || ' ' || tag from catchword.job where collection = 'annotation' order by id";
    for (annotation, waits) in [("", "60 1"), ("delay = \"0s\"", "0 0"), ("delay = \"7s\"", "7 1")] {
        let world = World::with(Layout { annotation, ..Layout::default() }).await;
        save(&world, "untagged").await;
        let tags = ["import", "it's '; drop table annotation; --\\", "zero\0byte", "", &"é".repeat(1000)];
        for tag in tags {
            let store = async |tx: &mut PgConnection| {
                let id: Uuid = sqlx::query_scalar(INSERT).bind("tagged").fetch_one(tx).await?;
                Ok::<_, Error>(Stored::new(id, [id]))
            };
            world.catchword.store_and_schedule_as(tag, "annotation", store).await.unwrap();
        }
        let kept = ["insert", "import", "it's '; drop table annotation; --\\", "zerobyte", "insert", &"é".repeat(100)];
        assert_eq!(world.all::<String>(jobs).await, kept.map(|tag| format!("{waits} {tag}")), "{annotation}");
        // a plain write
        world.annotate("acct:a", "plain").await;
        let plain = if annotation.is_empty() { "0 0" } else { waits };
        assert_eq!(world.all::<String>(jobs).await.pop(), Some(format!("{plain} insert")));
    }
}

/// The settings of an application's sessions are its own: they shape no document and change no promise.
#[tokio::test(flavor = "multi_thread")]
async fn an_application_hands_in_its_own_pool_whatever_its_settings() {
    let world = World::new().await;
    const SETTINGS: &str = "set default_transaction_isolation = 'serializable'; set timezone = 'Asia/Kolkata'; set datestyle = 'German';
        set intervalstyle = 'iso_8601'; set extra_float_digits = -5; set synchronous_commit = off; set bytea_output = 'escape';
        set search_path = pg_temp, public; set statement_timeout = '20s'; set application_name = 'the application'";
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(2)
        .after_connect(|connection, _| {
            Box::pin(async move {
                sqlx::raw_sql(SETTINGS).execute(connection).await?;
                Ok(())
            })
        })
        .connect(&world.database_url)
        .await
        .unwrap();
    let catchword = Catchword::with_pool(world.catchword.config().clone(), &world.environment, pool.clone()).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..20 {
        let kept = catchword
            .store_and_schedule("annotation", async |tx: &mut PgConnection| {
                let zone: String = sqlx::query_scalar("select current_setting('timezone') || current_setting('application_name')")
                    .fetch_one(&mut *tx)
                    .await?;
                assert_eq!(zone, "Asia/Kolkatathe application", "it is the application's own session");
                let id: Uuid = sqlx::query_scalar(INSERT).bind(format!("own pool {n}")).fetch_one(tx).await?;
                Ok::<_, Error>(Stored::new(id, [id]))
            })
            .await
            .unwrap();
        ids.push((kept.value.to_string(), kept.direct));
    }
    assert!(ids.iter().any(|(_, direct)| *direct == Direct::Indexed), "{ids:?}");
    assert_eq!(world.jobs().await, 20);
    // what the direct path wrote is what the loop would write
    let before: Vec<_> = world.all::<String>("select id::text || catchword_revision from annotation order by 1").await;
    world.settle_and_compare().await;
    assert_eq!(world.all::<String>("select id::text || catchword_revision from annotation order by 1").await, before);
    let (code, said, _) = world.run(&["audit", "annotation", "--content"]).await;
    assert_eq!(code, 0, "{said}");
    catchword.drain("own pool", &["annotation"]).await.unwrap();
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_leaves_neither_row_nor_job_nor_document() {
    let world = World::new().await;
    let mut attempted = None;
    let failed = world
        .catchword
        .store_and_schedule("annotation", async |tx: &mut PgConnection| {
            let id: Uuid = sqlx::query_scalar(INSERT).bind("x").fetch_one(tx).await?;
            attempted = Some(id.to_string());
            Err::<Stored<Uuid>, _>(Error::refused("the application changed its mind"))
        })
        .await;
    assert!(matches!(failed, Err(Error::Refused { .. })));
    assert_eq!(world.one::<i64>("select count(*) from annotation").await, 0);
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.version("annotation", &attempted.unwrap()).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_killed_before_the_commit_leaves_neither_row_nor_job() {
    let world = World::new().await;
    let failed = world
        .catchword
        .store_and_schedule("annotation", async |tx: &mut PgConnection| {
            let id: Uuid = sqlx::query_scalar(INSERT).bind("x").fetch_one(&mut *tx).await?;
            let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(tx).await?;
            world.sql(&format!("select pg_terminate_backend({pid}, 5000)")).await;
            Ok::<_, Error>(Stored::new(id, [id]))
        })
        .await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(world.one::<i64>("select count(*) from annotation").await, 0);
    assert_eq!(world.jobs().await, 0);
}

/// Polls so often, and then no more.
async fn cut_after<T>(polls: usize, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut polled) = (std::pin::pin!(work), 0);
    std::future::poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        work.as_mut().poll(context).map(Some)
    })
    .await
}

#[tokio::test]
async fn a_store_that_is_cancelled_anywhere_leaves_the_next_one_a_clean_connection() {
    let world = World::new().await;
    for polls in 1.. {
        let stored = cut_after(polls, save(&world, "cut")).await;
        // on every connection there is, without a transaction: inside one that was left open it would never be committed
        let (pool, mut all) = (world.catchword.pool(), vec![]);
        for _ in 0..pool.options().get_max_connections() {
            all.push(pool.acquire().await.unwrap());
        }
        for connection in &mut all {
            let id: Uuid = sqlx::query_scalar(INSERT).bind("kept").fetch_one(&mut **connection).await.unwrap();
            assert_eq!(world.one::<i64>(&format!("select count(*) from annotation where id = '{id}'")).await, 1, "after {polls} polls");
        }
        if stored.is_some() {
            break;
        }
    }
    assert_eq!(world.jobs().await, world.one::<i64>("select count(*) from annotation").await, "a row and its job, or neither");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_died_since_it_was_used_fails_no_store() {
    let world = World::new().await;
    save(&world, "before").await;
    let ours = "datname = current_database() and application_name = 'catchword'";
    assert!(world.one::<i64>(&format!("select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where {ours}")).await > 0);
    save(&world, "after").await;
    assert_eq!(world.one::<i64>("select count(*) from annotation").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn elasticsearch_away_cannot_fail_a_store() {
    let world = World::gated().await;
    world.gate.as_ref().unwrap().refuse();
    let (id, direct) = save(&world, "kept").await;
    assert!(matches!(direct, Direct::Left(_)), "{direct}");
    assert_eq!(world.one::<i64>("select count(*) from annotation").await, 1);
    assert_eq!(world.jobs().await, 1);
    assert_eq!(world.version("annotation", &id.to_string()).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_delete_and_a_direct_hide_write_tombstones() {
    let world = World::new().await;
    let (deleted, hidden) = (world.in_step("acct:a", "one").await, world.in_step("acct:a", "two").await);
    world.sql(&format!("delete from annotation where id = '{deleted}'; update annotation set deleted = true where id = '{hidden}'")).await;
    eventually("indexed", async || world.catchword.index_now("annotation", [&deleted, &hidden]).await == Direct::Indexed).await;
    for key in [&deleted, &hidden] {
        assert_eq!(world.source("annotation", key).await, Some(json!({ "catchword_deleted": true })));
    }
    let outcome = world.pass().await;
    assert_eq!((outcome.written, outcome.settled), (0, 2), "{outcome}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_may_ask_for_a_refresh() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "at once").await;
    eventually("indexed", async || world.catchword.index_now_with("annotation", [&key], Refresh::Now).await == Direct::Indexed).await;
    let (_, answer) = world.http("GET", &format!("/{}/_count", world.alias("annotation")), None).await;
    assert_eq!(answer["count"], json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_runs_inside_a_spawned_task() {
    let world = World::new().await;
    let catchword = world.catchword.clone();
    let text = String::from("from a task");
    let kept = tokio::spawn(async move {
        catchword
            .store_and_schedule("annotation", async |tx: &mut PgConnection| {
                let id: Uuid = sqlx::query_scalar(INSERT).bind(&text).fetch_one(tx).await?;
                Ok::<_, Error>(Stored::new(id, [id]))
            })
            .await
    });
    let kept = kept.await.unwrap().unwrap();
    assert!(kept.direct == Direct::Indexed || is_late(&kept.direct), "{}", kept.direct);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_indexed_directly_is_left_and_says_why() {
    let world = World::new().await;
    for (collection, key, why) in [("annotation", "not a uuid", "not a key"), ("nobody", "1", "not served")] {
        let Direct::Left(said) = world.catchword.index_now(collection, [key]).await else { panic!("{collection} {key}") };
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(world.catchword.index_now("annotation", Vec::<String>::new()).await, Direct::Indexed);
}

/// What a direct write answers on a machine that is too busy for one: allowed for anybody at any time.
fn is_late(direct: &Direct) -> bool {
    matches!(direct, Direct::Left(why) if why.contains("second") || why.contains("in time"))
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_writes_that_come_together_go_together_and_each_gets_its_own_answer() {
    let world = World::gated().await;
    world.sql("alter table annotation drop constraint annotation_names_length").await;
    let mut keys = Vec::new();
    for n in 0..60 {
        // Elasticsearch takes keywords of up to 32,766 bytes
        let user = if n == 30 { "x".repeat(40_000) } else { format!("acct:{n}") };
        keys.push(world.annotate(&user, "together").await);
    }
    let gate = world.gate.as_ref().unwrap();
    gate.passed();
    let said = futures_util::future::join_all(keys.iter().map(|key| world.catchword.index_now("annotation", [key]))).await;
    let requests = gate.passed().len();
    assert!(requests <= 30, "{requests} requests for 60 documents");
    for (n, (key, direct)) in keys.iter().zip(&said).enumerate() {
        match direct {
            Direct::Left(why) if n == 30 => assert!(why.contains("userid") || is_late(direct), "{why}"),
            Direct::Indexed if n != 30 => assert_eq!(world.version("annotation", key).await, Some(world.revision(key).await)),
            late => assert!(is_late(late), "{n}: {late}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_built_or_takes_too_long_hurts_nobody_who_goes_with_it() {
    let world = World::with(Layout {
        sql: "create table fraction (id integer primary key, divisor integer, catchword_revision bigint);
              comment on column fraction.catchword_revision is 'catchword: revision';
              create function slow(n integer) returns integer language plpgsql stable as $$ begin
                if n = 3 then perform pg_sleep(0.4); end if; return 100 / n; end $$;
              create view fraction_document as select id as key, catchword_revision as revision, json_build_object('text', slow(divisor)) as body from fraction;"
            .into(),
        more: "[[collection]]\nname = \"fraction\"\ntable = \"fraction\"\nkey = \"id\"\nview = \"fraction_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n".into(),
        ..Layout::default()
    })
    .await;
    world.sql("insert into fraction select i, case i when 7 then 0 else i end from generate_series(1, 20) i").await;
    let said = futures_util::future::join_all((1..=20).map(|key| world.catchword.index_now("fraction", [key]))).await;
    for (key, direct) in (1..=20).zip(&said) {
        match direct {
            Direct::Left(why) if key == 7 => assert!(why.contains("division by zero") || is_late(direct), "{why}"),
            Direct::Indexed if key != 7 => assert!(world.version("fraction", &key.to_string()).await.is_some()),
            late => assert!(is_late(late), "{key}: {late}"),
        }
    }
    assert!(said.iter().filter(|direct| **direct == Direct::Indexed).count() > 1, "{said:?}");
}
