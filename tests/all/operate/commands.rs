//! Every command refuses what it does not understand, with exit 2 and a sentence, and does nothing; one that is repeated is harmless.

use crate::common::World;

/// Everything that a command could have changed.
const STATE: &str = "select md5(string_agg(line, chr(10) order by line)) from (
    select 'job ' || to_jsonb(t)::text as line from catchword.job t
    union all select 'dead ' || to_jsonb(t)::text from catchword.dead_job t
    union all select 'pause ' || to_jsonb(t)::text from catchword.pause t
    union all select 'journal ' || to_jsonb(t)::text from catchword.journal t
    union all select 'reindex ' || to_jsonb(t)::text from catchword.reindex t
    union all select 'collection ' || to_jsonb(t)::text from catchword.collection t
    union all select 'trigger ' || oid::text from pg_trigger) as state";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_understood_is_refused_with_a_sentence_and_changes_nothing() {
    let world = World::new().await;
    world.annotate("acct:a", "x").await;
    let before: String = world.one(STATE).await;
    for command in
        ["migrate", "detach", "worker", "sync", "reindex", "status", "history", "check", "explain", "audit", "pause", "resume", "journal"]
    {
        refused(&world, &[command, "--nonsense"]).await;
        refused(&world, &[command, "--config", "/nowhere/catchword.toml"]).await;
    }
    for command in ["list", "show", "replay", "discard", "nonsense"] {
        refused(&world, &["dead", command, "--nonsense"]).await;
    }
    let cases: [&[&str]; 23] = [
        &[],
        &["nonsense"],
        &["migrate", "more"],
        &["detach"],
        &["detach", "annotation", "more", "--yes"],
        &["worker", "--listen", "nowhere"],
        &["sync", "nonsense"],
        &["reindex", "nonsense", "--all", "--yes"],
        &["reindex", "annotation"],
        &["reindex", "annotation", "--all", "--user", "acct:a", "--yes"],
        &["reindex", "annotation", "--ids", "no uuid"],
        &["reindex", "annotation", "--between", "yesterday", "tomorrow"],
        &["reindex", "annotation", "--rate", "none", "--all", "--yes"],
        &["reindex", "cancel", "one"],
        &["status", "more"],
        &["explain", "annotation", "no uuid"],
        &["explain", "nonsense", "1"],
        &["audit", "nonsense"],
        &["pause", "nonsense", "--reason", "why"],
        &["dead", "show", "one"],
        &["dead", "replay"],
        &["dead", "replay", "--reason", "nonsense"],
        &["dead", "discard", "--all", "--since", "yesterday"],
    ];
    for words in cases {
        refused(&world, words).await;
    }
    assert_eq!(world.one::<String>(STATE).await, before);
    world.noise_is_untouched().await;
}

async fn refused(world: &World, words: &[&str]) {
    let (code, out, said) = world.run(words).await;
    assert_eq!(code, 2, "catchword {words:?}: {out}{said}");
    assert!(out.is_empty(), "catchword {words:?} says on standard output: {out}");
    assert!(said.trim().len() > 10 && !said.contains("panicked"), "catchword {words:?} says why: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_repeated_is_harmless() {
    let world = World::new().await;
    world.annotate("acct:a", "x").await;
    world.sql("insert into catchword.job (collection, key, priority, tag) values ('annotation', 'no uuid', 1, 'test')").await;
    for (words, first) in [
        (&["migrate"][..], 0),
        (&["sync", "annotation", "--drain"], 0),
        (&["dead", "discard", "--all", "--yes"], 0),
        (&["pause", "annotation", "--reason", "why"], 0),
        (&["resume", "annotation"], 0),
        (&["reindex", "annotation", "--user", "acct:a"], 0),
        (&["detach", "annotation", "--yes"], 0),
    ] {
        let (code, out, said) = world.run(words).await;
        assert_eq!(code, first, "catchword {words:?}: {out}{said}");
        let (code, out, said) = world.run(words).await;
        assert!(code < 2, "catchword {words:?} again: {code} {out}{said}");
    }
    let rows: i64 = world.one("select count(*) from annotation").await;
    assert_eq!(rows, 1);
    assert_eq!(world.one::<i64>("select count(*) from catchword.pause").await, 0);
}
