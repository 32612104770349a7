//! What the documents say is true: their commands run, their names exist, their links lead somewhere.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::common::{Layout, World, eventually};

/// A fenced block: what stands behind the backticks, and what is between them.
struct Block {
    info: String,
    text: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_readme_run_in_their_order() {
    let world = empty_world().await;
    // two checkouts on one machine must not meet at the worker's usual port
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = script(&blocks(&read("README.md")))
        .replace("127.0.0.1:9090", &format!("127.0.0.1:{}", free()))
        .replace("127.0.0.1:8470", &format!("127.0.0.1:{}", free()));
    let said = bash(&world, &script).await;
    for promised in ["ready\n", "2 settled", "current: both sides agree", "found within about a second"] {
        assert!(said.contains(promised), "{promised:?} is not in:\n{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_touch_leaves_updated_at_alone() {
    let world = empty_world().await;
    let readme = blocks(&read("README.md"));
    let first = |info: &str| readme.iter().find(|block| block.info.starts_with(info)).unwrap();
    let table = "alter table note add column updated_at timestamptz default 'epoch';\n\
                 create function set_updated_at() returns trigger language plpgsql as 'begin new.updated_at := now(); return new; end';\n\
                 create trigger set_updated_at before update on note for each row execute function set_updated_at();\n";
    let sql = readme.iter().filter(|block| block.info == "sql").take(2);
    let mut script = script_of(sql.chain([first("toml"), first("json")]));
    script.push_str(&psql(table));
    script.push_str("catchword migrate\n");
    bash(&world, &script).await;

    let seen = "select format('%s %s', (select max(revision) from catchword.record where key = '1'), (select updated_at = 'epoch' from note where id = 1))";
    world.sql("select catchword.touch('note', array['1'])").await;
    let touched: String = world.one(seen).await;
    assert!(touched.ends_with(" t") && !touched.starts_with(' '), "{touched}");
    world.sql("update note set text = 'changed' where id = 1").await;
    assert!(world.one::<String>(seen).await.ends_with(" f"));
}

async fn empty_world() -> World {
    let layout = Layout { migrated: false, ..Layout::default() };
    let world = World::with(layout).await;
    std::fs::create_dir(world.folder.join("page")).unwrap();
    world
}

/// Runs a script in an empty folder, with the binaries on the path; returns what it said.
async fn bash(world: &World, script: &str) -> String {
    let binaries = Path::new(env!("CARGO_BIN_EXE_catchword")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(world.folder.join("page"))
        .env_clear()
        .env("PATH", path)
        .env("DATABASE_URL", &world.database_url)
        .env("ELASTICSEARCH_URL", &world.elasticsearch)
        .env("CATCHWORD_INDEX_PREFIX", &world.prefix)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = tokio::time::timeout(Duration::from_secs(120), ran).await;
    let output = ran.expect("the commands did not end within two minutes").unwrap();
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n--- said\n{said}\n--- complained\n{complained}");
    said.into_owned()
}

/// One script, so that a variable or a background job of one block is there in the next. Its end ends them.
fn script(blocks: &[Block]) -> String {
    format!("trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{}", script_of(blocks.iter()))
}

fn script_of<'a>(blocks: impl Iterator<Item = &'a Block>) -> String {
    let step = |Block { info, text }: &Block| match info.split_once(' ').unwrap_or((info, "")) {
        ("sh", "") => text.clone(),
        // `text` is what a command printed
        ("sh", "docker" | "make") | ("rust" | "text", "") => String::new(),
        ("sql", "") => psql(text),
        ("toml" | "json", file) => {
            let file = file.strip_prefix("file=").expect("a file has a name");
            format!("cat >{file} <<'FILE'\n{text}FILE\n")
        }
        _ => panic!("a block is marked {info:?}, and nothing checks that"),
    };
    blocks.map(step).collect()
}

fn psql(sql: &str) -> String {
    format!("psql -Xq -v ON_ERROR_STOP=1 \"$DATABASE_URL\" <<'SQL'\n{sql}SQL\n")
}

#[test]
fn the_rust_of_the_readme_is_a_doc_test_of_the_crate() {
    let source = read("src/catchword.rs");
    let documented: Vec<&str> = source
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("///"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let documented = documented.join("\n");
    let blocks = blocks(&read("README.md"));
    let rust: Vec<&Block> = blocks.iter().filter(|block| block.info == "rust").collect();
    assert!(!rust.is_empty());
    for block in rust {
        assert!(documented.contains(block.text.trim_end()), "not in src/catchword.rs:\n{}", block.text);
    }
}

/// The README's own code, on the README's own table.
mod sample {
    use std::time::Duration;

    use catchword::{Catchword, Direct, Error, Stored, Until};
    use sqlx::PgConnection;

    include!("readme/save.rs");
    include!("readme/found.rs");

    pub async fn saves(catchword: &Catchword) -> i64 {
        save(catchword, "mina", "saved by the sample").await.unwrap()
    }

    pub async fn finds(catchword: &Catchword, note: i64) -> bool {
        is_found(catchword, note).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_of_the_readme_runs_against_its_own_table() {
    let blocks = blocks(&read("README.md"));
    let rust: Vec<&Block> = blocks.iter().filter(|block| block.info == "rust").collect();
    let run = ["save", "found"].map(|name| read(&format!("tests/all/repo/readme/{name}.rs")));
    assert_eq!(rust.iter().map(|block| &block.text).collect::<Vec<_>>(), run.iter().collect::<Vec<_>>(), "what is run is what is shown");

    let world = empty_world().await;
    let place = blocks.iter().position(|block| block.info.starts_with("json")).unwrap();
    let before = blocks[..=place].iter().filter(|block| !block.info.starts_with("sh"));
    bash(&world, &format!("{}catchword migrate\n", script_of(before))).await;
    let config = catchword::config::Config::read(&world.folder.join("page/catchword.toml")).unwrap();
    let environment = crate::common::environment(&world.database_url, &world.elasticsearch, &world.prefix);
    let catchword = catchword::Catchword::connect(config, &environment).await.unwrap();
    let id = sample::saves(&catchword).await;
    catchword.drain("test", &["note"]).await.unwrap();
    let source = world.source("note", &id.to_string()).await.unwrap();
    assert_eq!(source, serde_json::json!({ "author": "mina", "text": "saved by the sample" }));
    eventually("search shows it", async || sample::finds(&catchword, id).await).await;
}

/// A figure of the README is one of the last full run.
#[test]
fn the_figures_of_the_readme_are_those_of_the_benchmarks() {
    let (readme, benchmarks) = (read("README.md"), read("docs/benchmarks.md"));
    let line = |clients: &str| benchmarks.lines().find(|line| line.contains(&format!("store's transaction, {clients}, p50"))).unwrap();
    let figures = |clients: &str| -> Vec<String> {
        let cells: Vec<&str> = line(clients).split('|').collect();
        cells[3..=4].iter().map(|cell| cell.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let (one, eight) = (figures("1 client"), figures("8 clients"));
    let said =
        format!("with one client an insert took {} ms against {} without, with eight {} against {}", one[0], one[1], eight[0], eight[1]);
    assert!(readme.contains(&said), "the README does not say: {said}");
}

#[test]
fn the_make_commands_of_the_readme_are_targets() {
    let makefile = read("Makefile");
    let blocks = blocks(&read("README.md"));
    let commands: Vec<&str> = blocks.iter().filter(|block| block.info == "sh make").flat_map(|block| block.text.lines()).collect();
    for command in &commands {
        let target = command.split_whitespace().nth(1).unwrap_or_default();
        assert!(command.starts_with("make ") && makefile.contains(&format!("\n{target}:")), "{command}");
    }
    for target in ["test", "demo"] {
        assert!(commands.iter().any(|command| command.starts_with(&format!("make {target}"))), "make {target}");
    }
}

#[test]
fn the_readme_names_every_key_variable_command_and_reason() {
    let readme = read("README.md");
    let mut wanted = BTreeSet::new();
    for file in ["src/config/collection.rs", "src/config/worker.rs"] {
        let source = read(file);
        // of the keys of a touch, the example in the table is enough
        let keys = source
            .split("const TOUCH_KEYS")
            .next()
            .unwrap_or_default()
            .split("Key {")
            .skip(1)
            .filter_map(|key| quoted(key.split_once("name:")?.1));
        wanted.extend(keys.map(|key| format!("`{key}`")));
    }
    let environment = read("src/config/environment.rs");
    let names = environment.split_once("const NAMES").unwrap().1.split_once("];").unwrap().0;
    let names = names.split('"').skip(1).step_by(2);
    const PEM: [&str; 3] = ["ELASTICSEARCH_CA_FILE", "ELASTICSEARCH_CLIENT_CERT_FILE", "ELASTICSEARCH_CLIENT_KEY_FILE"];
    // the twins of secrets are described once for all, and the PG… ones are Postgres' own
    let documented = names.filter(|name| !name.starts_with("PG") && (!name.ends_with("_FILE") || PEM.contains(name)));
    wanted.extend(documented.map(|name| format!("`{name}`")));
    let reasons = read("migrations/0001_tables.sql");
    let reasons = reasons.split_once("check (reason in (").unwrap().1.split_once(')').unwrap().0;
    wanted.extend(reasons.split('\'').skip(1).step_by(2).map(|reason| format!("| `{reason}` |")));
    assert!(wanted.len() > 20, "{wanted:?}");
    for name in wanted {
        assert!(readme.contains(&name), "the README does not name {name}");
    }
}

#[tokio::test]
async fn the_readme_uses_the_commands_there_are() {
    let help = Command::new(env!("CARGO_BIN_EXE_catchword")).arg("--help").output().await.unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let known: BTreeSet<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for document in ["README.md", "docs/adopt.md", "docs/api.md", "CONTRIBUTING.md", "src/ARCHITECTURE.md"] {
        let text = read(document);
        let shell: String = blocks(&text).into_iter().filter(|block| block.info == "sh").map(|block| block.text).collect();
        for used in text.split("`catchword ").skip(1).chain(shell.split("catchword ").skip(1)) {
            let word = used.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
            assert!(word.is_empty() || known.contains(word), "{document} says catchword {word}");
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let documents = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/README.md",
        "docs/adopt.md",
        "docs/api.md",
        "docs/servers.md",
        "docs/when-things-go-wrong.md",
        "dashboards/README.md",
        "reindex/README.md",
    ];
    for document in documents {
        let text = read(document);
        let folder = root().join(document).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let page = if file.is_empty() { root().join(document) } else { folder.join(file) };
            assert!(page.exists(), "{document} leads to {link}");
            if !heading.is_empty() {
                let page = std::fs::read_to_string(page).unwrap();
                assert!(anchors(&page).contains(heading), "{document} leads to {link}, and there is no such heading");
            }
        }
    }
}

/// What a link to each heading ends with.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    headings.map(|heading| heading.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn the_words_of_contributing_are_in_the_glossary() {
    let (contributing, architecture) = (read("CONTRIBUTING.md"), read("src/ARCHITECTURE.md"));
    let words = architecture.split_once("\n# Words\n").unwrap().1;
    let explained: BTreeSet<&str> =
        words.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ")).flat_map(|(names, _)| names.split(", ")).collect();
    let named = contributing.split_once("the same in tables, types, metrics and prose: ").unwrap().1.split_once('.').unwrap().0;
    for word in named.split(", ") {
        assert!(explained.contains(word), "{word} is not explained in src/ARCHITECTURE.md");
    }
}

/// Words that newcomers misread; CONTRIBUTING has the plain ones.
const MISREAD: [&str; 11] = [
    "away",
    "mend",
    "mends",
    "mended",
    "anew",
    "by itself",
    "sign of life",
    "come to stay",
    "it is said",
    "is said and",
    "nothing is said",
];

#[test]
fn what_people_read_has_no_word_that_was_misread() {
    let mut pages: Vec<String> =
        ["README.md", "CHANGELOG.md", "src/ARCHITECTURE.md", "migrations/README.md", "reindex/README.md", "examples/annotations/README.md"]
            .map(str::to_owned)
            .into();
    for folder in ["docs", "dashboards", "dashboards/runbooks"] {
        let files = std::fs::read_dir(root().join(folder)).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        pages.extend(files.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    // names of flags and tests are in code
    let prose = |page: &str| {
        let plain: String = page.split("```").step_by(2).collect();
        plain.split('`').step_by(2).collect::<Vec<_>>().join(" ")
    };
    let mut texts: Vec<(String, String)> = pages.iter().map(|page| (page.clone(), prose(&read(page)))).collect();
    texts.extend(
        ["tests/all/operate/help.txt", "dashboards/alarms.yaml", "dashboards/catchword.yaml"].map(|file| (file.to_owned(), read(file))),
    );
    assert!(texts.len() > 30, "{}", texts.len());
    for (page, text) in texts {
        let words: Vec<String> =
            text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-').to_lowercase()).collect();
        let words = format!(" {} ", words.join(" "));
        for misread in MISREAD {
            assert!(!words.contains(&format!(" {misread} ")), "{page} says {misread:?}");
        }
    }
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block { info: info.to_owned(), text: text.join("\n") + "\n" });
        }
    }
    blocks
}

fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_test_that_a_document_names_is_there() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(format!("{root}/docs/when-things-go-wrong.md")).unwrap();
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(|word| word.contains("::")).collect();
    assert!(named.len() > 15, "{named:?}");
    let makefile = std::fs::read_to_string(format!("{root}/Makefile")).unwrap();
    let long: Vec<&str> = makefile.split_whitespace().filter(|word| word.contains("::") && !word.ends_with("::")).collect();
    assert!(long.len() > 15, "{long:?}");
    for name in named.into_iter().chain(long) {
        let (module, test) = name.rsplit_once("::").unwrap();
        let file = module.replace("::", "/");
        let found = [format!("{root}/tests/all/{file}.rs"), format!("{root}/tests/all/{file}/mod.rs")]
            .iter()
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .any(|source| source.contains(&format!("fn {test}(")));
        assert!(found, "docs/when-things-go-wrong.md or the Makefile names {name}, and there is no such test");
    }
}
