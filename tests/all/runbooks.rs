//! What the runbooks tell a woken person to type exists, and what they ask first can be pasted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::common::{Layout, Running, World, eventually, start};

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

/// Runs a line as a person would, in the worker's environment.
async fn paste(world: &World, worker: &Running, line: &str) -> (i32, String, String) {
    let like = world.binary();
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
