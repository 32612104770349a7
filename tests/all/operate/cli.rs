//! The command line as a tired operator and an attacker meet it.

use std::process::Stdio;

use serde_json::Value;

use crate::common::{Layout, World};

/// The golden texts of `--help`. Renew them with CATCHWORD_RENEW=1.
const HELP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/operate/help.txt");

#[tokio::test(flavor = "multi_thread")]
async fn help_teaches_and_needs_neither_configuration_nor_environment() {
    let mut all = String::new();
    for command in [
        "", "init", "migrate", "detach", "worker", "sync", "reindex", "status", "history", "check", "doctor", "explain", "dead", "pause",
        "resume", "journal",
    ] {
        let mut binary = tokio::process::Command::new(env!("CARGO_BIN_EXE_catchword"));
        binary.env_clear().current_dir(std::env::temp_dir());
        if !command.is_empty() {
            binary.arg(command);
        }
        let output = binary.arg("--help").output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{command}");
        // a short line, a paragraph, and every option with a word about it
        let paragraphs = text.split("\n\n").take_while(|part| !part.starts_with("Usage:")).count();
        assert!(paragraphs >= 2, "{command} has no paragraph: {text}");
        for option in text.lines().filter(|line| line.trim_start().starts_with("--")) {
            let at = text.find(option).unwrap() + option.len();
            let next = text[at..].trim_start_matches('\n').lines().next().unwrap_or_default();
            assert!(
                option.contains("  --") && (next.starts_with("          ") || option.trim().contains("  ")),
                "{command}: {option} has no explanation"
            );
        }
        all += &format!("$ catchword {command}{}--help\n{text}\n", if command.is_empty() { "" } else { " " });
    }
    if std::env::var_os("CATCHWORD_RENEW").is_some() {
        std::fs::write(HELP, &all).unwrap();
    }
    let golden = std::fs::read_to_string(HELP).unwrap_or_default();
    assert!(all == golden, "help changed; look at it and renew tests/all/operate/help.txt with CATCHWORD_RENEW=1:\n{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scopes_of_the_configuration_are_in_the_help_of_reindex() {
    let world = World::new().await;
    let (code, out, _) = world.run(&["reindex", "--help"]).await;
    assert_eq!(code, 0);
    for flag in ["--user <USER>", "--group <GROUP>", "--document <DOCUMENT>"] {
        assert!(out.contains(flag), "{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slip_of_the_fingers_is_answered_with_what_to_type_and_schedules_nothing() {
    let world = World::new().await;
    world.annotate("acct:a", "hello").await;
    world.sql("delete from catchword.job where collection = 'annotation'").await;
    for (words, said) in [
        (&["annotation", "--usr", "x"][..], "'--user'"),
        (&["annotation", "--colour", "x"], "there is --document X, --group X, --user X, --between A B, --ids …, --all"),
        (&["annotation"], "say what to reindex, one of: --document X | --group X | --user X"),
        (&["annotation", "--user", "a", "--group", "b"], "one scope at a time"),
        (&["annotation", "--user", "a", "--all"], "one scope at a time"),
        (&["--user", "a"], "there are several collections; name one of: annotation, bystander"),
        (&["nope", "--all"], "there is no collection \"nope\""),
        (&["bystander", "--user", "a"], "collection bystander has no scope user; it has: --between A B"),
        (&["bystander", "--between", "2026-01-01", "2026-01-02"], "collection bystander has no period"),
        (&["annotation", "--between", "2026-01-01"], "2 values required"),
        (&["annotation", "--between", "yesterday", "2026-01-02"], "\"yesterday\" is not a time; write 2026-11-16"),
        (&["annotation", "--between", "2026-01-02", "2026-01-01"], "the earlier time first"),
        (&["annotation", "--between", "2026-01-01", "2026-01-01"], "the earlier time first"),
        (&["annotation", "--ids", "7"], "invalid input syntax for type uuid: \"7\"; write 01234567-89ab-"),
        (&["annotation", "--ids", ""], "--ids names no key"),
        (&["annotation", "--ids", ",,"], "--ids names no key"),
        (&["annotation", "--ids"], "a value is required"),
        (&["bystander", "--ids", "1,x"], "invalid input syntax for type bigint: \"x\"; write a whole number"),
        (&["bystander", "--ids", "99999999999999999999"], "write a whole number"),
        (&["annotation", "--document", "abc"], "'abc' cannot be a value of document: the column document_id is of type bigint"),
        (&["annotation", "--document", "99999999999999999999"], "the column document_id is of type bigint"),
        (&["annotation", "--all"], "say --yes, since there is no terminal to ask on"),
        (&["annotation", "--user", "a", "--where", "true"], "one scope at a time"),
        (&["annotation", "--all", "--rate", "fast"], "write keys a second, from 1 to 1000000: 500 or 500/s"),
        (&["annotation", "--all", "--wait", "--dry-run"], "cannot be used with"),
        (&["show", "note"], "it is a number; catchword reindex list shows it"),
        (&["rate", "1", "0"], "write keys a second"),
        (&["annotation", "--all", "list"], "cannot be used with"),
    ] {
        let mut all = vec!["reindex"];
        all.extend(words);
        let (code, out, err) = world.run(&all).await;
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
        assert!(!err.contains("error returned from database"), "the driver's words are not ours: {err}");
    }
    assert_eq!(world.jobs().await, 0);
    assert_eq!(world.one::<i64>("select count(*) from catchword.reindex").await, 0);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_matches_nothing_says_so_and_exits_1() {
    let world = World::new().await;
    for words in [
        &["reindex", "annotation", "--user", "nobody"][..],
        &["reindex", "annotation", "--all", "--yes"],
        &["reindex", "annotation", "--ids", "00000000-0000-4000-8000-000000000007"],
        &["reindex", "annotation", "--between", "2026-01-01", "2026-01-02", "--dry-run"],
    ] {
        let (code, out, err) = world.run(words).await;
        assert_eq!((code, out.as_str()), (1, ""), "{words:?}: {err}");
        assert!(err.contains("nothing matches") && err.contains("nothing was scheduled"), "{err}");
    }
    let (code, out, _) = world.run(&["reindex", "annotation", "--user", "nobody", "--json"]).await;
    assert_eq!((code, &serde_json::from_str::<Value>(&out).unwrap()["scheduled"]), (1, &Value::from(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn results_for_scripts_are_json_and_nothing_else() {
    let world = World::new().await;
    world.annotate("acct:a", "hello").await;
    for words in [
        &["reindex", "annotation", "--user", "acct:a", "--json"][..],
        &["sync", "--drain", "--json"],
        &["status", "--json"],
        &["explain", "bystander", "1", "--json"],
    ] {
        let (code, out, err) = world.run(words).await;
        assert_eq!(code, 0, "{words:?}: {err}");
        assert!(serde_json::from_str::<Value>(&out).is_ok_and(|json| json.is_object()), "{words:?}: {out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_around_it_is_named_before_anything_is_done() {
    let world = World::new().await;
    let nowhere = world.folder.join("nowhere.toml");
    let broken = world.folder.join("broken.toml");
    std::fs::write(&broken, "[[collection]]\nname = 7\n").unwrap();
    let (nowhere, broken) = (nowhere.to_str().unwrap(), broken.to_str().unwrap());
    for (words, without, said) in [
        (&["status"][..], "DATABASE_URL", "DATABASE_URL"),
        (&["status"], "ELASTICSEARCH_URL", "ELASTICSEARCH_URL"),
        (&["status", "--config", nowhere], "", "say where it is with --config or CATCHWORD_CONFIG"),
        (&["reindex", "--user", "x", "--config", nowhere], "", "the scopes of reindex come from the configuration, and there is none"),
        (&["reindex", "--all", "--config", broken], "", "broken.toml:2: "),
        (&["explain", "annotation"], "", "name one of: annotation, bystander"),
        (&["sync", "nope"], "", "there is no collection \"nope\""),
    ] {
        let output = world.binary().env_remove(without).args(words).output().await.unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &[][..]), "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_is_not_attached_is_refused_and_the_others_are_worked_on() {
    let layout = Layout { migrated: false, ..Layout::default() };
    let world = World::with(layout).await;
    for words in [&["reindex", "annotation", "--all"][..], &["status"], &["sync"], &["explain", "annotation", "x"]] {
        let (code, _, err) = world.run(words).await;
        assert_eq!(code, 2, "{words:?}");
        assert!(err.contains("there is no schema catchword in this database; run: catchword migrate"), "{err}");
    }
    drop(world);

    let world = World::new().await;
    world.annotate("acct:a", "hello").await;
    let (code, out, _) = world.run(&["detach", "bystander", "--yes"]).await;
    assert_eq!(code, 0, "{out}");
    let (code, _, err) = world.run(&["reindex", "bystander", "--ids", "1"]).await;
    assert_eq!(code, 2);
    assert!(err.contains("collection bystander is not attached; run: catchword migrate"), "{err}");
    let (code, _, err) = world.run(&["reindex", "annotation", "--user", "acct:a"]).await;
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = world.run(&["sync", "--drain"]).await;
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("2 settled") && out.contains("bystander is blocked: collection bystander is not attached"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn detach_asks_first() {
    let world = World::new().await;
    let (code, out, err) = world.run(&["detach", "annotation"]).await;
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("its triggers, open jobs and dead letters are removed") && err.contains("--yes"), "{err}");
    assert_eq!(world.one::<i64>("select count(*) from catchword.collection").await, 2);
    let (code, out, _) = world.run(&["detach", "nope\u{1b}[2J", "--yes"]).await;
    assert_eq!((code, out.as_str()), (1, "nope\\u{1b}[2J: not attached\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_the_question_is_asked_and_no_means_no() {
    let world = World::new().await;
    world.annotate("acct:a", "hello").await;
    world.sql("delete from catchword.job where collection = 'annotation'").await;
    for (answer, scheduled) in [("n", 0), ("", 0), ("y", 1)] {
        // script(1) gives it a terminal
        let mut command = tokio::process::Command::new("script");
        for (name, value) in world.binary().as_std().get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let line = format!("{} reindex annotation --all", env!("CARGO_BIN_EXE_catchword"));
        command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("script is missing; install bsdutils");
        let mut stdin = child.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, format!("{answer}\n").as_bytes()).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        drop(stdin);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("schedule all 1 keys of annotation? [y/N]"), "{text}");
        assert_eq!(output.status.code(), Some(if scheduled == 0 { 1 } else { 0 }), "{text}");
        assert_eq!(world.jobs().await, scheduled, "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_seen_enough_is_no_error() {
    let world = World::new().await;
    for words in [&["migrate", "--dry-run"][..], &["migrate"], &["status"]] {
        let mut child = world.binary().args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
        assert!(said.is_empty() || said.starts_with("nothing was changed"), "{words:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_says_what_becomes_of_rows_deleted_meanwhile_and_that_works() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "x").await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.found("annotation").await.len(), 1);
    world.sql("alter table annotation disable trigger catchword_annotation_deleted; delete from annotation").await;

    let (code, out, said) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("table repaired"), "{out}");
    assert!(out.contains("are still found: catchword reindex annotation --ids KEY --hidden"), "{out}");
    let (code, _, said) = world.run(&["reindex", "annotation", "--ids", &key, "--hidden"]).await;
    assert_eq!(code, 0, "{said}");
    world.run(&["sync", "--drain"]).await;
    assert_eq!(world.found("annotation").await.len(), 0);
    let (_, out, _) = world.run(&["migrate"]).await;
    assert!(!out.contains("deleted without"), "{out}");
}
