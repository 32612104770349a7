//! Reindex: what is scheduled, and in which order.

use tokio::process::Command;

use super::with_numbers;
use crate::common::World;

#[tokio::test(flavor = "multi_thread")]
async fn two_bulk_reindexes_take_turns_one_by_one_whatever_their_sizes() {
    let world = World::new().await;
    world.write_down("acct:many", 10_000).await;
    world.write_down("acct:few", 100).await;
    let few: Vec<String> = world.all("select id::text from annotation where userid = 'acct:few'").await;

    world.reindexed(&["annotation", "--user", "acct:many"]).await;
    // some of the large one is through already
    world
        .sql("delete from catchword.job where id in (select id from catchword.job where collection = 'annotation' order by priority, enqueued_at, id limit 3000)")
        .await;
    world.reindexed(&["annotation", "--user", "acct:few"]).await;

    let walk = world.walk("annotation").await;
    assert_eq!(walk.len(), 7_100);
    let last = walk.iter().rposition(|key| few.contains(key)).unwrap();
    assert!((195..=205).contains(&last), "the last of the 100 is job {last} of the queue, among the other's next 100");
    // one by one: never more than two of one side in a row
    let sides: Vec<bool> = walk[..190].iter().map(|key| few.contains(key)).collect();
    assert!(sides.windows(4).all(|four| four.contains(&true) && four.contains(&false)), "{sides:?}");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_touched_part_keeps_its_places_over_all_its_chunks() {
    let world = World::new().await;
    world.write_down("acct:many", 8_000).await;
    world.write_down("acct:again", 6_000).await;
    world.reindexed(&["annotation", "--user", "acct:many"]).await;
    world.reindexed(&["annotation", "--user", "acct:again", "--rewrite"]).await;
    world.fed("annotation").await;

    let rewrite: Vec<bool> = world
        .all("select a.userid = 'acct:again' from catchword.job j join annotation a on a.id::text = j.key where collection = 'annotation' order by priority, enqueued_at, j.id")
        .await;
    assert_eq!(rewrite.len(), 14_000);
    let early = rewrite[..2_000].iter().filter(|rewrite| **rewrite).count();
    assert!((900..=1_100).contains(&early), "{early} of the first 2,000");
    let priorities: Vec<i32> = world.all("select distinct priority from catchword.job where collection = 'annotation'").await;
    assert_eq!(priorities, [100], "a part that is touched is a part, also in its small last chunk");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_base_is_fixed_once_and_refused_waiting_and_paused_jobs_do_not_drag_it_back() {
    let world = World::new().await;
    let age = "select extract(epoch from now() - base)::float8 from catchword.reindex order by id desc limit 1";
    world.write_down("acct:a", 5).await;
    for old in ["refused", "waiting", "paused"] {
        world.sql("delete from catchword.job where collection = 'annotation'").await;
        world
            .sql("insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag) values ('annotation', gen_random_uuid(), now() - interval '1 day', now(), 100, 'old')")
            .await;
        match old {
            "waiting" => world.sql("update catchword.job set scheduled_at = now() + interval '1 hour' where tag = 'old'").await,
            "paused" => world.sql("insert into catchword.pause (collection, reason) values ('annotation', 'test')").await,
            _ => world.sql("update catchword.job set attempts = 1 where tag = 'old'").await,
        }
        world.reindexed(&["annotation", "--user", "acct:a"]).await;
        let seconds: f64 = world.one(age).await;
        assert!(seconds < 60.0, "{old}: the base is {seconds} s old");
    }
    world.sql("delete from catchword.pause").await;

    // a job that is due and was never refused does: the bulk interleaves with it
    world.sql("update catchword.job set attempts = 0, scheduled_at = now() where tag = 'old'").await;
    world.reindexed(&["annotation", "--user", "acct:a"]).await;
    assert!(world.one::<f64>(age).await > 86_000.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn live_writes_go_before_a_part_and_a_part_before_a_whole() {
    let world = World::new().await;
    world.write_down("acct:a", 10).await;
    world.write_down("acct:b", 10).await;
    world.reindexed(&["annotation", "--all", "--yes"]).await;
    world.reindexed(&["annotation", "--user", "acct:a"]).await;
    // more than 1,000 rows in one statement are a bulk too
    world
        .sql("insert into annotation (userid, target_uri, target_uri_normalized) select 'acct:mass', 'http://x/', 'x' from generate_series(1, 1001)")
        .await;
    let live = world.annotate("acct:c", "now").await;

    let priorities: Vec<i32> =
        world.all("select priority from catchword.job where collection = 'annotation' order by priority, enqueued_at, id").await;
    assert_eq!(priorities, [vec![0], vec![100; 1_011], vec![1_000; 20]].concat());
    assert_eq!(world.walk("annotation").await[0], live);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_scheduled_once_each_over_many_chunks() {
    let world = World::with(with_numbers(30)).await;
    let id: i64 = world.one("select catchword.reindex_start('number')").await;
    // a chunk of 8, 9, 10, 11, … as text ends with 9, and would come to 10 again
    while world.one::<i64>(&format!("select catchword.reindex_chunk({id}, 7)")).await == 7 {}
    let walk = world.walk("number").await;
    assert_eq!(walk, (1..=30).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_a_padded_column_is_not_cut() {
    let world = World::with(with_numbers(10)).await;
    world.reindexed(&["number", "--code", "even"]).await;
    assert_eq!(world.walk("number").await.len(), 5, "even, and not everything that begins with an e");
    world.reindexed(&["number", "--parity", "no"]).await;
    assert_eq!(world.walk("number").await.len(), 10);
    let (code, _, err) = world.reindex(&["number", "--parity", "perhaps"]).await;
    assert_eq!(code, 2);
    assert!(err.contains("'perhaps' cannot be a value of parity: the column even is of type boolean"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_whose_column_is_gone_is_refused_and_never_means_everything() {
    let world = World::with(with_numbers(10)).await;
    world.sql("alter table number rename column code to code2").await;
    for words in [&["number", "--code", "even"][..], &["number", "--code", "even", "--dry-run"]] {
        let (code, out, err) = world.reindex(words).await;
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("has no column 'code' any more") && err.contains("catchword migrate"), "{err}");
    }
    assert_eq!(world.walk("number").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_period_excludes_its_end_and_is_read_as_utc_in_any_zone() {
    let world = World::with(with_numbers(100)).await;
    world.sql("do $$ begin execute format('alter database %I set timezone = ''Asia/Tokyo''', current_database()); end $$").await;
    // row 24 is at midnight of the 2nd, row 48 of the 3rd
    world.reindexed(&["number", "--between", "2026-01-02", "2026-01-03"]).await;
    assert_eq!(world.walk("number").await, (24..48).map(|n| n.to_string()).collect::<Vec<_>>());

    // the driver's sessions are in UTC; psql's are where the server says
    world.sql("delete from catchword.job where collection = 'number'").await;
    let select = "select catchword.reindex('number', p_from => '2026-01-02Z', p_to => '2026-01-03Z')";
    let psql = Command::new("psql").args([&world.database_url, "-Xqc", "set timezone = 'Asia/Tokyo'", "-c", select]).output().await;
    assert!(psql.is_ok_and(|psql| psql.status.success()));
    assert_eq!(world.walk("number").await, (24..48).map(|n| n.to_string()).collect::<Vec<_>>());

    world.write_down("acct:a", 3).await;
    world
        .sql("update annotation set updated = case when ctid = (select min(ctid) from annotation) then '2026-01-03 00:00Z' else '2026-01-02 00:00Z' end::timestamptz")
        .await;
    world.sql("delete from catchword.job where collection = 'annotation'").await;
    world.reindexed(&["annotation", "--between", "2026-01-02T01:00+01:00", "2026-01-03T00:00:00Z"]).await;
    assert_eq!(world.jobs().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_schedules_nothing_and_raises_no_floor() {
    let world = World::new().await;
    world.write_down("acct:a", 7).await;
    let floor: i64 = world.one("select floor from catchword.collection where name = 'annotation'").await;
    let said = world.reindexed(&["annotation", "--all", "--rewrite", "--dry-run"]).await;
    assert_eq!(said, "7 keys match --all of annotation; nothing was scheduled\n");
    let json = world.reindexed(&["annotation", "--user", "acct:a", "--dry-run", "--json"]).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["would_schedule"], 7);
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.one::<i64>("select count(*) from catchword.reindex").await, 0);
    assert_eq!(world.one::<i64>("select floor from catchword.collection where name = 'annotation'").await, floor);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_agrees_is_settled_by_a_reindex_and_written_by_one_that_rewrites() {
    let world = World::new().await;
    let (mine, other) = (world.in_step("acct:a", "one").await, world.in_step("acct:b", "two").await);
    let before = (world.version("annotation", &mine).await, world.version("annotation", &other).await);

    world.reindexed(&["annotation", "--user", "acct:a"]).await;
    let outcome = world.pass().await;
    assert_eq!((outcome.written, outcome.settled), (0, 1), "{outcome}");
    assert_eq!(world.version("annotation", &mine).await, before.0);

    world.reindexed(&["annotation", "--user", "acct:a", "--rewrite"]).await;
    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!((outcome.written, outcome.settled), (1, 1), "{outcome}");
    assert!(world.version("annotation", &mine).await > before.0);
    assert_eq!(world.version("annotation", &other).await, before.1, "another user's are left alone");

    world.reindexed(&["annotation", "--all", "--rewrite", "--yes"]).await;
    let outcome = world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!((outcome.written, outcome.settled), (2, 2), "{outcome}");
    let floor: i64 = world.one("select floor from catchword.collection where name = 'annotation'").await;
    for key in [&mine, &other] {
        assert_eq!(world.version("annotation", key).await, Some(floor));
    }
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_rows_and_keys_without_a_row_are_taken_when_asked_for() {
    let world = World::new().await;
    world.write_down("acct:a", 3).await;
    world.sql("update annotation set deleted = true where id = (select min(id::text)::uuid from annotation)").await;
    world.sql("delete from catchword.job where collection = 'annotation'").await;

    world.reindexed(&["annotation", "--user", "acct:a"]).await;
    assert_eq!(world.jobs().await, 2);
    world.reindexed(&["annotation", "--user", "acct:a", "--hidden"]).await;
    assert_eq!(world.jobs().await, 5);

    let hidden: String = world.one("select id::text from annotation where deleted").await;
    let never = "00000000-0000-4000-8000-000000000007";
    let (code, _, err) = world.reindex(&["annotation", "--ids", &hidden, never]).await;
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("--hidden"), "{err}");
    let both = format!("{},{never}", hidden.to_uppercase());
    world.reindexed(&["annotation", "--ids", &both, "--hidden"]).await;
    assert_eq!(world.jobs().await, 7, "as Postgres writes them, whatever was typed");
    assert_eq!(world.one::<i64>(&format!("select count(*) from catchword.job where key = '{hidden}'")).await, 2);
    // touching skips what has no row; its absence is still looked at
    world.reindexed(&["annotation", "--ids", &both, "--hidden", "--rewrite"]).await;
    assert_eq!(world.one::<i64>(&format!("select count(*) from catchword.job where key = '{never}'")).await, 2);
    assert_eq!(world.jobs().await, 9);
}

async fn each_number_once(world: &World, rows: i64) {
    let counted: (i64, i64) = sqlx::query_as("select count(*), count(distinct key) from catchword.job where collection = 'number'")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(counted, (rows, rows));
    let spaced: i64 = world.one("select count(distinct enqueued_at) from catchword.job where collection = 'number'").await;
    assert_eq!(spaced, rows, "each at its own microsecond");
}

/// Runs a script of `reindex/` with psql: exit code, output, errors.
async fn psql(world: &World, script: &str, variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new("psql");
    command.arg(&world.database_url).arg("-X");
    for (name, value) in variables {
        command.arg("-v").arg(format!("{name}={value}"));
    }
    command.arg("-f").arg(format!("{}/reindex/{script}.sql", env!("CARGO_MANIFEST_DIR")));
    let output = command.output().await.expect("psql is missing; install it with: scripts/services tools");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scripts_for_psql_schedule_the_same() {
    let world = World::with(with_numbers(12_000)).await;
    world.sql("insert into document (title, web_uri) values ('t', 'u')").await;
    world
        .sql("insert into annotation (userid, groupid, document_id, target_uri, target_uri_normalized, updated) select 'acct:a', 'g', 1, 'http://x/', 'x', '2026-01-02' from generate_series(1, 3)")
        .await;
    world.sql("delete from catchword.job where collection = 'annotation'").await;
    let key: String = world.one("select min(id::text) from annotation").await;
    let scheduled = |n: i32| {
        let jobs = if n == 1 { "job" } else { "jobs" };
        format!("scheduled {n} {jobs} for annotation; a worker takes them within seconds; watch them: catchword status\n")
    };
    for (script, variables, expected) in [
        ("user", &[("user", "acct:a")][..], 3),
        ("group", &[("group", "g")], 3),
        ("document", &[("document", "1")], 3),
        ("scope", &[("scope", "user"), ("value", "acct:a")], 3),
        ("between", &[("from", "2026-01-02"), ("to", "2026-01-02 00:00:01")], 3),
        ("ids", &[("ids", &key)], 1),
        ("all", &[], 3),
        ("user", &[("user", "acct:a"), ("rewrite", "true")], 3),
    ] {
        world.sql("delete from catchword.job where collection = 'annotation'").await;
        let (code, out, err) = psql(&world, script, variables).await;
        assert_eq!((code, out, err.as_str()), (0, scheduled(expected), ""), "{script}");
        assert_eq!(world.jobs().await, i64::from(expected), "{script}");
    }
    let (code, out, err) = psql(&world, "all", &[("collection", "number")]).await;
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("scheduled 12000 jobs for number"), "{out}");
    each_number_once(&world, 12_000).await;

    let (code, out, _) = psql(&world, "user", &[("user", "nobody")]).await;
    assert_eq!((code, out.as_str()), (0, "nothing matches; nothing was scheduled for annotation\n"));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_without_its_variable_says_what_to_type() {
    let world = World::new().await;
    for (script, variable) in [
        ("user", "user"),
        ("group", "group"),
        ("document", "document"),
        ("scope", "scope"),
        ("between", "from"),
        ("ids", "ids"),
        ("resume", "id"),
    ] {
        let (code, out, err) = psql(&world, script, &[]).await;
        assert_eq!((code, out.as_str()), (3, ""), "{script}");
        assert!(err.contains("say: psql \"$DATABASE_URL\"") && err.contains(&format!("-v {variable}=")), "{script}: {err}");
    }
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.one::<i64>("select count(*) from catchword.reindex").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_bound_and_never_executed() {
    let world = World::new().await;
    for value in [
        "x'; drop table annotation; --",
        "x\"; drop table annotation; --",
        "'",
        "\\",
        "\\'; drop table annotation; --",
        "$$; drop table annotation; $$",
        "%s%I%L",
        "a\u{1b}[2J\u{7}\r\nb",
        ":collection :'user'",
        "`touch /tmp/catchword-was-here`",
        "{}",
        "žluťoučký 🦀 \u{202e}",
        " ",
    ] {
        sqlx::query("insert into annotation (userid, target_uri, target_uri_normalized) values ($1, 'http://x/', 'x')")
            .bind(value)
            .execute(&world.pool)
            .await
            .unwrap();
        world.sql("delete from catchword.job where collection = 'annotation'").await;
        let flag = format!("--user={value}");
        world.reindexed(&["annotation", &flag]).await;
        assert_eq!(world.jobs().await, 1, "{value:?}");
        let (code, out, err) = psql(&world, "user", &[("user", value)]).await;
        assert_eq!(code, 0, "{value:?}: {err}");
        assert!(out.starts_with("scheduled 1 job for"), "{value:?}: {out}");
        assert_eq!(world.jobs().await, 2, "{value:?}");

        // the same in a place where it does not fit
        for words in [
            ["annotation", &format!("--document={value}")],
            ["annotation", &format!("--ids={value}x")],
            ["annotation", &format!("--between={value}")],
        ] {
            let (code, _, err) = world.reindex(&words).await;
            assert_eq!(code, 2, "{words:?}: {err}");
            assert!(!err.contains(['\u{1b}', '\u{7}', '\u{202e}']) || words[1].starts_with("--between"), "{err:?}");
        }
    }
    assert_eq!(world.one::<i64>("select count(*) from annotation").await, 13);
    assert!(!std::path::Path::new("/tmp/catchword-was-here").exists());
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_for_habits_calls_the_binary() {
    let world = World::new().await;
    world.write_down("acct:a", 2).await;
    let script = format!("{}/reindex/reindex", env!("CARGO_MANIFEST_DIR"));
    let run = async |words: &[&str]| {
        let binary = world.binary();
        let mut command = Command::new(&script);
        for (name, value) in binary.as_std().get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("CATCHWORD", env!("CARGO_BIN_EXE_catchword")).args(words);
        command.output().await.unwrap()
    };
    let output = run(&["annotation", "--user", "acct:a"]).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(world.jobs().await, 2);
    assert_eq!(run(&["annotation", "--user", "acct:it's me"]).await.status.code(), Some(1));
}
