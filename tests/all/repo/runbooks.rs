//! What the runbooks tell a woken person to type exists, and what they ask first can be pasted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use sqlx::{Connection, PgConnection};

use crate::common::{Layout, Running, World, eventually, launch, start};
use crate::operate::roles::{INSERT, Roles};

/// Every page with commands for operators, and its text.
fn pages() -> BTreeMap<String, String> {
    let runbooks = std::fs::read_dir(root().join("dashboards/runbooks")).unwrap().map(|file| file.unwrap().path());
    let pages = runbooks.chain([root().join("dashboards/README.md")]);
    pages.map(|path| (path.strip_prefix(root()).unwrap().display().to_string(), std::fs::read_to_string(&path).unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_and_every_flag_exists() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut seen = 0;
    for (page, text) in pages() {
        for command in commands(&text) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let depth = if words[1] == "dead" { 3 } else { 2 };
            let (path, rest) = words.split_at(depth.min(words.len()));
            let path: Vec<String> = path[1..].iter().map(|word| (*word).to_owned()).collect();
            if !helps.contains_key(&path) {
                let output = Command::new(env!("CARGO_BIN_EXE_catchword")).args(&path).arg("--help").env_clear().output().await.unwrap();
                assert!(output.status.success(), "{page}: {command}: {}", String::from_utf8_lossy(&output.stderr));
                helps.insert(path.clone(), String::from_utf8(output.stdout).unwrap());
            }
            for flag in rest.iter().filter(|word| word.starts_with("--")) {
                assert!(
                    helps[&path].contains(&format!("{flag}\n")) || helps[&path].contains(&format!("{flag} ")),
                    "{page}: {command}: no {flag}"
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
}

/// Whoever is woken may have a browser and no terminal.
#[test]
fn every_runbook_names_a_page_of_the_console_and_the_page_exists() {
    let console = std::fs::read_to_string(root().join("docs/console.md")).unwrap();
    let listed = console.lines().filter_map(|line| line.strip_prefix("| `/")?.split_once('`'));
    let known: Vec<&str> = listed.map(|(page, _)| page.split('?').next().unwrap()).collect();
    let routes = std::fs::read_to_string(root().join("src/console/mod.rs")).unwrap();
    for page in &known {
        assert!(routes.contains(&format!("\"/{}\"", page.replace("NAME", "{collection}"))), "docs/console.md: /{page}");
    }
    let runbooks = pages().into_iter().filter(|(page, _)| page.starts_with("dashboards/runbooks/Catchword"));
    let mut seen = 0;
    for (page, text) in runbooks {
        let line = text.lines().find(|line| line.starts_with("In a browser: ")).unwrap_or_else(|| panic!("{page} names no page"));
        let named: Vec<&str> = line.split('`').skip(1).step_by(2).filter_map(|word| word.strip_prefix('/')).collect();
        assert!(!named.is_empty(), "{page}: {line}");
        for name in named {
            assert!(known.contains(&name), "{page}: there is no page /{name}");
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_first_can_be_pasted_and_changes_nothing() {
    let world = World::with(Layout { tick: "* * * * * *", canary: true, ..Layout::default() }).await;
    world.in_step("acct:a", "x").await;
    let worker = start(&world).await;
    eventually("the canary came through", async || worker.get(&world, "/metrics").await.1.contains("catchword_canary_seconds_sum")).await;
    let journal = world.one::<i64>("select count(*) from catchword.journal").await;

    let mut pasted = std::collections::BTreeSet::new();
    for (page, text) in pages() {
        let Some((_, asked)) = text.split_once("\n## Is it real?\n") else { continue };
        let (asked, later) = asked.split_once("\n## ").unwrap();
        let placeholder = |line: &&str| ["PID", "SLOT"].iter().any(|word| line.contains(word));
        let queries = blocks(later).into_iter().filter(|line| line.starts_with("psql \"$DATABASE_URL\" -c \"select") && !placeholder(line));
        for line in blocks(asked).into_iter().chain(queries) {
            if pasted.insert(line.to_owned()) {
                let (code, out, err) = paste(&world, &worker, line).await;
                // 1 is an answer of catchword: something needs a person
                let answered = code == 0 || code == 1 && line.starts_with("catchword ");
                assert!(answered, "{page}: {line}: exit {code}\n{out}{err}");
            }
        }
    }
    assert!(pasted.len() > 30, "{}", pasted.len());
    assert_eq!(world.one::<i64>("select count(*) from catchword.journal").await, journal);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fix_runs_under_the_role_that_its_runbook_names() {
    let roles = Roles::new().await;
    let world = &roles.world;
    let mut application = PgConnection::connect(&roles.url("application")).await.unwrap();
    sqlx::raw_sql(INSERT).execute(&mut application).await.unwrap();
    let worker = launch(world.binary().env("DATABASE_URL", roles.url("worker"))).await;
    let reindex: i64 = world.one("select catchword.reindex_start('annotation', 'user', 'acct:a', p_rate => 1)").await;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (page, text) in pages() {
        let Some((_, fix)) = text.split_once("\n## Fix\n") else { continue };
        let fix = fix.split_once("\n## ").unwrap().0;
        let commands = pastable(fix);
        let named = fix.lines().find_map(|line| line.strip_prefix("Role: "));
        assert_eq!(named.is_some(), !commands.is_empty(), "{page} names a role just if there is something to run: {commands:?}");
        for line in commands {
            let role = role(named.unwrap(), &line);
            // a session that is there to be ended, of a role that is not a superuser
            let mut session = PgConnection::connect(&roles.url("application")).await.unwrap();
            let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut session).await.unwrap();
            let filled = line.replace("PID", &pid.to_string()).replace("VIEW", "annotation_document");
            let filled = if filled.starts_with("catchword reindex ") { filled.replace(" ID", &format!(" {reindex}")) } else { filled };
            let url = if role == "superuser" { world.database_url.clone() } else { roles.url(role) };
            if filled.starts_with("catchword worker") {
                let mut started = launch(world.binary().env("DATABASE_URL", url)).await;
                started.child.kill().await.unwrap();
            } else {
                let (code, out, err) = paste_as(world, &worker, &filled, &url).await;
                let said = format!("{page}: {role}: {filled}: exit {code}\n{out}{err}");
                for refusal in ["permission denied", "must be owner", "must be superuser", "another role is meant"] {
                    assert!(!said.contains(refusal), "{said}");
                }
                // no such prepared transaction and no such slot: here there is none to end
                let missing = role == "superuser" && err.contains("does not exist");
                assert!(code == 0 || code == 1 && filled.starts_with("catchword ") || missing, "{said}");
            }
            if line.contains("pg_terminate_backend") {
                assert!(sqlx::query("select 1").execute(&mut session).await.is_err(), "{page}: {role} ended it");
            }
            // what one page pauses is none of the next one's business
            world.sql("delete from catchword.pause").await;
            *seen.entry(role.to_owned()).or_default() += 1;
        }
    }
    assert!(seen["operator"] > 15 && seen["migrator"] >= 4 && seen["worker"] == 1 && seen["superuser"] == 2, "{seen:?}");
}

/// `operator` of "**operator**; for `catchword migrate` **migrator**." for all but what the rest names.
fn role<'a>(named: &'a str, line: &str) -> &'a str {
    let bold = |part: &'a str| part.split("**").nth(1).unwrap();
    let (first, others) = named.split_once(';').unwrap_or((named, ""));
    let other = others.split(';').filter(|part| part.contains('`')).find(|part| line.contains(part.split('`').nth(1).unwrap()));
    other.map_or(bold(first), bold)
}

/// What can be pasted of a text: the lines of its blocks, and commands of catchword and psql within sentences.
fn pastable(text: &str) -> Vec<String> {
    let plain: String = text.split("```").step_by(2).collect();
    let inline = plain.split('`').skip(1).step_by(2).filter(|command| command.starts_with("catchword ") || command.starts_with("psql "));
    let named: Vec<&str> = text.lines().filter(|line| line.starts_with("Role: ")).collect();
    let inline = inline.filter(|command| !named.iter().any(|line| line.contains(&format!("for `{command}`"))));
    let mut all: Vec<String> = blocks(text).into_iter().map(str::to_owned).collect();
    // a name alone is no command
    all.extend(inline.map(str::to_owned));
    // what the line of the role names is run where the text has it too
    let again = plain.lines().filter(|line| !line.starts_with("Role: ")).flat_map(|line| line.split('`').skip(1).step_by(2));
    all.extend(again.filter(|command| named.iter().any(|line| line.contains(&format!("for `{command}`")))).map(str::to_owned));
    all
}

/// Runs a line as a person would, in the worker's environment.
async fn paste(world: &World, worker: &Running, line: &str) -> (i32, String, String) {
    paste_as(world, worker, line, &world.database_url).await
}

async fn paste_as(world: &World, worker: &Running, line: &str, url: &str) -> (i32, String, String) {
    let mut like = world.binary();
    like.env("DATABASE_URL", url);
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", line]).envs(like.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    let folder = Path::new(env!("CARGO_BIN_EXE_catchword")).parent().unwrap().display();
    shell.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap()));
    shell.env("COLLECTION", "annotation").env("WORKER", format!("http://{}", worker.address())).kill_on_drop(true);
    let output = shell.output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// The lines of the `sh` blocks.
fn blocks(text: &str) -> Vec<&str> {
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).filter(|line| !line.trim().is_empty()).collect()
}

/// The commands of catchword, in blocks and in the running text, without comments and what they are piped into.
fn commands(text: &str) -> Vec<String> {
    let plain: String = text.split("```").step_by(2).collect();
    let inline = plain.split('`').skip(1).step_by(2);
    let all = blocks(text).into_iter().chain(inline).filter(|command| command.starts_with("catchword "));
    all.map(|command| command.split(['#', '|', ';', '>']).next().unwrap().trim().to_owned()).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
