//! `catchword check`: the alarms' judgements without Prometheus, each made true on the real servers.

use serde_json::{Value, json};

use crate::common::{Layout, World};
use crate::operate::roles::Roles;

/// What must be true of a quiet world for all to be well: a worker shows itself.
const WORKER: &str = "insert into catchword.worker (id, host, version, collections, passed_at)
                      values ('00000000-0000-4000-8000-000000000001', 'h', '1', '{annotation,bystander,catchword_canary}', now())";

impl World {
    /// Exit code, the names of what is not well, and everything.
    async fn check(&self) -> (i32, Vec<String>, Value) {
        let (code, out, err) = self.run(&["check", "--json"]).await;
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
        let checks = report["checks"].as_array().unwrap();
        let bad = checks.iter().filter(|check| check["level"] != json!("well"));
        let named = |check: &Value| {
            let collection = check["collection"].as_str().map_or(String::new(), |name| format!(" {name}"));
            format!("{} {}{collection}", check["level"].as_str().unwrap(), check["name"].as_str().unwrap())
        };
        (code, bad.map(named).collect(), report)
    }

    async fn is_well(&self) {
        let (code, bad, report) = self.check().await;
        assert_eq!((code, bad), (0, vec![]), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_judges_what_the_alarms_judge() {
    let world = World::new().await;
    world.sql(WORKER).await;
    world.is_well().await;

    let job = "insert into catchword.job (collection, key, priority, tag, scheduled_at, expires_at) values ('annotation', gen_random_uuid()::text,";
    let dead = "insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, died_at, reason)
                values (1, 'index', 'annotation', 'k', now(), now(), now(), 1, 't', 5, now() -";
    let seen = "insert into catchword.freshness (minute, collection, session, changes, slow) values (";
    let away = "update catchword.worker set seen_at = now() - interval '10 minutes'";
    for (make, unwell, said) in [
        (format!("{job} 1, 't', now() - interval '16 minutes', now() + interval '1 day')"), "unwell CatchwordOldestDueJob annotation", "catchword explain"),
        (format!("{job} 1000, 't', now() - interval '7 hours', now() + interval '1 day')"), "unwell CatchwordOldestDueJob annotation", "a reindex"),
        (
            "insert into catchword.standstill (collection, since, why) values ('annotation', now() - interval '61 seconds', 'no answer within 30 s')".into(),
            "unwell CatchwordNoProgress annotation",
            "no answer within 30 s",
        ),
        (
            "insert into catchword.job (collection, key, priority, tag, enqueued_at, scheduled_at) values ('annotation', gen_random_uuid()::text, 1, 't', now() - interval '31 minutes', now() + interval '20 seconds')".into(),
            "unwell CatchwordOldestChange annotation",
            "a change was made 31m",
        ),
        (
            "update catchword.worker set passed_at = now() - interval '121 seconds', trouble = 'canceling statement due to lock timeout'".into(),
            "unwell CatchwordPassFailing",
            "lock timeout",
        ),
        (format!("{job} 1, 't', now(), now() - interval '1 second')"), "unwell CatchwordJobsExpired annotation", "1 job older than 30 days"),
        (
            "insert into catchword.job (collection, key, priority, tag, scheduled_at) select 'annotation', i::text, 1000, 't', now() - interval '31 minutes' from generate_series(1, 60001) i; analyze catchword.job".into(),
            "unwell CatchwordQueueLong annotation",
            "start another worker",
        ),
        (format!("{dead} interval '1 minute', 'refused')"), "unwell CatchwordDeadLettersGrowing annotation", "catchword dead replay"),
        (format!("{dead} interval '2 hours', 'refused')"), "warning CatchwordDeadLettersGrowing annotation", "catchword dead list"),
        ("update catchword.worker set breaker = 'unreachable'".into(), "unwell CatchwordBreakerOpen", "unreachable"),
        ("update catchword.worker set passed_at = now() - interval '11 minutes'".into(), "unwell CatchwordPassFailing", "/readyz"),
        ("update catchword.worker set blocked = '{\"bystander\": \"its index is closed\"}'".into(), "unwell CatchwordCollectionBlocked bystander", "its index is closed"),
        ("alter table annotation disable trigger catchword_annotation_updated".into(), "unwell CatchwordCollectionBlocked annotation", "catchword migrate"),
        (
            "insert into catchword.pause (collection, since, by, reason) values ('annotation', now() - interval '5 hours', 'mina', 'moving')".into(),
            "unwell CatchwordPausedTooLong annotation",
            "catchword resume annotation",
        ),
        (
            "insert into catchword.journal (what, detail) values ('raise', 'another server or timeline: 1/1, was 2/2')".into(),
            "unwell CatchwordServerSwitched annotation",
            "catchword reindex annotation --all --rewrite --hidden --yes",
        ),
        (format!("{seen} now(), 'annotation', 1, 50, 10)"), "unwell CatchwordFreshnessBurnFast annotation", "catchword status"),
        (
            format!("{seen} now() - interval '50 minutes', 'bystander', 1, 150, 13), (now() - interval '20 minutes', 'bystander', 2, 50, 4)"),
            "unwell CatchwordFreshnessBurnSlow bystander",
            "17 of 200 changes of the last 6h",
        ),
        ("insert into catchword.job (collection, key, priority, tag) values ('stranger', '1', 1, 'test')".into(), "unwell CatchwordWorkerAbsent stranger", "catchword detach"),
        (away.into(), "unwell CatchwordWorkerAbsent annotation", "start one: catchword worker"),
        (format!("{away}; {job} 1, 't', now() - interval '11 minutes', now() + interval '1 day')"), "unwell CatchwordConsumerStopped annotation", "start one: catchword worker"),
    ] {
        world.sql(&make).await;
        let (code, bad, report) = world.check().await;
        assert!(bad.contains(&unwell.to_owned()), "{make}: {bad:?}");
        assert_eq!(code, if unwell.starts_with("warning") { 0 } else { 1 }, "{make}: {report}");
        let (again, words, _) = world.run(&["check"]).await;
        let first = words.lines().next().unwrap();
        let (level, name) = unwell.split_once(' ').unwrap();
        assert!(again == code && first.contains(name) && words.lines().any(|line| line.starts_with(level) && line.contains(said)), "{make}: {words}");
        world
            .sql("delete from catchword.job where tag in ('t', 'test'); delete from catchword.dead_job where tag = 't'; delete from catchword.pause; delete from catchword.standstill; delete from catchword.freshness; delete from catchword.journal where what = 'raise'; alter table annotation enable trigger catchword_annotation_updated; update catchword.worker set seen_at = now(), passed_at = now(), breaker = 'closed', blocked = '{}', trouble = null; analyze catchword.job")
            .await;
        world.is_well().await;
    }
    world.noise_is_untouched().await;
}

/// Real changes, real looks: what is settled late is counted where it is settled, and bulks are not.
#[tokio::test(flavor = "multi_thread")]
async fn changes_that_the_loop_saw_late_burn_the_objective() {
    let world = World::new().await;
    world.sql(WORKER).await;
    for n in 0..12 {
        world.annotate("acct:a", &n.to_string()).await;
    }
    world.sql("update catchword.job set enqueued_at = enqueued_at - interval '6 minutes' where tag = 'insert'").await;
    // a bulk may be as late as it likes
    let (code, _, err) = world.run(&["reindex", "annotation", "--user", "acct:a", "--yes"]).await;
    assert_eq!(code, 0, "{err}");
    world.sql("update catchword.job set enqueued_at = enqueued_at - interval '6 minutes', scheduled_at = scheduled_at - interval '6 minutes' where tag like 'reindex%'").await;
    world.make_due().await;
    world.is_well().await;
    let (code, _, err) = world.run(&["sync", "--drain"]).await;
    assert_eq!((code, world.jobs().await), (0, 0), "{err}");
    let counted = "select format('%s %s', sum(changes), sum(slow)) from catchword.freshness where collection = 'annotation'";
    assert_eq!(world.one::<String>(counted).await, "12 12");
    let (code, bad, report) = world.check().await;
    assert_eq!(
        (code, bad),
        (1, ["Fast", "Slow"].map(|burn| format!("unwell CatchwordFreshnessBurn{burn} annotation")).to_vec()),
        "{report}"
    );
    let (_, words, _) = world.run(&["check"]).await;
    assert!(
        words.contains("12 of 12 changes of the last 1h were seen in Elasticsearch after over 5m, and it goes on; catchword status"),
        "{words}"
    );

    // quick ones follow: 12 of 90 are too many for a month's allowance, and not for a night's sleep
    for n in 0..78 {
        world.annotate("acct:b", &n.to_string()).await;
    }
    world.make_due().await;
    let (code, _, err) = world.run(&["sync", "--drain"]).await;
    assert_eq!((code, world.jobs().await), (0, 0), "{err}");
    let (_, bad, report) = world.check().await;
    assert_eq!(bad, ["unwell CatchwordFreshnessBurnSlow annotation"], "{report}");

    // half an hour later it has not gone on
    world.sql("update catchword.freshness set minute = minute - interval '31 minutes'").await;
    world.is_well().await;
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_ahead_and_a_server_that_switched_are_answered_by_what_check_says() {
    let world = World::new().await;
    world.sql(WORKER).await;
    world.sql("insert into catchword.journal (what, detail) values ('raise', 'the server was started again')").await;
    world.is_well().await;
    world.sql("insert into catchword.journal (what, detail) values ('raise', 'the sequence went back: 2, was 9')").await;
    let (_, bad, _) = world.check().await;
    assert_eq!(bad, ["unwell CatchwordServerSwitched annotation", "unwell CatchwordServerSwitched bystander"]);
    world.annotate("acct:a", "x").await;
    for name in ["annotation", "bystander"] {
        let (code, _, err) = world.run(&["reindex", name, "--all", "--rewrite", "--hidden", "--yes"]).await;
        assert_eq!(code, 0, "{err}");
    }
    world.is_well().await;
    world
        .sql("with moved as (delete from catchword.job where collection = 'annotation' returning *) insert into catchword.dead_job select id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error, traceparent, cursor, now() - interval '2 hours', 'ahead' from moved")
        .await;
    let (code, bad, _) = world.check().await;
    assert_eq!((code, bad), (1, vec!["warning CatchwordDeadLettersGrowing annotation".into(), "unwell CatchwordAhead annotation".into()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_holds_vacuum_back_is_read_from_the_server() {
    let world = World::new().await;
    let mut connection = world.pool.acquire().await.unwrap();
    let mut seen = Vec::new();
    let look = async || {
        let rows = sqlx::query_as::<_, (String, String, Option<f64>, i64)>(include_str!("../../../src/standing/vacuum.sql"));
        rows.fetch_all(&world.pool).await.unwrap()
    };
    sqlx::raw_sql("begin isolation level repeatable read; select 1").execute(&mut *connection).await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *connection).await.unwrap();
    seen.extend(look().await);
    sqlx::raw_sql("rollback").execute(&mut *connection).await.unwrap();
    let held = seen.iter().find(|held| held.1.contains(&format!("session {pid} of "))).unwrap_or_else(|| panic!("{seen:?}"));
    assert!(held.0 == "session" && held.2.is_some_and(|seconds| seconds >= 0.0), "{held:?}");
    let later = look().await;
    assert!(!later.iter().any(|held| held.1.contains(&format!("session {pid} of "))), "{later:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_within_seconds_that_a_server_is_away_or_silent() {
    let world = World::gated().await;
    world.sql(WORKER).await;
    let gate = world.gate.as_ref().unwrap();
    for away in ["refused", "silent"] {
        match away {
            "refused" => gate.refuse(),
            // every request has it in its first line
            _ => gate.hold("HTTP/1.1"),
        }
        let (code, bad, report) = world.check().await;
        assert_eq!((code, bad), (1, vec!["unwell CatchwordElasticsearchDown".into()]), "{away}: {report}");
    }
    // an index that does not answer while the server does: its collection is blocked, the server is not away
    gate.hold("annotation-000001");
    let (code, bad, report) = world.check().await;
    assert_eq!((code, bad), (1, vec!["unwell CatchwordCollectionBlocked annotation".into()]), "{report}");
    gate.pass();
    world.is_well().await;

    for (away, url) in world.postgres_away().await {
        let output = world.binary().env("DATABASE_URL", &url).arg("check").output().await.unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(2), &[][..]), "{away}: {words}");
        assert!(words.starts_with("unknown: CatchwordPostgresDown\nunknown  CatchwordPostgresDown: "), "{away}: {words}");
        assert!(words.contains("DATABASE_URL"), "{away}: {words}");
    }
}

/// The documents are out of date, and nothing is held up by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_or_a_label_that_changed_since_documents_were_built_is_a_warning() {
    let world = World::gated().await;
    world.sql(WORKER).await;
    world.in_step("acct:a", "x").await;
    let view = "create or replace view annotation_document as select id as key, catchword_revision as revision,";
    let reindex = async || {
        let (code, _, err) = world.run(&["reindex", "annotation", "--all", "--rewrite", "--yes"]).await;
        assert_eq!(code, 0, "{err}");
        world.is_well().await;
    };
    world.sql("create type mood as enum ('calm', 'cross')").await;
    for change in [
        format!("{view} json_build_object('userid', userid, 'tags', 'calm'::mood) as body from annotation where not deleted"),
        "alter type mood rename value 'calm' to 'quiet'".into(),
    ] {
        world.is_well().await;
        world.sql(&change).await;
        let (code, bad, report) = world.check().await;
        assert_eq!((code, bad), (0, vec!["warning CatchwordAuditDrift annotation".into()]), "{change}: {report}");
        let (_, words, _) = world.run(&["check"]).await;
        let line = "warning  CatchwordAuditDrift annotation: the view or touches changed since the documents were built; catchword reindex annotation --all --rewrite";
        assert!(
            words.starts_with("well, with a warning: CatchwordAuditDrift annotation\n") && words.lines().any(|said| said == line),
            "{words}"
        );
        let (code, words, _) = world.run(&["status"]).await;
        assert!(
            code == 0 && words.contains("  drift     the view or touches changed since the documents were built: catchword reindex"),
            "{words}"
        );
        // Postgres alone tells of it
        let gate = world.gate.as_ref().unwrap();
        gate.refuse();
        let (_, bad, _) = world.check().await;
        assert_eq!(bad, ["unwell CatchwordElasticsearchDown", "warning CatchwordAuditDrift annotation"]);
        gate.pass();
        reindex().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_answers_and_refuses_is_not_told_as_down() {
    let roles = Roles::with(Layout::default()).await;
    let world = &roles.world;
    world.sql(WORKER).await;
    let check = async || {
        let output = world.binary().env("DATABASE_URL", roles.url("worker")).arg("check").output().await.unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, words) = check().await;
    assert!(code == Some(0) && words.starts_with("well: "), "{words}");

    let mut holder = world.pool.begin().await.unwrap();
    sqlx::raw_sql("lock table catchword.job in access exclusive mode").execute(&mut *holder).await.unwrap();
    let (code, words) = check().await;
    assert!(code == Some(2) && words.starts_with("unknown: CatchwordPostgresDown\n"), "{words}");
    assert!(
        words.contains("postgres answers, and refuses: canceling statement due to lock timeout (asked for: how many jobs there are)"),
        "{words}"
    );
    assert!(!words.contains("bring it back"), "{words}");
    holder.rollback().await.unwrap();

    // the rest is judged
    world.sql(&format!("revoke select on catchword.freshness from {}", roles.names.of("worker"))).await;
    world.sql("update catchword.worker set breaker = 'unreachable'").await;
    let (code, words) = check().await;
    assert!(code == Some(2) && words.contains("postgres answers, and refuses: permission denied for table freshness"), "{words}");
    assert!(words.contains("grants.sql") && words.contains("unwell   CatchwordBreakerOpen: "), "{words}");

    world.sql(&format!("revoke usage on schema catchword from {}", roles.names.of("worker"))).await;
    let (code, words) = check().await;
    assert!(
        code == Some(2) && words.contains("CatchwordPostgresDown: postgres answers, and refuses: permission denied for schema catchword"),
        "{words}"
    );
    assert!(!words.contains("bring it back"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_judged_is_unknown_and_what_is_well_can_be_silent() {
    let world = World::new().await;
    let (code, out, err) = world.run(&["check"]).await;
    assert_eq!((code, err.as_str()), (1, ""), "nobody serves it: {out}");
    world.sql(WORKER).await;
    let (code, out, err) = world.run(&["check"]).await;
    assert!(code == 0 && out.starts_with("well: ") && out.lines().count() == 1, "{out} {err}");
    assert_eq!(world.run(&["check", "--quiet"]).await, (0, String::new(), String::new()));
    world.sql("create or replace view bystander_document as select id as key, catchword_revision as revision, json_build_object('text', upper(text)) as body from bystander").await;
    let (code, out, _) = world.run(&["check"]).await;
    assert!(code == 0 && out.contains("warning  ") && out.contains("changed since the documents were built"), "{out}");
    assert_eq!(world.run(&["check", "--quiet"]).await, (0, String::new(), String::new()), "cron mails no warning");
    world.sql("delete from catchword._migrations where version = 1").await;
    let (code, out, _) = world.run(&["check", "--quiet"]).await;
    assert_eq!(code, 2, "{out}");
    assert!(out.starts_with("unknown: ") && out.contains("run: catchword migrate"), "{out}");
}
